from itertools import islice

from torch.utils.data import get_worker_info


# %% workers are forgotten
# Each worker process reads the whole stream. `torch.utils.data.get_worker_info()` tells a worker who it
# is.
def shard_stream(stream, rank, world_size):
    return islice(stream, rank, None, world_size)


# %% ranks are forgotten
# The ranks read the same samples: the shard's number must depend on the rank.
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    return islice(stream, worker, None, workers)


# %% rank and worker are added up
# Two readers have the same number. With w workers a rank's readers are rank * w, rank * w + 1, ...: all
# readers together 0, 1, 2, ...
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    return islice(stream, rank + worker, None, world_size * workers)


# %% the stride is the number of ranks only
# Take every (world_size * workers)-th sample: so many readers there are in all.
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    return islice(stream, rank * workers + worker, None, world_size)
