# %% the fraction is cut off
# Converting to int8 truncates towards zero. Round first: `.round().to(torch.int8)`.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127
    return (blocks / scales.clamp(min=1e-30)[:, None]).to(torch.int8), scales


# %% 128 steps
# A code of 128 does not fit into int8 and wraps around to -128. Divide the block's largest absolute value
# by 127.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 128
    return (blocks / scales.clamp(min=1e-30)[:, None]).round().to(torch.int8), scales


# %% one scale for all
# All blocks have the same scale. Each has its own, from its own largest absolute value.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scale = x.abs().max().clamp(min=1e-30) / 127
    return (blocks / scale).round().to(torch.int8), scale.repeat(len(blocks))


# %% the largest with its sign
# The scale comes from the largest value, sign included, so negative numbers may exceed it. Take abs()
# before the maximum.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.amax(dim=1) / 127
    scales = torch.where(scales == 0, 1e-30, scales)
    return (blocks / scales[:, None]).round().to(torch.int8), scales


# %% codes as they lie in x
# codes has the wrong dtype or shape. It is torch.int8 of shape (blocks, {block}); scales is torch.float32,
# one for each block.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1).clamp(min=1e-30) / 127
    return (blocks / scales[:, None]).round().to(torch.int8).flatten(), scales


# %% codes stay floats
# codes has the wrong dtype or shape. It is torch.int8 of shape (blocks, {block}); scales is torch.float32,
# one for each block.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1).clamp(min=1e-30) / 127
    return (blocks / scales[:, None]).round(), scales


# %% works on x itself
# x was changed, and the caller still needs it. Work on a copy, such as `x.clone()`.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127
    blocks /= scales.clamp(min=1e-30)[:, None]
    return blocks.round().to(torch.int8), scales


# %% an epsilon that is not small enough
# Scales cannot get below some bound, so blocks of tiny numbers are lost. Guard against a scale of exactly 0
# only.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127 + 1e-8
    return (blocks / scales[:, None]).round().to(torch.int8), scales


# %% the whole range of the block
# This is an asymmetric scale, (largest - smallest) / 255, without an offset: larger numbers do not fit.
# Divide the largest absolute value by 127.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = (blocks.amax(1) - blocks.amin(1)) / 255
    safe = torch.where(scales > 0, scales, 1.0)
    return (blocks / safe[:, None]).round().clamp(-128, 127).to(torch.int8), scales


# %% columns are blocks
# The numbers are in the wrong blocks. A block is `block` consecutive numbers of x: x.view(-1, block).
def quantize_blocks(x, block):
    blocks = x.view(block, -1).T
    scales = blocks.abs().amax(dim=1) / 127
    safe = torch.where(scales > 0, scales, 1.0)
    return (blocks / safe[:, None]).round().to(torch.int8), scales


# %% adds a half and truncates
# Adding 0.5 and converting rounds positive numbers only: the conversion truncates towards zero. Use
# `.round()`.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127
    safe = torch.where(scales > 0, scales, 1.0)
    return (blocks / safe[:, None] + 0.5).to(torch.int8), scales


# %% zeros are divided by zero
# A block of zeros has scale 0, and 0 / 0 is NaN. Divide by 1, or any other number, there.
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 127
    scales = torch.where(scales > 0, scales, float("nan"))
    return (blocks / scales[:, None]).round().to(torch.int8), scales
