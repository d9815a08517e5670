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


# %% wrong: everybody takes its own length for that of all | crashed | says: pad to the longest
def repair_shape_mismatch(rank, world_size, x):
    parts = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    return torch.cat(parts)


# %% wrong: the padding stays in | wrong | says: padding is still in it
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat(parts)


# %% wrong: zeros are taken for padding | wrong | says: \d
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[part != 0] for part in parts])


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


# %% wrong: the buffers are float32 whatever x is | wrong | says: dtype
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = torch.zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[:n] for part, n in zip(parts, lengths)])


# %% wrong: every part is cut to the rank's own length | wrong | says: shape
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[: len(x)] for part in parts])
