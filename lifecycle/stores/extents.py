"""How much of a file's content other files share by reflinks: what the file system says, asked without reading."""

from __future__ import annotations

import errno
import fcntl
import struct

_FIEMAP = 0xC020660B
"""FS_IOC_FIEMAP of Linux (linux/fs.h, linux/fiemap.h)."""
_HEAD = struct.Struct("=QQLLLL")
"""fiemap: start, length, flags, mapped extents, room for extents, reserved."""
_EXTENT = struct.Struct("=QQQQQLLLL")
"""fiemap_extent: where in the file, where on the device, length, reserved twice, flags, reserved thrice."""
_AT_ONCE = 256
_LAST, _SHARED = 0x1, 0x2000
"""FIEMAP_EXTENT_LAST, FIEMAP_EXTENT_SHARED."""
ASKED_MAX = 64
"""So often one file is asked, 256 extents each time; what lies behind that counts as its own."""
_UNASKED = frozenset({errno.ENOTTY, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS})


class Unsaid(Exception):
    """The file system does not tell."""


def shared_bytes(fd: int) -> int:
    """Bytes of a regular file in extents that other files hold on to as well, so that removing it does not free them.

    XFS takes back the blocks of a removed file a little later; till then its twin still counts as sharing them.

    Raises:
        Unsaid: the file system has no such question, and so no reflinks that it would tell of.
        OSError: it could not say.
    """
    found = start = 0
    for _ in range(ASKED_MAX):
        answer = bytearray(_HEAD.pack(start, 2**64 - 1 - start, 0, 0, _AT_ONCE, 0) + bytes(_EXTENT.size * _AT_ONCE))
        try:
            fcntl.ioctl(fd, _FIEMAP, answer)
        except OSError as error:
            if error.errno in _UNASKED:
                raise Unsaid from error
            raise
        mapped = _HEAD.unpack_from(answer)[3]
        extents = [_EXTENT.unpack_from(answer, _HEAD.size + _EXTENT.size * i) for i in range(mapped)]
        found += sum(extent[2] for extent in extents if extent[5] & _SHARED)
        if not extents or extents[-1][5] & _LAST:
            break
        start = extents[-1][0] + extents[-1][2]
    return found
