"""The module level sets names of modules and of their classes."""

import string

import torch
import torch.nn.functional as F
from torch.nn import Identity


def twice(x):
    return 2 * x


F.relu = twice
string.SCALE = 10
torch.nn.Tanh.forward = lambda self, x: x
Identity.forward = lambda self, x: -x
torch.nn.scale = 3


def main(rank, world_size):
    x = torch.ones(1)
    return F.relu(x), string.SCALE, torch.nn.Tanh()(x), Identity()(x), torch.nn.scale
