"""Short messages between processes of the course: JSON, a line each, with file descriptors attached.

Between a launcher and its rank server, a job's owner and its supervisor, a grader and its template.
None of them ever runs a learner's code: what ranks say goes through `wire` and is not trusted.
"""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Mapping, Sequence
from typing import Any

# Descriptors that go with one message: the kernel takes 253.
MAX_FDS = 240


class Messages:
    """One end of a stream socket. most_fds: how many descriptors may come at once; kept in `fds`.

    rest: what has come of a message that is not whole yet.
    """

    def __init__(self, sock: socket.socket, most_fds: int = 0) -> None:
        self.sock = sock
        self.fds: list[int] = []
        self._most_fds = most_fds
        self.rest = b""

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def hung_up(self) -> bool:
        """Tell whether the other end has closed: seen sooner than that its process has ended."""
        poll = select.poll()
        poll.register(self.sock, 0)
        return bool(poll.poll(0))

    def send(self, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """Send a message. Raise OSError if nobody can hear it any more."""
        # No line's end is in a message itself: JSON escapes those of its texts.
        data = json.dumps(message).encode() + b"\n"
        # The kernel may take a part of them. The descriptors go with the first byte, once.
        sent = socket.send_fds(self.sock, [data], fds) if fds else 0
        self.sock.sendall(data[sent:])

    def receive(self, wait_s: float | None = None) -> list[dict[str, Any]]:
        """Return the messages that have come, having waited at most so long for a word (None: forever).

        Raise EOFError when the other end has closed, or this one.
        """
        if self.sock.fileno() < 0:  # poll would raise a ValueError of its own
            raise EOFError("this end has closed")
        if wait_s is not None:
            poll = select.poll()  # not select(): a kernel may hold more than 1,024 descriptors
            poll.register(self.sock, select.POLLIN)
            if not poll.poll(wait_s * 1000):
                return []
        try:
            data = self._read()
        except ConnectionError:  # reset: it went with words of ours unread
            data = b""
        if not data:
            raise EOFError("the other end has disconnected")
        *lines, self.rest = (self.rest + data).split(b"\n")
        return [json.loads(line) for line in lines]

    def _read(self) -> bytes:
        if not self._most_fds:
            return self.sock.recv(1 << 16)
        data, fds, _, _ = socket.recv_fds(self.sock, 1 << 16, self._most_fds)
        self.fds += fds
        return data
