"""Functional collectives in one whole graph."""

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol


def main(rank, world_size):
    group = dist.group.WORLD

    @torch.compile(backend="aot_eager", fullgraph=True)
    def f(x):
        return funcol.all_reduce(x + 1, "sum", group) * 2

    return f(torch.tensor([float(rank)]))
