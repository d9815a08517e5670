import os


# %% reads the numbers and starts no group
# There is no group when the function has returned: call `dist.init_process_group`, and leave it open for
# whoever called you.
def init_from_env():
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])


# %% the environment's text is returned as it is
# What stands in os.environ is text, even if it looks like a number: int(...).
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), os.environ["LOCAL_RANK"]


# %% the local rank is taken for the rank | crashed
# Several processes start as one and the same rank. A rank is a process's number in the whole job (RANK),
# a local_rank its number on one machine (LOCAL_RANK).
def init_from_env():
    local_rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("gloo", rank=local_rank, world_size=int(os.environ["WORLD_SIZE"]))
    return dist.get_rank(), dist.get_world_size(), local_rank


# %% rank returned as local rank
# The third number is LOCAL_RANK, the process's number on its own machine; here it is another one.
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size(), dist.get_rank()


# %% only rank 0 starts | deadlocked
# Every rank must call init_process_group: here not all do.
def init_from_env():
    if os.environ["RANK"] == "0":
        dist.init_process_group("gloo")
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])


# %% ends the group again
# There is no group when the function has returned: call `dist.init_process_group`, and leave it open for
# whoever called you.
def init_from_env():
    dist.init_process_group("gloo")
    numbers = dist.get_rank(), dist.get_world_size(), int(os.environ["LOCAL_RANK"])
    dist.destroy_process_group()
    return numbers


# %% prints what it should return
# The function returns nothing: it must return its three numbers.
def init_from_env():
    dist.init_process_group("gloo")
    print(dist.get_rank(), dist.get_world_size(), os.environ["LOCAL_RANK"])


# %% another order
# These are the right numbers in another order: rank, world size, LOCAL_RANK.
def init_from_env():
    dist.init_process_group("gloo")
    return dist.get_world_size(), dist.get_rank(), int(os.environ["LOCAL_RANK"])
