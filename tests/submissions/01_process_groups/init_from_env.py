import os


# %% right: env is the default
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])


# %% right: everything is said again
def init_from_env():
    rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(backend="gloo", init_method="env://", rank=rank, world_size=world_size)
    return rank, world_size, int(os.getenv("LOCAL_RANK", "0"))


# %% right: the same by tcp, a list of tensors returned
def init_from_env():
    def read(name):
        return int(os.environ[name])

    address = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
    dist.init_process_group("gloo", address, rank=read("RANK"), world_size=read("WORLD_SIZE"))
    return [torch.tensor(read(name)) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK")]


# %% wrong: a port of its own choice | wrong | says: leave them as they are
def init_from_env():
    os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) - 1000)
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])


# %% wrong: asks for the backend that no longer exists | crashed | says: Unknown backend type tcp
def init_from_env():
    dist.init_process_group("tcp")
    return dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])


# %% right: a name bound before, numbers from the environment
from torch.distributed import init_process_group


def init_from_env():
    init_process_group(backend="gloo", init_method="env://")
    return tuple(int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))


# %% wrong: the address is written down | wrong | says: leave them as they are
def init_from_env():
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = f"tcp://127.0.0.1:{os.environ['MASTER_PORT']}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=size)
    return rank, size, int(os.environ["LOCAL_RANK"])


# %% wrong: reads the numbers and starts no group | wrong | says: There is no process group
def init_from_env():
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])


# %% wrong: the local rank is taken for the rank | crashed | says: with the same rank
def init_from_env():
    local_rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("gloo", rank=local_rank, world_size=int(os.environ["WORLD_SIZE"]))
    return dist.get_rank(), dist.get_world_size(), local_rank


# %% wrong: only rank 0 starts | deadlocked | says: Not all ranks reach
def init_from_env():
    if os.environ["RANK"] == "0":
        dist.init_process_group("gloo")
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])


# %% wrong: ends the group again | wrong | says: There is no process group
def init_from_env():
    dist.init_process_group("gloo")
    numbers = dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])
    dist.destroy_process_group()
    return numbers
