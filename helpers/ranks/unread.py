"""What is in the TCP connections of a process and has not been read, as the kernel reports it."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"


def queues_of(pid: int) -> dict[int, tuple[int, int]] | None:
    """Return (bytes not yet sent off, bytes not yet read) for each connection of a process, by its inode.

    None where the kernel does not tell: the process has ended, or is in a sandbox.
    """
    with suppress(OSError, ValueError):
        own = set()
        for name in os.listdir(f"/proc/{pid}/fd"):
            target = os.readlink(f"/proc/{pid}/fd/{name}")
            if target.startswith("socket:["):
                own.add(int(target[8:-1]))
        found = {}
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                _, _, _, state, queues, _, _, _, _, inode, *_ = line.split()
                if state != _LISTENS and int(inode) in own:
                    sent, unread = queues.split(":")
                    found[int(inode)] = int(sent, 16), int(unread, 16)
        return found
    return None
