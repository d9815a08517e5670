"""Hosts whose clocks differ: a time namespace has a monotonic clock of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.distributed as dist

from helpers import launch
from tests.hosts.network import network
from tests.hosts.network import why_not as why_no_network

AHEAD_S = 100_000


def why_not() -> str:
    """Say why there can be no such hosts here; "" if there can."""
    if why := why_no_network():
        return why
    words = ["unshare", "--time", "--fork", "--monotonic", str(AHEAD_S), "true"]
    made = subprocess.run(words, capture_output=True, text=True, timeout=20)
    return made.stderr.strip() if made.returncode else ""


pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.mark.soak
def test_times_of_hosts_with_other_clocks_are_aligned() -> None:
    def plays(rank: int, world_size: int) -> None:
        ball = torch.zeros(1)
        for _ in range(20):
            if rank == 0:
                dist.send(ball, 1)
                dist.recv(ball, 1)
            else:
                dist.recv(ball, 0)
                dist.send(ball, 0)
            dist.all_reduce(ball)

    ahead = f"unshare --time --fork --monotonic {AHEAD_S} {sys.executable}"
    with network("n1", "n2", python={"n2": ahead}) as net, net.machines() as machines:
        run = launch(plays, 2)
        clocks = {host.name: host for host in machines.servers().hosts}
    assert run.hosts == ("n1", "n2")
    # what is left of the difference is far less than it was, however busy the machine is
    error = clocks["n2"].clock_ns - clocks["n1"].clock_ns - AHEAD_S * 10**9
    assert abs(error) <= clocks["n2"].clock_within_ns + clocks["n1"].clock_within_ns
    messages = run.trace.messages()
    assert len(messages) == 40
    took = []
    for message in messages:
        assert message.recv is not None and message.recv.end_ns is not None
        took.append(message.recv.end_ns - message.send.start_ns)
    assert min(took) >= 0 and max(took) < AHEAD_S * 10**9 / 2
    for collective in run.trace.collectives():
        begun = max(call.start_ns for call in collective.calls)
        assert all(call.end_ns is not None and call.end_ns >= begun for call in collective.calls)
    print(f"the clocks were asked to within {error / 1e3:.0f} us")
