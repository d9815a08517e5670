"""set_epoch changes the order; without it each epoch has the same one."""

from torch.utils.data.distributed import DistributedSampler


def main(rank, world_size):
    sampler = DistributedSampler(range(12), seed=3)
    first, again = list(sampler), list(sampler)
    sampler.set_epoch(1)
    return first, first == again, list(sampler) == first
