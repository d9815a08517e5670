from itertools import islice

from torch.utils.data import get_worker_info


# %% right: islice with the reader's number
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    return islice(stream, rank * workers + worker, None, world_size * workers)


# %% right: a generator that counts
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    shards = world_size * (info.num_workers if info is not None else 1)
    mine = rank + world_size * (info.id if info is not None else 0)
    for number, sample in enumerate(stream):
        if number % shards == mine:
            yield sample


# %% right: first by rank, then by worker
def every(stream, k, start):
    return (x for i, x in enumerate(stream) if i % k == start)


def shard_stream(stream, rank, world_size):
    own = every(stream, world_size, rank)
    info = get_worker_info()
    return own if info is None else every(own, info.num_workers, info.id)


# %% wrong: the stream is read to its end first | crashed | says: reads ahead
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    return iter(list(stream)[rank * workers + worker :: world_size * workers])


# %% wrong: a block of fixed length for each reader | wrong | says: more than one apart
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    shard = rank * workers + worker
    return islice(stream, shard * 3, shard * 3 + 3)


# %% wrong: a thousand samples ahead | crashed | says: reads ahead
def shard_stream(stream, rank, world_size):
    from itertools import islice

    info = torch.utils.data.get_worker_info()
    worker, workers = (info.id, info.num_workers) if info else (0, 1)
    while ahead := list(islice(stream, 1000)):
        yield from ahead[rank * workers + worker :: world_size * workers]


# %% wrong: two workers are taken for granted | wrong | says: has already
def shard_stream(stream, rank, world_size):
    info = get_worker_info()
    if info is None:
        return islice(stream, rank, None, world_size)
    return islice(
        stream, rank * info.num_workers + info.id % 2, None, world_size * info.num_workers
    )
