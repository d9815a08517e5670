# %% memory is forgotten
# What earlier calls lost is never sent: quantize x + memory, not x.
def quantize_with_memory(x, memory, block):
    codes, scales = quantize_blocks(x, block)
    memory.copy_(x - (codes * scales[:, None]).flatten())
    return codes, scales


# %% memory gets another name
# `memory` has not changed. Write into the tensor itself, `memory.copy_(...)`; `memory = ...` only binds the
# name to another tensor.
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    memory = total - (codes * scales[:, None]).flatten()
    return codes, scales


# %% nothing is kept
# `memory` has not changed. Write into the tensor itself, `memory.copy_(...)`; `memory = ...` only binds the
# name to another tensor.
def quantize_with_memory(x, memory, block):
    return quantize_blocks(x + memory, block)


# %% the sign
# memory has the wrong sign. The loss is what was to be sent, minus what the codes represent.
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    memory.copy_((codes * scales[:, None]).flatten() - total)
    return codes, scales


# %% losses pile up
# The new loss was added to the old memory, which has been sent with this call. Replace it.
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    memory += total - (codes * scales[:, None]).flatten()
    return codes, scales


# %% only what x lost
# The loss does not count what was in memory before. It is x + memory, minus what the codes represent.
def quantize_with_memory(x, memory, block):
    codes, scales = quantize_blocks(x + memory, block)
    memory.copy_(x - (codes * scales[:, None]).flatten())
    return codes, scales


# %% x is used as the sum
# x was changed, and the caller still needs it. Add x and memory into a tensor of your own.
def quantize_with_memory(x, memory, block):
    x += memory
    codes, scales = quantize_blocks(x, block)
    memory.copy_(x - (codes * scales[:, None]).flatten())
    return codes, scales


# %% gives what was read
# Return a pair: codes, scales.
def quantize_with_memory(x, memory, block):
    total = x + memory
    codes, scales = quantize_blocks(total, block)
    read = (codes * scales[:, None]).flatten()
    memory.copy_(total - read)
    return read


# %% memory is subtracted, and kept with the other sign
# memory has the wrong sign. The loss is what was to be sent, minus what the codes represent.
def quantize_with_memory(x, memory, block):
    codes, scales = quantize_blocks(x - memory, block)
    memory.copy_((codes * scales[:, None]).flatten() - x)
    return codes, scales
