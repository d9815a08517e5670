# %% everybody takes its own length for that of all | crashed
# The ranks hand in tensors of different sizes. Gather the lengths first, then pad to the longest: so all
# hand in the same number of elements.
def repair_shape_mismatch(rank, world_size, x):
    parts = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    return torch.cat(parts)


# %% the padding stays in
# The padding is still in it: cut each part to its own length.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat(parts)


# %% zeros are taken for padding
# Elements are missing: cut by length, not by value; a 0 may belong to the data.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[part != 0] for part in parts])


# %% the buffers are float32 whatever x is
# The result has the dtype of `x`: `x.new_zeros` and `torch.empty_like` make tensors of it.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = torch.zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[:n] for part, n in zip(parts, lengths)])


# %% every part is cut to the rank's own length
# Every part is cut to the length of this rank's `x`; each has a length of its own.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[: len(x)] for part in parts])


# %% one box for all parts
# All parts hold what the last rank has: `[t] * n` is one tensor, n times. Make one for each rank, in a
# comprehension.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded)] * world_size
    dist.all_gather(parts, padded)
    return torch.cat([part[:n] for part, n in zip(parts, lengths)])
