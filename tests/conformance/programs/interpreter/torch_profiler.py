"""torch.profiler sees the operations of a rank."""

import torch
from torch.profiler import ProfilerActivity, profile


def main(rank, world_size):
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        torch.mm(torch.ones(4, 4), torch.ones(4, 4))
    return "aten::mm" in {event.key for event in seen.key_averages()}
