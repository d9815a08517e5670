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


# %% wrong: printed, not returned | wrong | says: prints, but returns nothing
def hello_rank(rank, world_size):
    print(f"Hello from rank {rank} of {world_size}")


# %% right: joined, with a conversion
def hello_rank(rank, world_size):
    return " ".join(["Hello from rank", str(rank), "of", str(world_size)])


# %% wrong: it asks the others first | forbidden call | says: none is needed
def hello_rank(rank, world_size):
    dist.barrier()
    return f"Hello from rank {rank} of {world_size}"
