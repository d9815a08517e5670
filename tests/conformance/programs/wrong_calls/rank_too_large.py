"""A destination that no rank has: gloo waits for it."""

import torch
import torch.distributed as dist

FAILS = "hang"
DIFFERS = {
    "untraced": (
        "SIGSEGV|RankTimeout",
        "gloo reads beyond its list of pairs, and what it finds in memory there is chance.",
    ),
    "launch": (
        "ValueError",
        "The recorder looks at the peer first: gloo reads beyond its list of pairs.",
    ),
    "ranks": (
        "ValueError",
        "The recorder looks at the peer first: gloo reads beyond its list of pairs.",
    ),
}


def main(rank, world_size):
    dist.send(torch.ones(1), dst=world_size)
