"""Draw the README's picture: a ring, an overlapped all_reduce, on four real ranks."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.distributed as dist

from helpers import launch, span, timeline
from helpers.ranks.launcher import connect, disconnect


def ring_then_reduce(rank: int, world_size: int) -> None:
    """Send a token around the ring, then reduce a gradient while computing."""
    token, grad = torch.zeros(1), torch.ones(400_000)
    after, before = (rank + 1) % world_size, (rank - 1) % world_size
    if rank == 0:
        dist.send(token, after)
        dist.recv(token, before)
    else:
        dist.recv(token, before)
        dist.send(token + rank, after)
    work = dist.all_reduce(grad, async_op=True)
    with span("compute"):
        layer = torch.ones(260, 260)
        for _ in range(6):
            layer = layer @ layer / 260
    assert work is not None
    work.wait()


if __name__ == "__main__":
    connect().preload()
    launch(ring_then_reduce, 4)
    run = launch(ring_then_reduce, 4)
    picture = timeline(run, title="a token ring, then an all_reduce that overlaps with work")
    picture.save(Path(__file__).resolve().parents[2] / "docs" / "timeline.png")
    print(picture)
    disconnect()
