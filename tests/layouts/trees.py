"""Listings from real directories and from short texts, and readers for both."""

import os
from collections.abc import Mapping
from pathlib import Path

from lifecycle.core.listing import Flavour, Folder, Listing, Stamp, join
from lifecycle.errors import NotFound, StoreError
from lifecycle.layouts.peek import Read


def scan(root: Path, flavour: Flavour = Flavour.POSIX) -> Listing:
    """What a store would show of `root`; on object stores no empty directories and no links."""
    folders: dict[str, Folder] = {}
    for top, dirs, names in os.walk(root):
        path = Path(top).relative_to(root).as_posix()
        info = os.stat(top)
        folder = Folder("" if path == "." else path, owner=info.st_uid)
        folder.stamp = Stamp(info.st_dev, info.st_ino, info.st_mtime_ns, info.st_ctime_ns)
        for name in [*dirs, *names]:
            full = Path(top, name)
            stat = full.lstat()
            if full.is_symlink():
                folder.links[name] = os.readlink(full)
            elif full.is_dir():
                folder.dirs.append(name)
            else:
                folder.names.append(name)
                folder.sizes.append(stat.st_size)
                folder.mtimes_ns.append(stat.st_mtime_ns)
                folder.tokens.append(stat.st_ino)  # type: ignore[arg-type]
                if stat.st_nlink > 1:
                    folder.shared[name] = stat.st_nlink
        folders[folder.path] = folder
    if flavour is Flavour.OBJECT:
        flatten(folders)
    return Listing(flavour, folders)


def flatten(folders: dict[str, Folder]) -> None:
    """Only prefixes that lead to an object remain, and nothing that an object store does not have."""
    full = {path for path, folder in folders.items() if folder.names}
    alive = {""} | {p.rsplit("/", n)[0] for p in full for n in range(p.count("/") + 1)}
    for path in list(folders):
        folder = folders[path]
        if path not in alive:
            del folders[path]
            continue
        folder.dirs = [d for d in folder.dirs if join(path, d) in alive]
        folder.links, folder.stamp, folder.owner, folder.shared = {}, None, None, {}
        folder.tokens = [f"etag-{join(path, n)}" for n in folder.names]


def reader(root: Path) -> Read:
    """Bounded reads below `root`."""

    def read(key: str, offset: int, limit: int) -> bytes:
        try:
            with (root / key).open("rb") as file:
                file.seek(offset, os.SEEK_END if offset < 0 else os.SEEK_SET)
                return file.read(limit)
        except FileNotFoundError as error:
            raise NotFound(key) from error

    return read


def tree(
    files: Mapping[str, bytes | int],
    *,
    dirs: tuple[str, ...] = (),
    links: Mapping[str, str] | None = None,
    times: Mapping[str, int] | None = None,
    flavour: Flavour = Flavour.POSIX,
) -> Listing:
    """A listing from keys with content, or with just a size; parents come by themselves."""
    folders = {"": Folder("", owner=1)}

    def at(path: str) -> Folder:
        if path not in folders:
            parent, _, name = path.rpartition("/")
            at(parent).dirs.append(name)
            folders[path] = Folder(path, owner=1)
        return folders[path]

    for number, (key, content) in enumerate(files.items()):
        parent, _, name = key.rpartition("/")
        folder = at(parent)
        folder.names.append(name)
        folder.sizes.append(content if isinstance(content, int) else len(content))
        folder.mtimes_ns.append((times or {}).get(key, 1_000_000_000))
        token = number + 1 if flavour is Flavour.POSIX else f"etag-{key}"
        folder.tokens.append(token)  # type: ignore[arg-type]
    for path in dirs:
        at(path)
    for key, text in (links or {}).items():
        parent, _, name = key.rpartition("/")
        at(parent).links[name] = text
    return Listing(flavour, folders)


def memory(files: Mapping[str, bytes | int], failing: tuple[str, ...] = ()) -> Read:
    """Reads from a mapping; sizes alone read as `x`, and some keys answer with an error."""

    def read(key: str, offset: int, limit: int) -> bytes:
        if key in failing or key not in files:
            raise StoreError(f"cannot read {key}", code="io")
        content = files[key]
        data = b"x" * content if isinstance(content, int) else content
        start = max(0, len(data) + offset) if offset < 0 else offset
        return data[start : start + limit]

    return read
