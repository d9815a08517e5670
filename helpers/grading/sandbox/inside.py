"""Inside the sandbox: what a rank server gives up for itself and its ranks, before it serves.

`template_inside` and `landlocked` call `confine` before the server's own program.
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
_MOST_CAPABILITIES = 64
_CPU_GRACE_S = 2


def confine(
    limits: Mapping[str, int],
    readable: Sequence[str] = (),
    writable: Sequence[str] = (),
) -> None:
    """Lower what this process and all that it starts may use; there is no way back.

    limits: names of resource limits without RLIMIT_ ("DATA", in bytes), as setrlimit wants them.
    readable, writable: if given, no other paths can be reached (Landlock). Raise OSError where the kernel
    cannot do it.
    """
    for name, value in limits.items():
        # SIGXCPU tells why, and who does not hear it is killed a little later
        most = value + _CPU_GRACE_S if name == "CPU" else value
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, most))
    drop_capabilities()
    # No rank may read another's memory, or the server's, by /proc or ptrace. Ranks inherit it.
    prctl(_PR_SET_DUMPABLE, 0)
    if readable or writable:
        from helpers.grading.sandbox import landlock

        landlock.restrict(readable, writable)
    # The filter comes last, as the steps before it may need calls that it refuses.
    from helpers.grading.sandbox import seccomp

    seccomp.install(metadata=not (readable or writable))


def drop_capabilities() -> None:
    """Give up what root may do beyond its own files: lift limits, configure the network, and so on."""
    # The bounding set comes first: shrinking it needs CAP_SETPCAP, which goes with the rest.
    libc = ctypes.CDLL(None, use_errno=True)
    bound_capabilities()
    head = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITIES_VERSION_3, 0))
    none = ctypes.create_string_buffer(24)  # effective, permitted, inheritable; twice 32 bits
    if libc.capset(head, none):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def bound_capabilities() -> None:
    """See to it that no program started later, of any owner, brings any of them back."""
    for number in range(_MOST_CAPABILITIES):
        with suppress(OSError):  # not root, or no such capability
            prctl(_PR_CAPBSET_DROP, number)
