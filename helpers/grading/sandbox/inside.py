"""Drop a rank server's privileges inside the sandbox, before it serves.

`template_inside` and `landlocked` call `limit_process` before running the server's program.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress

from helpers.ranks.processes import prctl

_PR_SET_DUMPABLE, _PR_CAPBSET_DROP = 4, 24
_CAPABILITIES_VERSION_3 = 0x20080522
_MAX_CAPABILITIES = 64
_CPU_GRACE_S = 2


def limit_process(
    limits: Mapping[str, int],
    readable: Sequence[str] = (),
    writable: Sequence[str] = (),
) -> None:
    """Lower the limits of this process and of all its future children. This cannot be undone.

    Args:
        limits: Values of resource limits for setrlimit, named without RLIMIT_ ("DATA", in bytes).
        readable, writable: If either is given, no other paths can be reached (Landlock).

    Raises:
        OSError: The kernel does not support a restriction.
    """
    for name, value in limits.items():
        # SIGXCPU reports the reason; a process that ignores it is killed shortly after
        most = value + _CPU_GRACE_S if name == "CPU" else value
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, most))
    drop_capabilities()
    # Ranks must not read the memory of another rank or of the server through /proc or ptrace. Ranks inherit
    # this setting.
    prctl(_PR_SET_DUMPABLE, 0)
    if readable or writable:
        from helpers.grading.sandbox import landlock

        landlock.restrict(readable, writable)
    # Install the filter last, because the steps above may need calls that the filter refuses.
    from helpers.grading.sandbox import seccomp

    seccomp.install(metadata=not (readable or writable))


def drop_capabilities() -> None:
    """Drop root's privileges, such as lifting limits or configuring the network, except on root's files."""
    # Shrink the bounding set first, because this needs CAP_SETPCAP, which is dropped with the rest.
    libc = ctypes.CDLL(None, use_errno=True)
    bound_capabilities()
    head = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITIES_VERSION_3, 0))
    none = ctypes.create_string_buffer(24)  # effective, permitted, inheritable; twice 32 bits
    if libc.capset(head, none):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def bound_capabilities() -> None:
    """Prevent programs started later, such as setuid programs, from regaining any capability."""
    for number in range(_MAX_CAPABILITIES):
        with suppress(OSError):  # this user is not root, or the capability does not exist
            prctl(_PR_CAPBSET_DROP, number)
