# %% wrong: only rank 0 greets | wrong | says: is there a `return` on every path


# %% right: joined, with a conversion
def hello_rank(rank, world_size):
    return " ".join(["Hello from rank", str(rank), "of", str(world_size)])


# %% wrong: always a world of four | wrong | says: There are not 4 ranks in every world
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of 4"


# %% wrong: it asks the others first | forbidden call | says: none is needed
def hello_rank(rank, world_size):
    dist.barrier()
    return f"Hello from rank {rank} of {world_size}"


# %% wrong: a line end comes along | wrong | says: capital letters, spaces and full stops
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of {world_size}\n"
