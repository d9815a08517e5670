"""A host whose clock is ahead: no message arrives before it was sent."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from helpers import launch
from helpers.views.timeline import timeline
from tests.hosts.network import network, why_not

AHEAD_S = 100_000

pytestmark = [
    pytest.mark.soak,
    pytest.mark.timeout(240),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


def test_messages_arrive_after_being_sent() -> None:
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

    with network("n1", "n2", ahead_s={"n2": AHEAD_S}) as net, net.machines():
        run = launch(plays, 2)
    took = []
    for message in run.trace.messages():
        assert message.recv is not None and message.recv.end_ns is not None
        took.append(message.recv.end_ns - message.send.start_ns)
    assert len(took) == 40 and min(took) >= 0
    assert max(took) < AHEAD_S * 1e9 / 2, "the difference of the clocks is not in the times"
    for collective in run.trace.collectives():
        begun = max(call.start_ns for call in collective.calls)
        assert all(call.end_ns is not None and call.end_ns >= begun for call in collective.calls)
    picture = timeline(run)
    assert (
        "n1: rank 0; n2: rank 1\nbetween hosts: 40 of 40 messages, 20 of 20 collectives"
        in picture.text
    )
