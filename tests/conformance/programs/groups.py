# %% alone | A world of one rank: all collectives exist and change nothing.
import torch
import torch.distributed as dist

WORLD_SIZE = 1


def main(rank, world_size):
    x = torch.arange(3.0)
    dist.all_reduce(x)
    dist.broadcast(x, src=0)
    dist.barrier()
    out = [torch.empty(3)]
    dist.all_gather(out, x)
    return x, out


# %% backend_per_device | Join with a backend named for the device: "cpu:gloo".
import torch
import torch.distributed as dist

INIT = False
LIKE = "torchrun"


def main(rank, world_size):
    dist.init_process_group("cpu:gloo")
    x = torch.ones(1)
    dist.all_reduce(x)
    name = dist.get_backend_config()
    dist.destroy_process_group()
    return x, name


# %% destroy_and_env_init | Leave the group at the start and join again, by the address in the environment.
import torch
import torch.distributed as dist


def main(rank, world_size):
    dist.destroy_process_group()
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    x = torch.tensor([1 + rank])
    dist.all_reduce(x)
    return x


# %% destroy_and_init | Leave the group and join another one, through a file.
import tempfile
from pathlib import Path

import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    dist.destroy_process_group()
    file = Path(tempfile.gettempdir()) / "again"
    dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=world_size)
    x = torch.ones(1)
    dist.all_reduce(x)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        file.unlink(missing_ok=True)
    return x


# %% destroy_and_new_port | Leave the group and join again at a different port, which rank 0 finds.
import os
import socket

import torch
import torch.distributed as dist


def main(rank, world_size):
    port = [None]
    if rank == 0:
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            port = [s.getsockname()[1]]
    dist.broadcast_object_list(port, src=0)
    dist.destroy_process_group()
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port[0])
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    x = torch.tensor([1 + rank])
    dist.all_reduce(x)
    return x


# %% env_address | MASTER_ADDR and MASTER_PORT are set, so that a second library can also use them.
import os

import torch.distributed as dist

LIKE = "torchrun"


def main(rank, world_size):
    mine = (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"])
    seen = [None] * world_size
    dist.all_gather_object(seen, mine)
    return len(set(seen)), mine[1].isdigit()


# %% env_init | Join by init_process_group("gloo") only: torchrun has set all variables that it reads.
import torch
import torch.distributed as dist

INIT = False
LIKE = "torchrun"


def main(rank, world_size):
    dist.init_process_group("gloo")
    x = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(x)
    dist.destroy_process_group()
    return x


# %% env_variables | The variables of torchrun exist, as text, and are consistent.
import os

INIT = False
LIKE = "torchrun"
WORLD_SIZE = 3


def main(rank, world_size):
    names = ["RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"]
    return {name: os.environ[name] for name in names}


# %% facts | A rank's questions about its group.
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    return (
        dist.is_available(),
        dist.is_initialized(),
        dist.get_backend(),
        dist.get_rank() == rank,
        dist.get_world_size(),
        dist.is_gloo_available(),
        dist.get_process_group_ranks(dist.group.WORLD),
    )


# %% global_ranks | Ranks in a group and in the world are translated both ways.
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    group = dist.new_group([3, 1])
    there = [dist.get_global_rank(group, i) for i in range(2)]
    return there, dist.get_group_rank(group, 3), dist.get_group_rank(group, 1)


# %% mesh_joins | init_device_mesh joins the group itself if no rank has joined.
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

INIT = False
LIKE = "torchrun"


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    x = torch.ones(2)
    dist.all_reduce(x, group=mesh.get_group())
    return x, dist.get_backend()


# %% mesh_two_by_two | A mesh of two by two: sums along each dimension.
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

WORLD_SIZE = 4


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    by_dim = {}
    for name in ("dp", "tp"):
        x = torch.tensor([10.0**rank])
        dist.all_reduce(x, group=mesh.get_group(name))
        by_dim[name] = x.item()
    return by_dim, mesh.get_coordinate(), mesh["dp"].get_local_rank()


# %% monitored_barrier | monitored_barrier names the rank that did not come.
from datetime import timedelta

import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    if rank == 1:
        import time

        time.sleep(4)
        return
    dist.monitored_barrier(timeout=timedelta(seconds=1))


# %% new_group_pairs | Each pair of neighbors is a group; every rank makes all of them.
import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    pairs = [dist.new_group([i, i + 1]) for i in range(0, world_size, 2)]
    mine = pairs[rank // 2]
    x = torch.tensor([10**rank])
    dist.all_reduce(x, group=mine)
    return x, dist.get_rank(mine), dist.get_world_size(mine)


# %% not_a_member | A rank outside of a group has no rank in it, and its calls on the group do nothing.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    group = dist.new_group([0, 2])
    x = torch.tensor([1.0 + rank])
    if rank != 1:
        dist.all_reduce(x, group=group)
    return x, dist.get_rank(group)


# %% setup_function | The setup function of every tutorial: address and port by hand, then init and cleanup.
import os

import torch
import torch.distributed as dist

INIT = False


def setup(rank, world_size):
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ["MASTER_PORT"] = "12355"
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


def cleanup():
    dist.destroy_process_group()


def main(rank, world_size):
    setup(rank, world_size)
    x = torch.full((2,), float(rank))
    dist.all_reduce(x)
    cleanup()
    return x, dist.is_initialized()


# %% subgroups | new_subgroups cuts the world into machines of two ranks.
import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    mine, every = dist.new_subgroups(group_size=2)
    x = torch.tensor([rank])
    dist.all_reduce(x, group=mine)
    return x, len(every), dist.get_process_group_ranks(mine)


# %% tcp_init_method | Join by an explicit tcp:// address.
import torch
import torch.distributed as dist

INIT = False


def main(rank, world_size):
    dist.init_process_group(
        "gloo", init_method="tcp://127.0.0.1:23456", rank=rank, world_size=world_size
    )
    x = torch.tensor([2.0 * rank])
    dist.all_reduce(x)
    dist.destroy_process_group()
    return x


# %% timeout_of_group | A group with a timeout of two seconds: a rank that waits longer gets an error.
from datetime import timedelta

import torch
import torch.distributed as dist


def main(rank, world_size):
    group = dist.new_group(timeout=timedelta(seconds=2))
    if rank == 0:
        try:
            dist.all_reduce(torch.ones(1), group=group)
        except RuntimeError as error:
            said = "timed out" in str(error).lower() or "timeout" in str(error).lower()
        dist.barrier()
        return said
    dist.barrier()
    return "did not take part"


# %% torchelastic | A rank can tell that torchrun started it.
import torch.distributed as dist

LIKE = "torchrun"


def main(rank, world_size):
    return dist.is_torchelastic_launched()
