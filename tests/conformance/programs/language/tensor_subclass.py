"""A subclass of Tensor with __torch_function__."""

import torch


class Counted(torch.Tensor):
    calls = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(getattr(func, "__name__", "?"))
        return super().__torch_function__(func, types, args, kwargs or {})


def main(rank, world_size):
    x = torch.ones(2).as_subclass(Counted)
    y = (x + rank).sum()
    return float(y), "sum" in Counted.calls, type(y).__name__
