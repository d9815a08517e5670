"""Check and parse names and addresses of hosts."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from helpers.ranks.failures import LaunchError


def host_in(address: str) -> str:
    """Return the host of an address such as "tcp://10.0.0.2:41234" or "tcp://[fe80::1]:41234"."""
    return urlsplit(address).hostname or ""


def check_text(*names: object) -> None:
    """Raise LaunchError if one of these is not a string."""
    for name in names:
        if not isinstance(name, str):
            raise LaunchError(
                f"{name!r} is a {type(name).__name__}, but a name or an address must be a string."
            )


def check_count(unit: str, count: object, min_count: int) -> None:
    """Raise LaunchError if `count` is not a valid number of hosts."""
    if isinstance(count, bool) or not isinstance(count, int) or count < min_count:
        raise LaunchError(
            f"{unit} takes a whole number of hosts, at least {min_count}; got {count!r}."
        )


def check_address(address: str) -> None:
    """Raise LaunchError if `address` is not a scheduler's address, or if its host cannot be resolved."""
    try:
        host, port = host_in(address), urlsplit(address).port
    except ValueError:  # the port is not a number
        host, port = "", None
    if not host or port is None:
        raise LaunchError(
            f"{address!r} is not the address of a Dask scheduler, which is tcp://HOST:PORT: "
            "`dask scheduler` prints it."
        )
    try:
        socket.getaddrinfo(host, None)
    except OSError:
        raise LaunchError(
            f"there is no host called {host!r}: its name cannot be resolved."
        ) from None
