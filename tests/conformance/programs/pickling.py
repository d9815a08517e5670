# %% by_main | The cell's names are those of the module __main__.
import sys

LIKE = "torchrun"


class Thing:
    pass


def main(rank, world_size):
    module = sys.modules["__main__"]
    return Thing.__module__, module.Thing is Thing, getattr(module, "main", None) is main


# %% cached_function | A function with functools.cache is pickled by its name.
import functools
import pickle


@functools.cache
def slow(n):
    return n * n


def main(rank, world_size):
    again = pickle.loads(pickle.dumps(slow))
    return again(4), again is slow, slow.cache_info().hits


# %% class_gathered | Objects of a class of the cell are sent by all_gather_object.
import torch.distributed as dist


class Point:
    def __init__(self, x, y):
        self.x, self.y = x, y


def main(rank, world_size):
    points = [None] * world_size
    dist.all_gather_object(points, Point(rank, rank * 2))
    return [(p.x, p.y, type(p) is Point) for p in points]


# %% dataclass | A dataclass of the cell is sent to all ranks.
from dataclasses import asdict, dataclass, field

import torch.distributed as dist


@dataclass(frozen=True)
class Config:
    lr: float = 0.1
    layers: list = field(default_factory=list)


def main(rank, world_size):
    box = [Config(0.5, [1, 2]) if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return asdict(box[0]), isinstance(box[0], Config)


# %% deepcopy | copy.deepcopy of models, tensors and objects of the cell.
import copy

import torch


class Box:
    def __init__(self, x):
        self.x = x


def main(rank, world_size):
    box = Box(torch.ones(2))
    other = copy.deepcopy(box)
    other.x.add_(1)
    net = copy.deepcopy(torch.nn.Linear(1, 1))
    return box.x, other.x, type(other) is Box, net.weight.shape


# %% enum | A member of an enum of the cell is the same member on another rank.
from enum import Enum

import torch.distributed as dist


class Color(Enum):
    RED = 1
    BLUE = 2


def main(rank, world_size):
    box = [Color.BLUE if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0] is Color.BLUE, box[0].name


# %% exception_gathered | Errors of a class of the cell are gathered as values.
import torch.distributed as dist


class MyError(Exception):
    def __init__(self, code):
        super().__init__(code)
        self.code = code


def main(rank, world_size):
    errors = [None] * world_size
    dist.all_gather_object(errors, MyError(rank * 10))
    return [error.code for error in errors], isinstance(errors[0], MyError)


# %% function_gathered | A function of the cell is sent to the other rank, which calls it.
import torch.distributed as dist


def double(x):
    return 2 * x


def main(rank, world_size):
    functions = [None] * world_size
    dist.all_gather_object(functions, double)
    return [f(rank + 1) for f in functions], functions[0] is double


# %% lambda_fails | A lambda cannot be pickled, whatever the kind of error.
import pickle

import torch.distributed as dist


def main(rank, world_size):
    box = [None] * world_size
    try:
        dist.all_gather_object(box, lambda x: x)
    except (AttributeError, pickle.PicklingError) as error:
        return "pickle" in str(error)


# %% local_class_fails | A class made inside main cannot be pickled.
import pickle


def main(rank, world_size):
    class Inner:
        pass

    try:
        pickle.dumps(Inner())
    except (AttributeError, pickle.PicklingError) as error:
        return "local object" in str(error)


# %% module_instance | A module of a class of the cell is sent as an object.
import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.w = torch.nn.Parameter(torch.full((n,), 3.0))


def main(rank, world_size):
    box = [Net(2) if rank == 0 else None]
    dist.broadcast_object_list(box, src=0)
    return box[0].w, type(box[0]).__name__


# %% namedtuple | A namedtuple of the cell is gathered.
from collections import namedtuple

import torch.distributed as dist

Step = namedtuple("Step", "rank loss")


def main(rank, world_size):
    steps = [None] * world_size
    dist.all_gather_object(steps, Step(rank, rank / 2))
    return [(s.rank, s.loss) for s in steps], type(steps[0]) is Step


# %% optimizer_in_file | torch.save of a dictionary with an object of the cell's class and an optimizer's state.
import io

import torch


class Metrics:
    def __init__(self):
        self.losses = [1.0, 0.5]


def main(rank, world_size):
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    file = io.BytesIO()
    torch.save({"opt": optimizer.state_dict(), "m": Metrics()}, file)
    file.seek(0)
    got = torch.load(file, weights_only=False)
    return got["m"].losses, got["opt"]["param_groups"][0]["lr"]


# %% reduce | A class with a custom __reduce__.
import pickle


class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

    def __reduce__(self):
        return Pair, (self.b, self.a)


def main(rank, world_size):
    pair = pickle.loads(pickle.dumps(Pair(1, 2)))
    return pair.a, pair.b


# %% slots_and_state | Slots and __getstate__ are pickled.
import pickle


class Point:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __getstate__(self):
        return (self.x, self.y)

    def __setstate__(self, state):
        self.x, self.y = state


def main(rank, world_size):
    p = pickle.loads(pickle.dumps(Point(rank, 5)))
    return p.x, p.y
