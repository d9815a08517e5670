"""A hook that all modules run."""

import torch

SETS = True
CALLS = []
torch.nn.modules.module.register_module_forward_hook(
    lambda module, inputs, output: CALLS.append(type(module).__name__)
)


def main(rank, world_size):
    torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU())(torch.ones(1))
    return CALLS
