"""A limit on memory: a tensor that is too large raises."""

import resource

import torch

FAILS = "RuntimeError"


def main(rank, world_size):
    now = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + (256 << 20), -1))
    return torch.zeros(1 << 30).sum()
