# %% argparse | argparse with defaults, as in every training script.
import argparse

LIKE = "torchrun"


def main(rank, world_size):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    return vars(args)


# %% argparse_list | argparse with arguments given as a list.
import argparse


def main(rank, world_size):
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float)
    return parser.parse_args(["--lr", str(0.5 + rank)]).lr


# %% argv | A script's arguments: only its name.
import sys

LIKE = "torchrun"


def main(rank, world_size):
    return len(sys.argv)


# %% csv_and_json | Each rank writes a csv and a json file, and reads them again.
import csv
import json
import os


def main(rank, world_size):
    with open(f"rank{rank}.csv", "w", newline="") as file:
        csv.writer(file).writerows([["step", "loss"], [1, 0.5 * rank]])
    with open(f"rank{rank}.csv", newline="") as file:
        rows = list(csv.reader(file))
    with open(f"rank{rank}.json", "w") as file:
        json.dump(rows, file)
    with open(f"rank{rank}.json") as file:
        again = json.load(file)
    os.unlink(f"rank{rank}.csv")
    os.unlink(f"rank{rank}.json")
    return rows == again, rows


# %% cwd | Ranks start in one folder, and chdir only moves one rank.
import os

import torch.distributed as dist


def main(rank, world_size):
    start = os.getcwd()
    if rank == 0:
        os.chdir("/")
    dist.barrier()
    seen = [None] * world_size
    dist.all_gather_object(seen, start)
    return len(set(seen)), os.getcwd() == "/"


# %% dunder_file | A script knows its file; a cell has none.
import os

DIFFERS = {
    "untraced": ("NameError", "a cell is not a file, in a notebook as on a rank"),
    "launch": ("NameError", "a cell is not a file, in a notebook as on a rank"),
    "ranks": ("NameError", "a cell is not a file, in a notebook as on a rank"),
}


def main(rank, world_size):
    return os.path.splitext(__file__)[1]


# %% dunder_name | __name__ of a script run by torchrun.
LIKE = "torchrun"


def main(rank, world_size):
    return __name__, main.__module__


# %% environment | A variable set on one rank is not visible to others.
import os

import torch.distributed as dist


def main(rank, world_size):
    os.environ[f"MINE_{rank}"] = "set"
    dist.barrier()
    return sorted(name for name in os.environ if name.startswith("MINE_")), os.getenv("NOT_THERE")


# %% lock_file | A lock on a file lets ranks in one after the other.
import fcntl
import os

import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    with open("counter.txt", "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        count = len(file.read())
        file.write("x")
        file.flush()
        os.fsync(file.fileno())
    counts = [None] * world_size
    dist.all_gather_object(counts, count)
    return sorted(counts)


# %% numpy_files | numpy saves and loads, with a memory map.
import os

import numpy as np


def main(rank, world_size):
    name = f"array{rank}.npy"
    np.save(name, np.arange(6).reshape(2, 3) * (rank + 1))
    x = np.load(name, mmap_mode="r")
    total = int(x.sum())
    os.unlink(name)
    return total


# %% open_descriptors | A new process has none of the kernel's files open.
import os


def main(rank, world_size):
    names = []
    for fd in range(3, 200):
        if os.path.exists(f"/proc/self/fd/{fd}"):
            names.append(os.readlink(f"/proc/self/fd/{fd}"))
    return [name for name in names if name.endswith((".ipynb", ".sqlite", ".json"))]


# %% own_temporary | NamedTemporaryFile and TemporaryDirectory, separate on each rank.
import os
import tempfile


def main(rank, world_size):
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("abc")
        file.seek(0)
        text = file.read()
    with tempfile.TemporaryDirectory() as folder:
        there = os.path.isdir(folder)
    return text, there, os.path.exists(folder)


# %% relative_path | A relative path is the same file for all ranks: rank 0 writes, the others read.
from pathlib import Path

import torch.distributed as dist


def main(rank, world_size):
    file = Path("results.txt")
    if rank == 0:
        file.write_text("written by rank 0")
    dist.barrier()
    return file.read_text()


# %% source_of_class | inspect.getsource and signature of a class of the cell.
import inspect

DIFFERS = {
    "untraced": (
        "OSError",
        "inspect asks for a class by its file, and a cell is none, as in any kernel",
    ),
    "launch": (
        "OSError",
        "inspect asks for a class by its file, and a cell is none, as in any kernel",
    ),
    "ranks": (
        "OSError",
        "inspect asks for a class by its file, and a cell is none, as in any kernel",
    ),
}


class Thing:
    """A thing."""

    def __init__(self, a, b=2):
        self.a, self.b = a, b


def main(rank, world_size):
    return (
        inspect.getdoc(Thing),
        str(inspect.signature(Thing)),
        "self.a" in inspect.getsource(Thing),
    )


# %% source_of_function | inspect.getsource returns a function's text on a rank.
import inspect


def helper(x):
    return x + 1


def main(rank, world_size):
    return inspect.getsource(helper)


# %% temp_dir_shared | All ranks have the same temp directory.
import os
import tempfile

import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    seen = [None] * world_size
    dist.all_gather_object(seen, (tempfile.gettempdir(), os.environ.get("TMPDIR")))
    return len(set(seen))


# %% temp_name_shared | Rank 0 makes a temp directory and sends its name to the others.
import os
import tempfile
from pathlib import Path

import torch.distributed as dist


def main(rank, world_size):
    name = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(name, src=0)
    folder = Path(name[0])
    (folder / f"{rank}.txt").write_text(f"rank {rank}")
    dist.barrier()
    texts = [(folder / f"{r}.txt").read_text() for r in range(world_size)]
    dist.barrier()
    if rank == 0:
        for file in folder.iterdir():
            file.unlink()
        os.rmdir(folder)
    return texts
