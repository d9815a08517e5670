# %% right: an f-string
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of {world_size}"


# %% right: asks torch, joins with format
def hello_rank(rank: int, world_size: int) -> str:
    return "Hello from rank {} of {}".format(dist.get_rank(), dist.get_world_size())


# %% right: parts put together, printed as well
def greeting(*parts):
    return " ".join(str(part) for part in parts)


def hello_rank(rank, world_size):
    text = greeting("Hello from rank", rank, "of", world_size)
    print(text)
    return text


# %% wrong: the example is copied as it is | wrong | says: Every rank says the same
def hello_rank(rank, world_size):
    return "Hello from rank 1 of 4"


# %% wrong: printed, not returned | wrong | says: prints, but returns nothing
def hello_rank(rank, world_size):
    print(f"Hello from rank {rank} of {world_size}")


# %% wrong: the f is missing | wrong | says: f stands before the quotes
def hello_rank(rank, world_size):
    return "Hello from rank {rank} of {world_size}"


# %% wrong: small letter and a full stop | wrong | says: capital letters, spaces and full stops
def hello_rank(rank, world_size):
    return f"hello from rank {rank} of {world_size}."


# %% wrong: counts from one | wrong | says: Ranks count from 0
def hello_rank(rank, world_size):
    return f"Hello from rank {rank + 1} of {world_size}"


# %% wrong: the last rank instead of the number of ranks | wrong | says: how many ranks there are
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of {world_size - 1}"


# %% wrong: a tuple of the parts | wrong | says: Return one string
def hello_rank(rank, world_size):
    return "Hello from rank", rank, "of", world_size


# %% wrong: only rank 0 greets | wrong | says: is there a `return` on every path
def hello_rank(rank, world_size):
    if rank == 0:
        return f"Hello from rank {rank} of {world_size}"


# %% wrong: text and number added | crashed | says: can only concatenate str \(not "int"\)
def hello_rank(rank, world_size):
    return "Hello from rank " + rank + " of " + world_size


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
