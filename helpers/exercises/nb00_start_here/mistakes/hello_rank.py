# %% the example is copied as it is
# Every rank returns the text of the example. Put `rank` and `world_size` into it: `f"... {rank} ..."`.
def hello_rank(rank, world_size):
    return "Hello from rank 1 of 4"


# %% the f is missing
# Python fills in names in braces only if an f is before the quotes: `f"... {rank} ..."`.
def hello_rank(rank, world_size):
    return "Hello from rank {rank} of {world_size}"


# %% small letter and a full stop
# The numbers are right. Compare the text around them with the example, letter by letter.
def hello_rank(rank, world_size):
    return f"hello from rank {rank} of {world_size}."


# %% small letter
# The numbers are right. Compare the text around them with the example, letter by letter.
def hello_rank(rank, world_size):
    return f"hello from rank {rank} of {world_size}"


# %% full stop
# The numbers are right. Compare the text around them with the example, letter by letter.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of {world_size}."


# %% exclamation mark
# The numbers are right. Compare the text around them with the example, letter by letter.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of {world_size}!"


# %% newline at the end
# The numbers are right, but the text ends with a newline.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of {world_size}\n"


# %% counts from one
# The number is one too large: ranks are counted from 0, so use `rank` as it is.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank + 1} of {world_size}"


# %% both counted wrong
# The rank is one too large and the world size one too small: use both arguments as they are.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank + 1} of {world_size - 1}"


# %% the last rank instead of the number of ranks
# `world_size` is the number of ranks, so do not subtract 1: the last rank has the number `world_size - 1`.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of {world_size - 1}"


# %% the two numbers swapped
# The two numbers are in the wrong order: first this rank's number, then the size of the world.
def hello_rank(rank, world_size):
    return f"Hello from rank {world_size} of {rank}"


# %% a tuple of the parts
# The parts come back as a tuple. Return one string: an f-string joins text and numbers.
def hello_rank(rank, world_size):
    return "Hello from rank", rank, "of", world_size


# %% only rank 0 greets
# Only rank 0 returns a greeting; the other ranks return None. Every rank returns its own.
def hello_rank(rank, world_size):
    if rank == 0:
        return f"Hello from rank {rank} of {world_size}"


# %% every rank greets as rank 0
# Every rank greets as rank 0. Use this rank's own number, the argument `rank`.
def hello_rank(rank, world_size):
    return f"Hello from rank 0 of {world_size}"


# %% always a world of four
# The text always says 4 ranks. Use `world_size`: the check starts worlds of several sizes.
def hello_rank(rank, world_size):
    return f"Hello from rank {rank} of 4"


# %% text and number added | crashed
# `+` joins two strings, but `rank` and `world_size` are ints: use an f-string, or `str(rank)`.
def hello_rank(rank, world_size):
    return "Hello from rank " + rank + " of " + world_size
