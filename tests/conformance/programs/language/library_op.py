"""An operator of one's own by torch.library.custom_op."""

import torch


@torch.library.custom_op("conformance::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def main(rank, world_size):
    return torch.ops.conformance.twice(torch.ones(2) * rank)
