# %% memory is forgotten
# What this call lost is kept, but what was in memory before never goes out: quantize x + memory.
def quantize_with_memory(x, memory, block):
    codes, scales = quantize_blocks(x, block)
    memory.copy_(x - (codes * scales[:, None]).flatten())
    return codes, scales


# %% memory gets another name
# `memory` is as it was: write into the tensor itself, `memory.copy_(...)`; `memory = ...` only gives
# another one that name.
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    memory = total - (codes * scales[:, None]).flatten()
    return codes, scales


# %% nothing is kept
# `memory` is as it was: write into the tensor itself, `memory.copy_(...)`; `memory = ...` only gives
# another one that name.
def quantize_with_memory(x, memory, block):
    return quantize_blocks(x + memory, block)


# %% the sign
# memory has the wrong sign: the loss is what was to be sent, minus what can be read out of the codes.
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    memory.copy_((codes * scales[:, None]).flatten() - total)
    return codes, scales


# %% losses pile up
# memory was added to what it was before, although that has gone out with this call: put the new loss in
# its place.
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    memory += total - (codes * scales[:, None]).flatten()
    return codes, scales


# %% only what x lost
# What is lost is x + memory minus what is read; here what was in memory before is missing.
def quantize_with_memory(x, memory, block):
    codes, scales = quantize_blocks(x + memory, block)
    memory.copy_(x - (codes * scales[:, None]).flatten())
    return codes, scales


# %% x is used as the sum
# x is needed by its caller: work on a sum of your own.
def quantize_with_memory(x, memory, block):
    x += memory
    codes, scales = quantize_blocks(x, block)
    memory.copy_(x - (codes * scales[:, None]).flatten())
    return codes, scales


# %% gives what was read
# Return a tuple: codes, scales.
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    read = (codes * scales[:, None]).flatten()
    memory.copy_(total - read)
    return read
