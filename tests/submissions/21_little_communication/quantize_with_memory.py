# %% right: in place, step by step
def quantize_with_memory(x, memory, block):
    memory += x
    codes, scales = quantize_blocks(memory, block)
    memory -= (codes * scales.unsqueeze(-1)).view(-1)
    return codes, scales


# %% right: with a quantizer of its own
def quantize_with_memory(x, memory, block):
    wanted = (x + memory).view(-1, block)
    scales = wanted.abs().amax(1) / 127
    codes = (wanted / torch.where(scales == 0, 1.0, scales)[:, None]).round().to(torch.int8)
    memory[:] = (wanted - codes.float() * scales[:, None]).reshape(-1)
    return codes, scales


# %% wrong: memory is forgotten | wrong | says: what was in memory before never goes out
def quantize_with_memory(x, memory, block):
    codes, scales = quantize_blocks(x, block)
    memory.copy_(x - (codes * scales[:, None]).flatten())
    return codes, scales


# %% wrong: memory gets another name | wrong | says: `memory` is as it was
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    memory = total - (codes * scales[:, None]).flatten()
    return codes, scales


# %% wrong: nothing is kept | wrong | says: `memory` is as it was
def quantize_with_memory(x, memory, block):
    return quantize_blocks(x + memory, block)


# %% wrong: the sign | wrong | says: wrong sign
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    memory.copy_((codes * scales[:, None]).flatten() - total)
    return codes, scales


# %% wrong: losses pile up | wrong | says: memory was added to what it was before
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    memory += total - (codes * scales[:, None]).flatten()
    return codes, scales


# %% wrong: only what x lost | wrong | says: what was in memory before is missing
def quantize_with_memory(x, memory, block):
    codes, scales = quantize_blocks(x + memory, block)
    memory.copy_(x - (codes * scales[:, None]).flatten())
    return codes, scales


# %% wrong: x is used as the sum | wrong | says: `x` has changed
def quantize_with_memory(x, memory, block):
    x += memory
    codes, scales = quantize_blocks(x, block)
    memory.copy_(x - (codes * scales[:, None]).flatten())
    return codes, scales


# %% wrong: memory is subtracted | wrong | says: x \+ memory is
def quantize_with_memory(x, memory, block):
    total = x - memory
    codes, scales = quantize_blocks(total, block)
    memory.copy_(total - (codes * scales[:, None]).flatten())
    return codes, scales


# %% wrong: gives what was read | wrong | says: codes
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    read = (codes * scales[:, None]).flatten()
    memory.copy_(total - read)
    return read
