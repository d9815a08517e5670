import os


# %% the environment's text is returned as it is
# LOCAL_RANK comes back as a string. Everything in `os.environ` is text: convert it with `int`.
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), os.environ["LOCAL_RANK"]


# %% three strings
# All three numbers come back as strings. Everything in `os.environ` is text: convert it with `int`.
def init_from_env():
    dist.init_process_group("gloo")
    return os.environ["RANK"], os.environ["WORLD_SIZE"], os.environ["LOCAL_RANK"]


# %% rank returned as local rank
# The third number is the rank again. LOCAL_RANK is a process's number on its own machine, and differs from
# the rank on every machine but the first.
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), dist.get_rank()


# %% local rank from the size of this machine
# The third number is the rank modulo LOCAL_WORLD_SIZE. Machines have different numbers of ranks: read
# LOCAL_RANK from the environment.
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), dist.get_rank() % int(os.environ["LOCAL_WORLD_SIZE"])


# %% two ranks on each machine
# The third number is the rank modulo 2, but machines have different numbers of ranks: read LOCAL_RANK from
# the environment.
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), dist.get_rank() % 2


# %% local world size in place of the local rank
# The third number is LOCAL_WORLD_SIZE, the number of ranks on this machine. LOCAL_RANK is this process's own
# number there.
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_WORLD_SIZE"])


# %% the default backend
# The call names no backend, so torch sets up one for each kind of device. Ask for gloo:
# `init_process_group("gloo")`.
def init_from_env():
    dist.init_process_group()
    return dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])


# %% prints what it should return
# The group is right, but the function returns None. Return rank, world size and local rank.
def init_from_env():
    dist.init_process_group("gloo")
    print(dist.get_rank(), dist.get_world_size(), os.environ["LOCAL_RANK"])


# %% world size first
# The first two numbers are swapped: return rank, world size, local rank, in this order.
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_world_size(), dist.get_rank(), int(os.environ["LOCAL_RANK"])


# %% local rank second
# The last two numbers are swapped: return rank, world size, local rank, in this order.
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_rank(), int(os.environ["LOCAL_RANK"]), dist.get_world_size()


# %% local rank first
# The local rank comes first: return rank, world size, local rank, in this order.
def init_from_env():
    dist.init_process_group("gloo")
    return int(os.environ["LOCAL_RANK"]), dist.get_rank(), dist.get_world_size()
