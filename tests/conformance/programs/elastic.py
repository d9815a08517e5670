# %% all_variables | The variables read by torchrun's workers: numbers of restarts, groups and roles.
import os

LIKE = "torchrun"
INIT = False


def main(rank, world_size):
    numbers = ["GROUP_RANK", "ROLE_RANK", "ROLE_WORLD_SIZE", "GROUP_WORLD_SIZE"]
    numbers += ["TORCHELASTIC_RESTART_COUNT", "TORCHELASTIC_MAX_RESTARTS"]
    found = {name: os.environ.get(name) for name in numbers}
    return found, "TORCHELASTIC_RUN_ID" in os.environ


# %% checks_for_torchrun | A script that stops with a hint if it was not started by torchrun.
import os
import sys

LIKE = "torchrun"


def main(rank, world_size):
    if "LOCAL_RANK" not in os.environ or "MASTER_ADDR" not in os.environ:
        sys.exit("start this script with torchrun")
    return "started by torchrun"


# %% local_rank_argument | A script that reads its rank from the environment and not from its arguments.
import os

import torch
import torch.distributed as dist

LIKE = "torchrun"
WORLD_SIZE = 3


def train():
    local_rank = int(os.environ["LOCAL_RANK"])
    x = torch.tensor([local_rank * int(os.environ["WORLD_SIZE"])])
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    return x


def main(rank, world_size):
    return train()


# %% record | The record decorator around main.
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

LIKE = "torchrun"


@record
def main(rank, world_size):
    x = torch.ones(1)
    dist.all_reduce(x)
    return x


# %% record_fails | The record decorator around a main that fails on rank 1.
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record

LIKE = "torchrun"
FAILS = "LookupError"


@record
def main(rank, world_size):
    if rank == 1:
        raise LookupError("rank 1 finds nothing")
    dist.barrier()


# %% threads_of_torch | torchrun gives each worker one thread for computing.
import os

import torch

LIKE = "torchrun"


def main(rank, world_size):
    return torch.get_num_threads(), os.environ.get("OMP_NUM_THREADS")


# %% worker_exits | A worker of torchrun exits with code 3.
import sys

import torch.distributed as dist

LIKE = "torchrun"
FAILS = "SystemExit"


def main(rank, world_size):
    if rank == 1:
        sys.exit(3)
    dist.barrier()
