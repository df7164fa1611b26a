"""A root of its own for one process: a few directories of this machine, read-only, and what is mounted as it is told.

It is what a container runtime does, by `unshare`, `mount`, `chroot` and `setpriv`, without an image or a daemon: no
namespace for the network, and the C library and Python of this machine.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

NEEDED = ("unshare", "mount", "chroot", "setpriv")
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc")
DEVICES = ("null", "zero", "full", "random", "urandom")


class Mount(NamedTuple):
    """A directory or file of this machine, and where the process sees it."""

    source: Path
    target: str
    writable: bool = True


class User(NamedTuple):
    """Who the process is."""

    uid: int
    gid: int
    groups: tuple[int, ...] = ()


@cache
def why_not() -> str:
    """Why there can be no sandbox here; empty where there can."""
    if os.geteuid() != 0:
        return "needs root, for mounts and another user"
    if missing := [name for name in NEEDED if shutil.which(name) is None]:
        return f"needs {', '.join(missing)}"
    words = ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "mount", "-t", "tmpfs", "none", "/mnt"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return f"may not mount here: {done.stderr.strip()}" if done.returncode else ""


def command(
    words: Sequence[str],
    root: Path,
    mounts: Iterable[Mount],
    env: Mapping[str, str],
    *,
    user: User | None = None,
    readonly: bool = True,
    cwd: str = "/",
) -> list[str]:
    """``words`` as the first process of a sandbox.

    Args:
        words: what runs.
        root: an empty directory; what is made in it is gone with the sandbox.
        mounts: what else it sees.
        env: all of its environment.
        user: who it is, without any capability; None for root.
        readonly: whether it may write nowhere but into mounts.
        cwd: where it starts.
    """
    at = shlex.quote(str(root))
    lines = [f"mount -t tmpfs -o mode=755 sandbox {at}", f"mkdir -p {at}/dev {at}/proc"]
    for path in SYSTEM:
        if os.path.islink(path):
            lines.append(f"ln -s {shlex.quote(os.readlink(path))} {at}{path}")
        elif os.path.isdir(path):
            lines += _bind(Mount(Path(path), path, False), at)
    if not (base := Path(sys.base_prefix)).is_relative_to("/usr"):
        lines += _bind(Mount(base, str(base), False), at)
    for name in DEVICES:
        lines += [f": > {at}/dev/{name}", f"mount --bind /dev/{name} {at}/dev/{name}"]
    for mount in sorted(mounts, key=lambda mount: mount.target):
        lines += _bind(mount, at)
    lines += [f"mount -t proc proc {at}/proc"]
    if readonly:
        lines += [f"mount -o remount,ro {at}"]
    inside = ["env", "-i", "-C", cwd, *(f"{name}={value}" for name, value in env.items()), *words]
    if user is not None:
        groups = f"--groups={','.join(map(str, user.groups))}" if user.groups else "--clear-groups"
        who = [f"--reuid={user.uid}", f"--regid={user.gid}", groups]
        inside = ["setpriv", *who, "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", *inside]
    lines += [f"exec chroot {at} {shlex.join(inside)}"]
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    return [*apart, "sh", "-euc", "\n".join(lines)]


def _bind(mount: Mount, at: str) -> list[str]:
    source, target = shlex.quote(str(mount.source)), at + shlex.quote(mount.target)
    if mount.source.is_dir():
        lines = [f"mkdir -p {target}"]
    else:
        lines = [f"mkdir -p {at}{shlex.quote(os.path.dirname(mount.target))}", f": > {target}"]
    lines.append(f"mount --bind {source} {target}")
    if not mount.writable:
        lines.append(f"mount -o remount,bind,ro,nosuid {target}")
    return lines
