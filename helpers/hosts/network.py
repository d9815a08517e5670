"""Find a host's network interface, reserve ports on the host, and test connections to other hosts."""

from __future__ import annotations

import socket

import psutil

from helpers.hosts.names import host_in

_REACH_S = 3.0


def find_interface(name: str, address: str) -> tuple[str, str]:
    """Return a network interface and its address.

    name: the interface's name, or "" for the interface with `address` (a Dask worker's address, such as
    "tcp://10.0.0.2:41234"). Raise ValueError if there is no such interface.
    """
    host = host_in(address)
    have = {
        each: [a.address for a in some if a.family in {socket.AF_INET, socket.AF_INET6}]
        for each, some in psutil.net_if_addrs().items()
    }
    if name:
        if not have.get(name):
            raise ValueError(
                f"no network interface {name!r} has an address; available: {', '.join(have)}"
            )
        return name, have[name][0]
    for each, addresses in have.items():
        if host in addresses:
            return each, host
    raise ValueError(f"no network interface has the Dask worker's address {host}")


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def held_port(address: str) -> socket.socket:
    """Return a socket that keeps a port for the ranks of a launch.

    The socket is bound but does not listen, so rank 0's store can listen at the port, but no other program
    can take it.
    """
    held = socket.socket(family(address))
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((address, 0))
    return held


def connection_error(other: tuple[str, int]) -> str:
    """Connect to an address and a port. Return the error, or "" if there is none."""
    try:
        address, port = other
        socket.create_connection((address, port), timeout=_REACH_S).close()
    except OSError as error:
        return str(error.strerror or error)
    return ""
