"""A TCP port that is free now."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Give a port on the loopback address that nobody uses at this moment.

    Another program may take it before you do, which is why frameworks rather let the server choose
    (port 0) and pass its choice on.
    """
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])
