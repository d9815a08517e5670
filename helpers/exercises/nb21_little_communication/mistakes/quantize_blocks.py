# %% the fraction is cut off
# Converting to int8 cuts the fraction off, towards zero: round before, `.round().to(torch.int8)`.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127
    return (blocks / scales.clamp(min=1e-30)[:, None]).to(torch.int8), scales


# %% 128 steps
# int8 ends at 127: a code of 128 wraps around to -128. One step is the block's largest number, without
# its sign, divided by 127.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 128
    return (blocks / scales.clamp(min=1e-30)[:, None]).round().to(torch.int8), scales


# %% one scale for all
# All blocks have one scale here: each block has its own, by its own largest number.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scale = x.abs().max().clamp(min=1e-30) / 127
    return (blocks / scale).round().to(torch.int8), scale.repeat(len(blocks))


# %% the largest with its sign
# The largest number counts without its sign: `abs()` before the maximum.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.amax(dim=1) / 127
    scales = torch.where(scales == 0, 1e-30, scales)
    return (blocks / scales[:, None]).round().to(torch.int8), scales


# %% codes as they lie in x
# codes is torch.int8, of shape (blocks, {block}); scales is torch.float32, one for each block.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1).clamp(min=1e-30) / 127
    return (blocks / scales[:, None]).round().to(torch.int8).flatten(), scales


# %% codes stay floats
# codes is torch.int8, of shape (blocks, {block}); scales is torch.float32, one for each block.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1).clamp(min=1e-30) / 127
    return (blocks / scales[:, None]).round(), scales


# %% works on x itself
# The caller still needs what it gave: work on a copy, such as `x.clone()`.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127
    blocks /= scales.clamp(min=1e-30)[:, None]
    return blocks.round().to(torch.int8), scales


# %% an epsilon that is not small enough
# Scales cannot get smaller than some bound here, so that blocks of tiny numbers are lost: guard against a
# scale of 0 only.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127 + 1e-8
    return (blocks / scales[:, None]).round().to(torch.int8), scales
