"""Turns a flat stream of keys into Folders, without ever reading a key as a path of this machine."""

from __future__ import annotations

from collections.abc import Iterator, MutableSequence
from typing import Any

from lifecycle.core.listing import Folder, Upload, join, split
from lifecycle.stores.objects import Head
from lifecycle.stores.s3_pages import Page


class Tree:
    """The folders at and below ``start``, grown page by page in whatever order keys come.

    A key's parent is the text before its last slash, as it stands: ``x//y`` lies in the folder ``x/``, and
    ``..`` is a name like any other. ``join(folder.path, name)`` always gives the key back.
    """

    def __init__(self, start: str, prefix: str, state: str | None = None) -> None:
        """``prefix`` is cut off each key; what lies at ``state`` (a folder's path) is left out."""
        self.start = start
        self.folders: dict[str, Folder] = {start: Folder(start)}
        self.keys = 0
        self._cut = len(prefix)
        self._state = state

    def add(self, page: Page) -> None:
        """Sort a page's objects into their folders."""
        cut, last, seen = self._cut, None, self.keys
        names = sizes = mtimes = tokens = None
        for key, size, mtime_ns, etag in zip(*page[:4], strict=True):
            parent, slash, name = key[cut:].rpartition("/")
            if not parent and slash:
                parent, name = split(key[cut:])
            if parent != last:
                last = parent
                if self._ours(parent):
                    names = None
                    continue
                folder = self.folder(parent)
                names, sizes, mtimes = folder.names.append, folder.sizes.append, folder.mtimes_ns.append
                tokens = folder.tokens.append
            if names is None:
                continue
            seen += 1
            if not name and not size:
                self.folder(parent).placeholder = True
                continue
            names(name)
            sizes(size)  # type: ignore[misc]  # set together with names
            mtimes(mtime_ns)  # type: ignore[misc]  # set together with names
            tokens(etag)  # type: ignore[misc, arg-type]  # one type a store
        self.keys = seen
        for key, storage in page.classes.items():
            parent, name = split(key[cut:])
            if not self._ours(parent) and name:
                self.folder(parent).classes[name] = storage

    def mark(self, uploads: list[tuple[str, Upload]]) -> None:
        """Note open uploads; of several to one key the newest."""
        for key, upload in uploads:
            parent, name = split(key[self._cut :])
            if self._ours(parent):
                continue
            known = self.folder(parent).uploads
            if name not in known or known[name].started_at_ns < upload.started_at_ns:
                known[name] = upload
            self.keys += 1

    def _ours(self, path: str) -> bool:
        state = self._state
        return state is not None and (path == state or path.startswith(state + "/"))

    def folder(self, path: str) -> Folder:
        """The folder at ``path``; it and the ones above it are made when they are not there yet."""
        found = self.folders.get(path)
        if found is not None:
            return found
        made = self.folders[path] = Folder(path)
        while path != self.start:
            parent, name = split(path)
            above = self.folders.get(parent)
            if above is not None:
                above.dirs.append(name)
                break
            self.folders[parent] = Folder(parent, dirs=[name])
            path = parent
        return made

    def has(self, key: str) -> bool:
        """Whether an object of this key is shown."""
        parent, name = split(key)
        folder = self.folders.get(parent)
        return folder is not None and name in folder.names

    def hide(self, heads: list[Head]) -> None:
        """Take these very objects out, and the folders that are empty without them."""
        gone: dict[str, dict[str, Head]] = {}
        for head in heads:
            parent, name = split(head.key)
            gone.setdefault(parent, {})[name] = head
        for path, named in gone.items():
            folder = self.folders.get(path)
            if folder is None:
                continue
            columns: tuple[MutableSequence[Any], ...] = (folder.names, folder.sizes, folder.mtimes_ns, folder.tokens)
            rows = list(zip(*columns, strict=True))
            known = {name: (name, head.size, head.mtime_ns, head.etag) for name, head in named.items()}
            keep = [row for row in rows if row != known.get(row[0])]
            kept = zip(*keep, strict=True) if keep else ((),) * len(columns)
            for column, values in zip(columns, kept, strict=True):
                column[:] = values
            folder.placeholder = folder.placeholder and "" not in named
            for name in set(folder.classes) - set(folder.names):
                del folder.classes[name]
            self._prune(path)

    def _prune(self, path: str) -> None:
        while path != self.start and not _holds(self.folders[path]):
            del self.folders[path]
            path, name = split(path)
            self.folders[path].dirs.remove(name)

    def __iter__(self) -> Iterator[Folder]:
        """Parents first."""
        stack = [self.start]
        while stack:
            folder = self.folders[stack.pop()]
            yield folder
            stack += [join(folder.path, name) for name in reversed(folder.dirs)]


def _holds(folder: Folder) -> bool:
    return bool(folder.names or folder.dirs or folder.uploads or folder.placeholder)
