# %% the codes are added
# The codes were added up as int8, which wraps around beyond 127: read them first, then add.
def quantized_all_reduce(rank, world_size, x, block):
    codes, scales = quantize_blocks(x, block)
    dist.all_reduce(codes)
    return (codes * scales[:, None]).flatten()


# %% the owner keeps its float32 sum
# On this rank its own chunk is more exact than on the others: replicas drift apart. The owner, too, goes
# on with what can be read out of the codes that it sends.
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
# This is the mean; a sum is wanted.
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
# This is the rank's own tensor: nothing of the other ranks is in it.
def quantized_all_reduce(rank, world_size, x, block):
    codes, scales = quantize_blocks(x, block)
    return (codes * scales[:, None]).flatten()
