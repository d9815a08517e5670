"""The state of the generator is kept and put back."""

import torch


def main(rank, world_size):
    torch.manual_seed(rank)
    state = torch.get_rng_state()
    first = torch.rand(3)
    torch.set_rng_state(state)
    with torch.random.fork_rng():
        torch.rand(100)
    return torch.equal(first, torch.rand(3))
