# %% right: lengths, padding, data, cutting
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[:n] for part, n in zip(parts, lengths)])


# %% right: into one tensor each
def repair_shape_mismatch(rank, world_size, x):
    lengths = torch.empty(world_size, dtype=torch.long)
    dist.all_gather_into_tensor(lengths, torch.tensor([x.numel()]))
    most = int(lengths.max())
    padded = torch.nn.functional.pad(x, (0, most - x.numel()))
    table = torch.empty(world_size * most, dtype=x.dtype)
    dist.all_gather_into_tensor(table, padded)
    rows = table.view(world_size, most)
    return torch.cat([rows[r, : lengths[r]] for r in range(world_size)])


# %% right: a mask instead of slices, a helper for the gathering
def gathered(x, world_size):
    parts = [torch.zeros_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    return torch.stack(parts)


def repair_shape_mismatch(rank, world_size, x):
    sizes = gathered(torch.tensor(x.shape[0]), world_size)
    longest = sizes.max().item()
    filler = torch.zeros(longest - len(x), dtype=x.dtype)
    table = gathered(torch.cat([x, filler]), world_size)
    return table[torch.arange(longest) < sizes[:, None]]


# %% wrong: pickles travel | forbidden call | says: pickles its tensor
def repair_shape_mismatch(rank, world_size, x):
    parts = [None] * world_size
    dist.all_gather_object(parts, x)
    return torch.cat(parts)


# %% wrong: a sum of zeros in place of the gathering | forbidden call | says: only all_gather may be used
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    lengths = [n.item() for n in lengths]
    whole = torch.zeros(sum(lengths), dtype=x.dtype)
    start = sum(lengths[:rank])
    whole[start : start + len(x)] = x
    dist.all_reduce(whole)
    return whole


# %% right: async, int32 lengths, narrow
def repair_shape_mismatch(rank, world_size, x):
    sizes = torch.empty(world_size, dtype=torch.int32)
    work = dist.all_gather_into_tensor(
        sizes, torch.tensor([len(x)], dtype=torch.int32), async_op=True
    )
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


# %% wrong: through float32 and back | wrong | says: 12 bytes to all_gather .* 8 are enough
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
