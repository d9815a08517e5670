"""TCP ports: one that is free now, one that is held for a server to come."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def free_port() -> int:
    """Return a port on the loopback address that nobody uses at this moment.

    Another program may take it before you do, which is why frameworks rather let the server choose
    (port 0) and pass its choice on.
    """
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def held_port() -> Iterator[int]:
    """Hold a free port for a server that another process is about to open there.

    The system gives it to nobody who asks for any free port, while a server that asks for this very
    one (with SO_REUSEADDR, as a TCPStore's does) gets it, because nobody listens here.
    """
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", 0))
        yield int(sock.getsockname()[1])
