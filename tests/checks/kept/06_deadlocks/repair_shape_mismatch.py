# %% wrong: zeros are taken for padding | wrong | says: cut by length, not by value


# %% wrong: the buffers are float32 whatever x is | wrong | says: The result has the dtype of `x`


# %% wrong: every part is cut to the rank's own length | wrong | says: length of this rank's `x`


# %% right: async, int32 lengths, narrow
def repair_shape_mismatch(rank, world_size, x):
    sizes = torch.empty(world_size, dtype=torch.int32)
    work = dist.all_gather_into_tensor(sizes, torch.tensor([len(x)], dtype=torch.int32), async_op=True)
    work.wait()
    longest = int(sizes.max())
    table = x.new_empty((world_size, longest))
    mine = x.new_zeros(longest)
    mine.narrow(0, 0, len(x)).copy_(x)
    dist.all_gather(list(table.unbind()), mine)
    return torch.cat([table[r].narrow(0, 0, int(sizes[r])) for r in range(world_size)])


# %% wrong: padded to a hundred | wrong | says: Pad to the longest `x`, and no further
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(100)
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[:n] for part, n in zip(parts, lengths)])


# %% wrong: one box for all parts | wrong | says: All parts hold what the last rank has
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded)] * world_size
    dist.all_gather(parts, padded)
    return torch.cat([part[:n] for part, n in zip(parts, lengths)])


# %% wrong: a list of parts | wrong | says: is not a tensor
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return [part[:n] for part, n in zip(parts, lengths)]


# %% wrong: through float32 and back | wrong | says: element
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = torch.zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[:n] for part, n in zip(parts, lengths)]).to(x.dtype)


# %% wrong: sleeping in place of waiting | wrong | says: never calls wait
import time


def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded, async_op=True)
    time.sleep(0.1)
    return torch.cat([part[:n] for part, n in zip(parts, lengths)])
