"""A function of torch replaced, a method added to one of its classes, a default put into a library's dict."""

import functools

import torch
import torch.nn.functional as F
from torch.utils.data._utils import collate

SETS = True
plain = F.gelu


@functools.wraps(plain)
def mine(x, approximate="none"):
    return plain(x, approximate=approximate) + 100


class Odd:
    pass


F.gelu = mine
torch.nn.Linear.area = lambda self: self.in_features * self.out_features
collate.default_collate_fn_map[Odd] = lambda batch, *, collate_fn_map=None: len(batch)


def main(rank, world_size):
    once = torch.nn.functional.gelu(torch.zeros(1)).item()
    return (
        once,
        F.gelu is mine,
        torch.nn.Linear(2, 3).area(),
        collate.default_collate([Odd(), Odd()]),
    )
