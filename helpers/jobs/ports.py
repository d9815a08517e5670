"""TCP ports: find a free port, or hold one for a later server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager


def free_port() -> int:
    """Return a port on the loopback address that is free at this moment.

    Another program may take the port before you use it. So frameworks prefer to let the server choose a port
    (port 0) and to pass the choice on.
    """
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def held_port() -> Iterator[int]:
    """Hold a free port for a server that another process is about to open.

    The system does not assign a held port to programs that ask for any free port. A server that asks for this
    port with SO_REUSEADDR, such as a TCPStore, obtains it, because no socket is listening at the port.
    """
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("127.0.0.1", 0))
        yield int(sock.getsockname()[1])
