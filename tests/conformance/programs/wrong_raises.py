# %% after_collective | A rank fails between two collectives.
import torch
import torch.distributed as dist

FAILS = "OverflowError"
WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.ones(1)
    dist.all_reduce(x)
    if rank == 2:
        raise OverflowError("the loss is too large")
    dist.all_reduce(x)


# %% all_ranks | Every rank divides by zero.
FAILS = "ZeroDivisionError"


def main(rank, world_size):
    return 1 / (rank - rank)


# %% assertion | An assert with a message.
FAILS = "AssertionError"


def main(rank, world_size):
    assert rank == 0, f"rank {rank} should not be here"


# %% base_exception | An error that is not an Exception.
FAILS = "Stop"


class Stop(BaseException):
    pass


def main(rank, world_size):
    raise Stop("enough")


# %% caught_and_returned | Each rank catches its error and returns the text.
def main(rank, world_size):
    try:
        return [10][rank] // rank
    except (IndexError, ZeroDivisionError) as error:
        return f"{type(error).__name__}: {error}"


# %% chained | An error raised from another one.
FAILS = "RuntimeError"


def main(rank, world_size):
    try:
        int("no number")
    except ValueError as error:
        raise RuntimeError("cannot read the config") from error


# %% custom | An error of a class of the cell.
FAILS = "DataError"


class DataError(ValueError):
    def __init__(self, row, why):
        super().__init__(f"row {row}: {why}")
        self.row = row


def main(rank, world_size):
    raise DataError(3, "no label")


# %% during_handling | An error while handling another one.
FAILS = "AttributeError"


def main(rank, world_size):
    try:
        1 / 0
    except ZeroDivisionError as error:
        return error.no_such_attribute


# %% group_of_errors | An ExceptionGroup.
FAILS = "ExceptionGroup"


def main(rank, world_size):
    raise ExceptionGroup("two things", [ValueError("one"), KeyError("two")])


# %% import_time | An error at module level, before any rank begins.
FAILS = "ZeroDivisionError"

RATE = 1 / 0


def main(rank, world_size):
    return RATE


# %% in_backward | An error in the backward of an autograd function of the cell.
import torch

FAILS = "RuntimeError"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("no gradient today")


def main(rank, world_size):
    Broken.apply(torch.ones(1, requires_grad=True)).backward()


# %% in_callback | A KeyError in the callback of a future.
import torch
import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    future = dist.all_reduce(torch.ones(1), async_op=True).get_future()

    def look(f):
        return {}["nothing"]

    return future.then(look).wait()


# %% in_finally | finally runs on the failing rank, with visible output.
FAILS = "IndexError"


def main(rank, world_size):
    try:
        return [1, 2][5]
    finally:
        print("cleaned up")


# %% key_error | A missing key.
FAILS = "KeyError"


def main(rank, world_size):
    return {"loss": 1.0}["accuracy"]


# %% local_unbound | A local name without a value.
FAILS = "UnboundLocalError"


def main(rank, world_size):
    if rank > 5:
        value = 1
    return value


# %% main_without_arguments | main takes no arguments.
FAILS = "TypeError"
DIFFERS = {
    "untraced": (
        "LaunchError",
        "launch looks at the parameters first, and says which ones main must have.",
    ),
    "launch": (
        "LaunchError",
        "launch looks at the parameters first, and says which ones main must have.",
    ),
}


def main():
    return 1


# %% many_lines | An error with a text of many lines.
FAILS = "RuntimeError"


def main(rank, world_size):
    raise RuntimeError("first line\nsecond line\n\nlast line")


# %% name_error | An undefined name.
FAILS = "NameError"


def main(rank, world_size):
    return undefined_thing


# %% notes | An error with notes.
FAILS = "ValueError"


def main(rank, world_size):
    error = ValueError("wrong batch")
    error.add_note(f"seen on rank {rank}")
    error.add_note("look at the loader")
    raise error


# %% odd_text | An error whose text cannot be created.
FAILS = "Odd"


class Odd(Exception):
    def __str__(self):
        raise TypeError("no text for you")


def main(rank, world_size):
    raise Odd


# %% one_rank | One rank raises while the others wait for it.
import torch
import torch.distributed as dist

FAILS = "ValueError"
WORLD_SIZE = 3


def main(rank, world_size):
    if rank == 1:
        raise ValueError("rank 1 has bad data")
    dist.all_reduce(torch.ones(1))


# %% os_error | A missing file, with the error's number and the file's name.
FAILS = "FileNotFoundError"


def main(rank, world_size):
    with open("no-such-config.yaml") as file:
        return file.read()


# %% shape_of_matmul | Matrices of mismatched shapes.
import torch

FAILS = "RuntimeError"


def main(rank, world_size):
    return torch.ones(2, 3) @ torch.ones(2, 3)


# %% stop_iteration | next() of an empty iterator.
FAILS = "StopIteration"


def main(rank, world_size):
    return next(iter([]))


# %% two_causes | Two ranks fail for independent reasons: the earlier failure counts.
import time

FAILS = "KeyError"


def main(rank, world_size):
    if rank == 1:
        raise KeyError("early")
    time.sleep(8)
    raise ValueError("late")
