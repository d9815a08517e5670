# %% the example is copied as it is
# Every rank says the same. Which of the two parameters tells them apart?
def hello_rank(rank, world_size):
    return "Hello from rank 1 of 4"


# %% the f is missing
# Braces are filled in only where an f stands before the quotes: f"... {rank} ...".
def hello_rank(rank, world_size):
    return "Hello from rank {rank} of {world_size}"


# %% small letter and a full stop
# The words are right. Compare capital letters, spaces and full stops.
def hello_rank(rank, world_size):
    return f"hello from rank {rank} of {world_size}."


# %% counts from one
# Ranks count from 0: use `rank` as it is.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank + 1} of {world_size}"


# %% the last rank instead of the number of ranks
# `world_size` is how many ranks there are, not the number of the last one.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of {world_size - 1}"


# %% a tuple of the parts
# Return one string, not its parts: an f-string puts them together.
def hello_rank(rank, world_size):
    return "Hello from rank", rank, "of", world_size


# %% only rank 0 greets
# A rank that has to return something returns nothing: is there a `return` on every path?
def hello_rank(rank, world_size):
    if rank == 0:
        return f"Hello from rank {rank} of {world_size}"


# %% always a world of four
# There are not 4 ranks in every world: let `world_size` say how many.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of 4"


# %% a line end comes along
# The words are right. Compare capital letters, spaces and full stops.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of {world_size}\n"
