"""Answers that communicate with the outside. {port}, {abstract} and {path} are the test's listeners."""

from __future__ import annotations

from tests.grading.hostile.attack import Attack

_SOURCE = """
import socket
def to(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as talk:
        talk.settimeout(1.0)
        talk.connect(address)
        return talk.send(b"hello")
def attack(rank, world_size, *inputs):
    return tried(
        {attempts}
    )
"""
_ATTEMPTS = {
    "loopback": 'to(socket.AF_INET, ("127.0.0.1", {port}))',
    "machine": 'to(socket.AF_INET, ("{address}", {port}))',
    "path": 'to(socket.AF_UNIX, "{path}")',
    "outside": 'to(socket.AF_INET, ("192.0.2.1", 80), socket.SOCK_DGRAM)',
}
_NEVER = {
    "abstract": 'to(socket.AF_UNIX, "\\0{abstract}")',
    "vsock": "socket.socket(40, socket.SOCK_STREAM)",
    "packet": "socket.socket(17, socket.SOCK_RAW)",
    "raw": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "crypto": "socket.socket(38, socket.SOCK_SEQPACKET)",
}


def _attack(name: str, attempts: dict[str, str], bare: bool) -> Attack:
    lines = "\n        ".join(f"{key}=lambda: {code}," for key, code in attempts.items())
    return Attack(name, _SOURCE.replace("{attempts}", lines), says="contained", bare=bare)


NETWORK = _attack("this machine's network and sockets", _ATTEMPTS, True)
NEVER = _attack("sockets of other kinds", _NEVER, False)
"""An attack that must fail at every level, however weak."""
