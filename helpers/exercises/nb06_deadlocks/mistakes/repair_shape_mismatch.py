# %% everybody takes its own length for that of all | crashed
# The ranks hand in tensors of different sizes. Gather the lengths first, then pad to the longest, so that
# all hand in the same number of elements.
def repair_shape_mismatch(rank, world_size, x):
    parts = [torch.empty_like(x) for _ in range(world_size)]
    dist.all_gather(parts, x)
    return torch.cat(parts)


# %% the padding stays in
# The padding is still in the result. Cut each part to its own length.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat(parts)


# %% zeros are taken for padding
# Elements are missing: zeros were removed, but a 0 may belong to the data. Cut by length.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[part != 0] for part in parts])


# %% the buffers are float32 whatever x is
# The result is float32, not the dtype of `x`. `x.new_zeros` and `torch.empty_like` keep it.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = torch.zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[:n] for part, n in zip(parts, lengths)])


# %% every part is cut to the rank's own length
# Every part is cut to the length of this rank's `x`. Each part has its own length.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return torch.cat([part[: len(x)] for part in parts])


# %% one box for all parts
# All parts are the same tensor: `[t] * n` repeats one tensor n times. Make a separate tensor for each rank.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded)] * world_size
    dist.all_gather(parts, padded)
    return torch.cat([part[:n] for part, n in zip(parts, lengths)])


# %% a list of parts
# A list of parts comes back. Join them into one tensor: `torch.cat`.
def repair_shape_mismatch(rank, world_size, x):
    lengths = [torch.zeros(1, dtype=torch.int64) for _ in range(world_size)]
    dist.all_gather(lengths, torch.tensor([len(x)]))
    padded = x.new_zeros(max(lengths).item())
    padded[: len(x)] = x
    parts = [torch.empty_like(padded) for _ in range(world_size)]
    dist.all_gather(parts, padded)
    return [part[:n] for part, n in zip(parts, lengths)]
