"""torch.compiler.disable and is_compiling."""

import torch


@torch.compiler.disable
def look():
    return torch.compiler.is_compiling()


def main(rank, world_size):
    @torch.compile(backend="eager")
    def f(x):
        return x + (1 if torch.compiler.is_compiling() else 0)

    return f(torch.zeros(1)), look()
