"""Close connections that stay open without sending a request.

uvicorn's limit counts all connections alike. So a stranger who opens thousands of connections without sending
any request would shut the class out. In this module, a connection is *waiting* until the board has received a
complete request:

    open -> waiting, at most WAIT_S -> request -> answer -> waiting again, or closed
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import defaultdict
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 8_000
"""The number of open connections at which only the teacher and joined learners still get an answer."""
MAX_WAIT_S = 10.0
MAX_WAITING = 40
"""Maximum number of connections per address that wait for more than a second without a token."""
_SWEEP_S = 1.0


class Connections:
    """The open connections of one board."""

    def __init__(self) -> None:
        self._open: set[H11Protocol] = set()
        self._known: set[tuple[str, int]] = set()
        self._waiting: dict[H11Protocol, tuple[object, float]] = {}

    @property
    def is_full(self) -> bool:
        """Whether only known clients get an answer."""
        return len(self._open) >= MAX_CONNECTIONS

    def mark_known(self, client: tuple[str, int]) -> None:
        """Note that this host and port belong to the teacher or to a joined learner."""
        self._known.add(client)

    def protocol(self) -> type[asyncio.Protocol]:
        """Return uvicorn's protocol, extended to count its connections in this object."""
        connections = self

        class CountedProtocol(H11Protocol):
            def connection_made(self, transport: Any) -> None:
                super().connection_made(transport)
                connections._open.add(self)

            def connection_lost(self, exc: Exception | None) -> None:
                super().connection_lost(exc)
                connections._open.discard(self)
                connections._waiting.pop(self, None)
                if self.client is not None:
                    connections._known.discard(self.client)

        return CountedProtocol

    async def sweep(self) -> None:
        """Close connections that have been waiting for too long, until cancelled."""
        while True:
            await asyncio.sleep(_SWEEP_S)
            self._close_waiting(time.monotonic())

    def _close_waiting(self, now: float) -> None:
        unknown = defaultdict[str, list[tuple[float, H11Protocol]]](list)
        for each in list(self._open):
            cycle = each.cycle  # this is None before the first request
            if cycle is not None and not cycle.response_complete and not cycle.more_body:
                self._waiting.pop(each, None)  # the board is working on a request
                continue
            before, since = self._waiting.get(each, (cycle, now))
            since = since if before is cycle else now  # otherwise there was a request in between
            self._waiting[each] = cycle, since
            if now - since > MAX_WAIT_S:
                each.transport.abort()
            elif each.client not in self._known and now - since >= _SWEEP_S:
                unknown[network_key(each.client[0] if each.client else "")].append((since, each))
        for waiting in unknown.values():
            waiting.sort(key=lambda item: item[0])
            for _, each in waiting[:-MAX_WAITING]:
                each.transport.abort()


def network_key(host: str) -> str:
    """Return the host's IPv4 address, or the /64 of an IPv6 address, which belongs to one machine."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:  # the form of IPv4 addresses for sockets that listen on ::
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))
