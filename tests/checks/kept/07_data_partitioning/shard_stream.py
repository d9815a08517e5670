from itertools import islice

from torch.utils.data import get_worker_info


# %% wrong: a block of fixed length for each reader | wrong | says: more than one apart


# %% wrong: a thousand samples ahead | crashed | says: hand them on as you read


# %% wrong: one worker reads the whole share of its rank | wrong | says: more than one apart
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    if info is not None and info.id > 0:
        return iter(())
    return islice(stream, rank, None, world_size)


# %% wrong: a value that has come before is left out | wrong | says: nobody has
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    seen = set()
    for number, sample in enumerate(stream):
        if sample not in seen and number % (world_size * workers) == rank * workers + worker:
            yield sample
        seen.add(sample)


# %% wrong: two workers are taken for granted | wrong | says: has already
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    if info is None:
        return islice(stream, rank, None, world_size)
    return islice(stream, rank * info.num_workers + info.id % 2, None, world_size * info.num_workers)
