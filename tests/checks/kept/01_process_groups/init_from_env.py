import os


# %% wrong: reads the numbers and starts no group | wrong | says: There is no group when the function has returned


# %% wrong: the local rank is taken for the rank | crashed | says: start as one and the same rank


# %% wrong: a port of its own choice | wrong | says: leave them as they are


# %% wrong: only rank 0 starts | deadlocked | says: Every rank must call init_process_group


# %% wrong: prints what it should return | wrong | says: it must return its three numbers


# %% wrong: rank returned as local rank | wrong | says: The third number is LOCAL_RANK


# %% right: a name bound before, numbers from the environment
from torch.distributed import init_process_group


def init_from_env():
    init_process_group(backend="gloo", init_method="env://")
    return tuple(int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))


# %% wrong: another order | wrong | says: the right numbers in another order
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_world_size(), dist.get_rank(), int(os.environ["LOCAL_RANK"])


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


# %% wrong: the default backend | wrong | says: backend
def init_from_env():
    dist.init_process_group()
    return dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])
