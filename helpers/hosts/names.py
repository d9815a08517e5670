"""Names and addresses of hosts."""

from __future__ import annotations

import socket

from helpers.ranks.failures import LaunchError


def host_in(address: str) -> str:
    """Return the host of an address such as "tcp://10.0.0.2:41234" or "tcp://[fe80::1]:41234"."""
    return address.rpartition("://")[2].rpartition(":")[0].strip("[]")


def check_host(name: str) -> None:
    """Raise LaunchError if nobody knows a host of this name."""
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        raise LaunchError(
            f"there is no host called {name!r}: its name cannot be resolved."
        ) from None
