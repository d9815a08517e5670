# %% dcp | distributed.checkpoint: each rank saves its shards, and loading overwrites other values.
import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    folder = Path(tempfile.gettempdir()) / "conformance-dcp"
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    fully_shard(model)
    before = model.weight.full_tensor().clone()
    dcp.save({"model": model.state_dict()}, checkpoint_id=folder)
    with torch.no_grad():
        model.weight.zero_()
    state = {"model": model.state_dict()}
    dcp.load(state, checkpoint_id=folder)
    same = torch.equal(model.weight.full_tensor(), before)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder)
    return same


# %% dcp_plain | distributed.checkpoint of plain tensors and numbers, one file for each rank with data.
import shutil
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp


def main(rank, world_size):
    folder = Path(tempfile.gettempdir()) / "conformance-dcp-plain"
    dcp.save({"x": torch.arange(3.0), "step": 7}, checkpoint_id=folder)
    state = {"x": torch.zeros(3), "step": 0}
    dcp.load(state, checkpoint_id=folder)
    dist.barrier()
    if rank == 0:
        shutil.rmtree(folder)
    return state


# %% missing_file | Ranks load a checkpoint that was never saved.
import torch

FAILS = "FileNotFoundError"


def main(rank, world_size):
    return torch.load("there-is-no-such-checkpoint.pt")


# %% module_through_file | Rank 0 saves a module of a class of the cell, rank 1 loads it.
import os
import tempfile

import torch
import torch.distributed as dist


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.arange(3.0))


def main(rank, world_size):
    path = os.path.join(tempfile.gettempdir(), "conformance-net.pt")
    if rank == 0:
        torch.save(Net(), path)
    dist.barrier()
    net = torch.load(path, weights_only=False)
    dist.barrier()
    if rank == 0:
        os.unlink(path)
    return type(net).__name__, net.weight


# %% optimizer_state | An optimizer's state is saved and loaded by state_dict: training continues equally.
import copy

import torch


def step(model, optimizer, times):
    for i in range(times):
        optimizer.zero_grad()
        model(torch.full((1, 2), i + 1.0)).sum().backward()
        optimizer.step()


def main(rank, world_size):
    torch.manual_seed(rank)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    step(model, optimizer, 2)
    kept = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
    step(model, optimizer, 2)
    after = model.weight.detach().clone()
    model.load_state_dict(kept[0])
    optimizer.load_state_dict(kept[1])
    step(model, optimizer, 2)
    return torch.equal(model.weight, after)


# %% state_dict_api | get_model_state_dict and its full form on rank 0.
import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    fully_shard(model)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    full = get_model_state_dict(model, options=options)
    shapes = {name: list(value.shape) for name, value in full.items()}
    changed = {name: torch.ones(shape) for name, shape in (("weight", (2, 4)), ("bias", 2))}
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, changed if rank == 0 else {}, options=options)
    return shapes, model.weight.full_tensor().sum()


# %% torch_save_module | A whole module of a class of the cell is saved and loaded by the same rank.
import io

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1)

    def forward(self, x):
        return self.layer(x)


def main(rank, world_size):
    torch.manual_seed(0)
    file = io.BytesIO()
    torch.save(Net(), file)
    file.seek(0)
    net = torch.load(file, weights_only=False)
    return type(net) is Net, net(torch.ones(1, 2)).detach()


# %% tutorial | Rank 0 saves in the temp directory, all ranks load the file, and rank 0 removes it.
import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(rank)
    model = DDP(torch.nn.Linear(2, 2))
    path = tempfile.gettempdir() + "/conformance-model.checkpoint"
    if rank == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()
    model.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    dist.barrier()
    if rank == 0:
        os.remove(path)
    return sorted(model.state_dict())


# %% weights_only_refuses | torch.load with its default refuses an object of the cell's class.
import io

import torch

FAILS = "UnpicklingError"


class Note:
    text = "mine"


def main(rank, world_size):
    file = io.BytesIO()
    torch.save({"note": Note()}, file)
    file.seek(0)
    return torch.load(file)
