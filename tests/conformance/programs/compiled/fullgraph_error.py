"""fullgraph=True over a break of the graph is an error."""

import torch

FAILS = "Unsupported"


def main(rank, world_size):
    @torch.compile(backend="eager", fullgraph=True)
    def f(x):
        if x.sum() > 0:
            return x
        return -x

    return f(torch.ones(1))
