"""Describe the ranks of each host and the traffic between hosts, for every view.

If all ranks ran on this machine, the results are empty, and views do not mention hosts.
"""

from __future__ import annotations

from collections.abc import Sequence

from helpers.trace.events import Trace
from helpers.views.plain import one_line, plural

_MAX_HOSTS = 16
_MAX_NAME_CHARS = 60


def host_lines(trace: Trace) -> list[str]:
    """Return lines with each host's ranks, and with the numbers of messages and collectives between hosts."""
    if not trace.hosts:
        return []
    hosts = [
        f"{one_line(host, _MAX_NAME_CHARS)}: {_format_ranks(ranks)}"
        for host, ranks in trace.by_host.items()
    ]
    more = [f"{plural(len(hosts) - _MAX_HOSTS, 'more host')}"] if len(hosts) > _MAX_HOSTS else []
    messages, collectives = trace.messages(), trace.collectives()
    parts = [
        f"{sum(crossing):,} of {plural(len(crossing), noun)}"
        for noun, crossing in (
            ("message", [trace.between_hosts((m.src, m.dst)) for m in messages]),
            ("collective", [trace.between_hosts(c.group_ranks) for c in collectives]),
        )
        if crossing
    ]
    where = "; ".join([*hosts[:_MAX_HOSTS], *more])
    return [where, f"between hosts: {', '.join(parts) or 'nothing'}"]


def first_ranks(hosts: Sequence[str]) -> dict[int, str]:
    """Return the first rank of each host: rank -> host. hosts: the host of each rank."""
    return {rank: host for rank, host in enumerate(hosts) if not rank or host != hosts[rank - 1]}


def _format_ranks(ranks: Sequence[int]) -> str:
    """Write rank numbers, with consecutive ranks as a range."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > 2 and list(ranks) == list(range(ranks[0], ranks[-1] + 1)):
        return f"ranks {ranks[0]} to {ranks[-1]}"
    return f"ranks {', '.join(map(str, ranks[:_MAX_HOSTS]))}" + (
        ", …" if len(ranks) > _MAX_HOSTS else ""
    )
