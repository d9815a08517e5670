# %% containers | Nested lists, tuples, dictionaries, sets, ranges and bytes.
def main(rank, world_size):
    return {
        "list": [1, [2, (3, {"x": ()})]],
        (1, 2): {3, 4},
        None: frozenset({"a"}),
        "bytes": b"\x00\xff",
        "range": range(2, 9, 3),
        rank: "key is a number",
    }


# %% function | main returns a function, by mistake.
DIFFERS = {
    "untraced": ("CannotReturn", "only plain data comes back; mp.spawn drops what main returns"),
    "launch": ("CannotReturn", "only plain data comes back; mp.spawn drops what main returns"),
    "ranks": ([None, None], "a cell's value that is not plain data is printed on the rank"),
}


def main(rank, world_size):
    return main


# %% generator | main has a yield and so returns a generator.
DIFFERS = {
    "untraced": ("LaunchError", "refused before any rank starts: none of its lines would run"),
    "launch": ("LaunchError", "refused before any rank starts: none of its lines would run"),
    "ranks": ([None, None], "a cell's value that is not plain data is printed on the rank"),
}


def main(rank, world_size):
    yield rank


# %% infinities | Infinite values and NaN, as numbers and in tensors.
import torch


def main(rank, world_size):
    inf, nan = float("inf"), float("nan")
    return [inf, -inf, nan, complex(nan, inf)], torch.tensor([inf, nan, -inf])


# %% inside_itself | main returns a list that contains itself.
DIFFERS = {
    "untraced": ("CannotReturn", "a value without an end cannot be sent; the error says so"),
    "launch": ("CannotReturn", "a value without an end cannot be sent; the error says so"),
    "ranks": ([None, None], "a cell's value that is not plain data is printed on the rank"),
}


def main(rank, world_size):
    x = []
    x.append(x)
    return len(x) and x


# %% large_tensor | Ten megabytes from each rank.
import torch


def main(rank, world_size):
    g = torch.Generator().manual_seed(rank)
    return torch.randn(2_500_000, generator=g)


# %% many_parts | A list of fifty thousand small parts.
def main(rank, world_size):
    return [(i, str(i)) for i in range(50_000)]


# %% meta_tensor | main returns a tensor on the meta device, which has no values.
import torch

DIFFERS = {
    "untraced": ("CannotReturn", "a tensor without values cannot be sent; the error says so"),
    "launch": ("CannotReturn", "a tensor without values cannot be sent; the error says so"),
    "ranks": ([None, None], "a cell's value that is not plain data is printed on the rank"),
}


def main(rank, world_size):
    return torch.empty(2, device="meta")


# %% module | main returns a module.
import torch

DIFFERS = {
    "untraced": ("CannotReturn", "only plain data comes back; the error names state_dict"),
    "launch": ("CannotReturn", "only plain data comes back; the error names state_dict"),
    "ranks": ([None, None], "a cell's value that is not plain data is printed on the rank"),
}


def main(rank, world_size):
    return torch.nn.Linear(1, 1)


# %% named_tuple | A namedtuple is returned with its names.
from typing import NamedTuple


class Result(NamedTuple):
    loss: float
    steps: int


def main(rank, world_size):
    return Result(0.5, rank)


# %% nothing | main returns nothing.
def main(rank, world_size):
    pass


# %% numbers | Numbers of all kinds are returned unchanged.
def main(rank, world_size):
    return [0, -1, 2**62, 2**70, -(2**200), 1.5, 1e-300, -0.0, True, None, 3 + 4j]


# %% numpy | Arrays and scalars of numpy.
import numpy as np


def main(rank, world_size):
    x = np.arange(6, dtype=np.int32).reshape(2, 3)
    return (
        x,
        x.T,
        x[0, 1],
        np.float32(0.1),
        np.array(3.5),
        np.array([True, False]),
        np.zeros((0, 2)),
    )


# %% own_object | main returns an object of a custom class.
DIFFERS = {
    "untraced": ("CannotReturn", "only plain data comes back; mp.spawn drops what main returns"),
    "launch": ("CannotReturn", "only plain data comes back; mp.spawn drops what main returns"),
    "ranks": ([None, None], "a cell's value that is not plain data is printed on the rank"),
}


class Result:
    loss = 0.5


def main(rank, world_size):
    return Result()


# %% parameter | A parameter, and a tensor that needs a gradient.
import torch


def main(rank, world_size):
    p = torch.nn.Parameter(torch.ones(2) * rank)
    return p, p * 2


# %% sizes_and_dtypes | Shapes, dtypes and devices.
import torch


def main(rank, world_size):
    x = torch.zeros(2, 3, dtype=torch.float16)
    return x.shape, x.dtype, x.device, x.stride()


# %% state_dict | A model's state_dict.
import torch


def main(rank, world_size):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2)).state_dict()


# %% tensors | Tensors of each dtype, empty ones, scalars and views.
import torch


def main(rank, world_size):
    dtypes = [torch.bool, torch.uint8, torch.int16, torch.int64, torch.float16, torch.bfloat16]
    dtypes += [torch.float64, torch.complex64]
    each = {str(d): torch.tensor([0, 1, 2]).to(d) for d in dtypes}
    x = torch.arange(12).reshape(3, 4)
    return each, torch.empty(0, 3), torch.tensor(7), x.t(), x[::2, 1:], x.expand(2, 3, 4)


# %% views_of_received | A view of a received buffer.
import torch
import torch.distributed as dist


def main(rank, world_size):
    box = torch.zeros(4)
    if rank == 0:
        dist.send(torch.arange(4.0), dst=1)
    else:
        dist.recv(box, src=0)
    return box[1:3]
