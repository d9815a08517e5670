"""Inside the walls: what a rank server gives up for itself and its ranks, before it serves.

`bubblewrap` and `landlocked` put a call of `confine` in front of the server's own program.
"""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Mapping, Sequence

_PR_SET_DUMPABLE = 4


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
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
    # No rank may read another's memory, or the server's, by /proc or ptrace. Ranks inherit it.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if readable or writable:
        from helpers.grading import landlock

        landlock.restrict(readable, writable)
    from helpers.grading import seccomp

    seccomp.install()
