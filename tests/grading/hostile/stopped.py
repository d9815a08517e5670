"""Answers that stop, by SIGSTOP, a process for which another one waits: no process may wait forever.

The first stops itself, the second its peers, the third the rank server, if the sandbox lets a rank reach it.
"""

from __future__ import annotations

from tests.grading.hostile.attack import Attack

_NEVER = ("timed out", "deadlocked")


def _attack(name: str, lines: str, *outcomes: str, says: str = "") -> Attack:
    body = "\n".join("    " + line for line in lines.strip("\n").splitlines())
    head = "import os, signal\nimport torch.distributed as dist"
    source = f"{head}\ndef attack(rank, world_size, *inputs):\n{body}"
    return Attack(name, source, outcomes, says)


STOPS = (
    _attack("SIGSTOP to itself", "os.kill(os.getpid(), signal.SIGSTOP)", *_NEVER),
    _attack(
        "SIGSTOP to its peers",
        """
pids = [None] * world_size
dist.all_gather_object(pids, os.getpid())
if rank == 0:
    for pid in pids[1:]:
        os.kill(pid, signal.SIGSTOP)
dist.barrier()
""",
        *_NEVER,
    ),
    _attack(
        "SIGSTOP to the rank server",
        """
for number in (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGSTOP):
    os.kill(os.getppid(), number)
return "sent"
""",
        *_NEVER,
        "wrong",
        says="sent",
    ),
)
"""Attacks that end only at the deadline of their case."""
