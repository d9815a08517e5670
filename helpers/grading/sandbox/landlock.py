"""Restrict a process's reachable files with Landlock, which needs no privileges.

`inside` calls this module in the rank server if bubblewrap is not available. See landlock(7).
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import struct
from collections.abc import Sequence

from helpers.ranks.processes import NO_NEW_PRIVS, prctl

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION_FLAG, _RULE_PATH_BENEATH = 1, 1

_EXECUTE, _WRITE, _READ, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_FOR_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
_ALL_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1}
_ALL_NOW = (1 << 16) - 1
# From ABI 6 on, processes cannot reach abstract sockets of outside processes or send them signals.
_SCOPES = 3


def abi() -> int:
    """Return the version of Landlock in this kernel, or 0 if it has none."""
    return max(0, int(ctypes.CDLL(None, use_errno=True).syscall(_CREATE, None, 0, _VERSION_FLAG)))


def restrict(readable: Sequence[str], writable: Sequence[str]) -> None:
    """Restrict this process and all its future children to files below these paths.

    Raises:
        OSError: The kernel has no Landlock.
    """
    version = abi()
    if not version:
        raise OSError(errno.ENOSYS, "Landlock")
    libc = ctypes.CDLL(None, use_errno=True)
    # Unhandled access remains allowed, and the kernel rejects unknown bits. So the bits must match the
    # kernel's version exactly.
    handled = _ALL_BY_ABI.get(version, _ALL_NOW)
    # handled_access_fs, handled_access_net (none, because gloo's ports are not known in advance), scoped
    rules = struct.pack("QQQ", handled, 0, _SCOPES if version >= 6 else 0)
    # The struct has grown with each version, and an older kernel rejects unknown nonzero fields.
    size = 24 if version >= 6 else 16 if version >= 4 else 8
    ruleset = _call(libc, _CREATE, ctypes.create_string_buffer(rules, 24), size, 0)
    try:
        for paths, access in (
            (readable, _EXECUTE | _READ | _READ_DIR),
            (writable, handled & ~_EXECUTE),
        ):
            for path in paths:
                _allow(libc, ruleset, path, access & handled)
        # As for seccomp, the kernel requires this of processes without CAP_SYS_ADMIN.
        prctl(NO_NEW_PRIVS, 1)
        _call(libc, _RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> None:
    try:
        # With O_PATH, opening a file requires no permission to read it.
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        # The kernel rejects a file's rule if it contains access bits of folders.
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            access &= _FOR_FILES
        rule = ctypes.create_string_buffer(struct.pack("=Qi", access, fd), 12)
        _call(libc, _ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(fd)


def _call(libc: ctypes.CDLL, number: int, *args: object) -> int:
    result = int(libc.syscall(number, *args))
    if result < 0:
        raise OSError(ctypes.get_errno(), "Landlock")
    return result
