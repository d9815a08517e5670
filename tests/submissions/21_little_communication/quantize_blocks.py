# %% right: zeros by where
def quantize_blocks(x, block):
    rows = x.reshape(-1, block)
    scales = rows.abs().max(dim=1).values / 127
    safe = torch.where(scales > 0, scales, torch.ones_like(scales))
    return torch.round(rows / safe.unsqueeze(1)).clamp(-127, 127).to(torch.int8), scales


# %% right: block by block, the scale of zeros is 1
def quantize_blocks(x, block):
    codes, scales = [], []
    for one in x.split(block):
        scale = float(one.abs().max()) / 127 or 1.0
        scales.append(scale)
        codes.append(torch.floor(one / scale + 0.5))
    return torch.stack(codes).to(torch.int8), torch.tensor(scales)


# %% wrong: 128 steps, cut at 127 | wrong | says: is read as .*; half a step is
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1) / 128
    return (blocks / scales.clamp(min=1e-30)[:, None]).round().clamp(-128, 127).to(
        torch.int8
    ), scales


# %% wrong: a zero point, as for numbers that are never negative | wrong | says: is read as
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    low, high = blocks.amin(dim=1), blocks.amax(dim=1)
    scales = ((high - low) / 255).clamp(min=1e-30)
    return ((blocks - low[:, None]) / scales[:, None] - 128).round().to(torch.int8), scales


# %% wrong: only the codes come back | wrong | says: is not 2 parts
def quantize_blocks(x, block):
    blocks = x.view(-1, block)
    scales = blocks.abs().amax(dim=1).clamp(min=1e-30) / 127
    return (blocks / scales[:, None]).round().to(torch.int8)
