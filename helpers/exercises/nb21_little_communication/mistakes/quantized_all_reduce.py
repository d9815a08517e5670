# %% the codes are added
# The codes were added as int8, which wraps around beyond 127. Multiply them by their scales first, then
# add.
def quantized_all_reduce(rank, world_size, x, block):
    codes, scales = quantize_blocks(x, block)
    dist.all_reduce(codes)
    return (codes * scales[:, None]).flatten()


# %% the owner keeps its float32 sum
# This rank's own chunk is more exact than the other ranks' copies of it, so replicas drift apart. The
# owner, too, must use the values that its codes represent.
def quantized_all_reduce(rank, world_size, x, block):
    codes, scales = quantize_blocks(x, block)
    theirs, steps = torch.empty_like(codes), torch.empty_like(scales)
    dist.all_to_all_single(theirs, codes)
    dist.all_to_all_single(steps, scales)
    own = (theirs * steps[:, None]).view(world_size, -1).sum(0)
    own_codes, own_scales = quantize_blocks(own, block)
    dist.all_gather_single(codes, own_codes)
    dist.all_gather_single(scales, own_scales)
    out = (codes * scales[:, None]).view(world_size, -1)
    out[rank] = own
    return out.flatten()


# %% the mean
# This is the mean. Return the sum.
def quantized_all_reduce(rank, world_size, x, block):
    codes, scales = quantize_blocks(x, block)
    theirs, steps = torch.empty_like(codes), torch.empty_like(scales)
    dist.all_to_all_single(theirs, codes)
    dist.all_to_all_single(steps, scales)
    own = (theirs * steps[:, None]).view(world_size, -1).mean(0)
    own_codes, own_scales = quantize_blocks(own, block)
    dist.all_gather_single(codes, own_codes)
    dist.all_gather_single(scales, own_scales)
    return (codes * scales[:, None]).flatten()


# %% nobody talks
# This is the rank's own tensor: it contains nothing of the other ranks.
def quantized_all_reduce(rank, world_size, x, block):
    codes, scales = quantize_blocks(x, block)
    return (codes * scales[:, None]).flatten()


# %% the scales are added, not computed again
# The sum is too coarse: its scales are the sum of the ranks' scales. Quantize the sum again, with
# quantize_blocks.
def quantized_all_reduce(rank, world_size, x, block):
    codes, scales = quantize_blocks(x, block)
    theirs, steps = torch.empty_like(codes), torch.empty_like(scales)
    dist.all_to_all_single(theirs, codes)
    dist.all_to_all_single(steps, scales)
    own = (theirs * steps[:, None]).view(world_size, -1, block).sum(0)
    scales = steps.view(world_size, -1).sum(0)
    codes = (own / torch.where(scales > 0, scales, 1.0)[:, None]).round().to(torch.int8)
    theirs = torch.empty(world_size * len(codes), block, dtype=torch.int8)
    steps = torch.empty(world_size * len(scales))
    dist.all_gather_single(theirs, codes)
    dist.all_gather_single(steps, scales)
    return (theirs * steps[:, None]).flatten()
