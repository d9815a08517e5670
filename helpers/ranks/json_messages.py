"""Short messages between processes of the course: one line of JSON each, with file descriptors attached.

These messages connect a launcher with its rank server, a job's owner with its supervisor, and a grader with
its template. None of these processes runs a learner's code. Data from ranks goes through `wire` and is not
trusted.
"""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Mapping, Sequence
from typing import Any

# Descriptors for one message; the kernel's limit is 253.
MAX_FDS = 240


class Messages:
    """One end of a stream socket.

    Args:
        sock: The socket.
        max_fds: Maximum number of descriptors to accept at once. The descriptors are kept in `fds`.
    """

    def __init__(self, sock: socket.socket, max_fds: int = 0) -> None:
        self.sock = sock
        self.fds: list[int] = []
        self._most_fds = max_fds
        self.rest = b""  # the beginning of a message that has not fully arrived

    def fileno(self) -> int:
        return self.sock.fileno()

    def close(self) -> None:
        self.sock.close()

    def peer_has_closed(self) -> bool:
        """Return whether the other end has closed, which is noticed sooner than the exit of its process."""
        poll = select.poll()
        poll.register(self.sock, 0)
        return bool(poll.poll(0))

    def send(self, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """Send a message. Raise OSError if the other end has closed."""
        # JSON escapes line ends inside strings, so a message contains none.
        data = json.dumps(message).encode() + b"\n"
        # The kernel may accept only part of the message. The descriptors are sent once, with the first byte.
        sent = socket.send_fds(self.sock, [data], fds) if fds else 0
        self.sock.sendall(data[sent:])

    def receive(self, wait_s: float | None = None) -> list[dict[str, Any]]:
        """Return the messages that have arrived.

        Args:
            wait_s: Maximum wait for the first data, in seconds; None waits without a limit.

        Raises:
            EOFError: The other end, or this end, has closed.
        """
        if self.sock.fileno() < 0:  # Otherwise poll would raise ValueError.
            raise EOFError("this end has closed")
        if wait_s is not None:
            poll = select.poll()  # select() fails if a kernel holds more than 1,024 descriptors.
            poll.register(self.sock, select.POLLIN)
            if not poll.poll(wait_s * 1000):
                return []
        try:
            data = self._read()
        except ConnectionError:
            # A reset means that the other end closed without reading all of our data.
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
