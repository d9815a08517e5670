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


# %% wrong: machines are taken to be alike | wrong | says: returned: \[2\]
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), dist.get_rank() % 2


# %% wrong: the default backend | wrong | says: backend undefined, not rank
def init_from_env():
    dist.init_process_group()
    return dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])
