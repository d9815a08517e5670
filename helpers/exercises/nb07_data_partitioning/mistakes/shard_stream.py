from itertools import islice

from torch.utils.data import get_worker_info


# %% workers are forgotten
# All workers of a rank read the same samples. `torch.utils.data.get_worker_info()` tells a worker its
# number.
def shard_stream(stream, rank, world_size):
    return islice(stream, rank, None, world_size)


# %% ranks are forgotten
# The ranks read the same samples. A reader's number depends on its rank and on its worker.
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    return islice(stream, worker, None, workers)


# %% rank and worker are added up
# Two readers have the same number. With w workers, a rank's readers are rank * w, rank * w + 1, ..., so
# that all readers have the numbers 0, 1, 2, ...
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    return islice(stream, rank + worker, None, world_size * workers)


# %% the stride is the number of ranks only
# The step is the number of ranks. There are `world_size * workers` readers, so that number is the step.
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    return islice(stream, rank * workers + worker, None, world_size)


# %% without a worker there is no info | crashed
# Without worker processes `get_worker_info()` returns None. Then this rank has a single reader, number 0 of
# 1.
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    shard = rank * info.num_workers + info.id
    return islice(stream, shard, None, world_size * info.num_workers)


# %% one worker reads the whole share of its rank
# One worker reads the whole share of its rank, and the others read nothing. All readers get shares of the
# same size.
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    if info is not None and info.id > 0:
        return iter(())
    return islice(stream, rank, None, world_size)


# %% by value
# The samples are dealt out by their values. Go by the position in the stream.
def shard_stream(stream, rank, world_size):
    info = torch.utils.data.get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    return (x for x in stream if x % (world_size * workers) == rank * workers + worker)


# %% a value that has come before is left out
# A value that came before is left out. Equal values at different positions are different samples.
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    seen = set()
    for number, sample in enumerate(stream):
        if sample not in seen and number % (world_size * workers) == rank * workers + worker:
            yield sample
        seen.add(sample)
