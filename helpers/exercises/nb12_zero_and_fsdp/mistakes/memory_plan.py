# %% the share is a fraction
# Round the share up, `own = -(-sum(layers) // ranks)`, once, over all layers; then multiply by its bytes.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = total / ranks
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% rounded down
# Round the share up, `own = -(-sum(layers) // ranks)`, once, over all layers; then multiply by its bytes.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = total // ranks
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% nothing is gathered in stage 3
# For a moment one layer is whole, its weight and its gradient: 4 bytes an element.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% only the weight of the largest layer
# The largest layer's gradient is whole for a moment, too: 2 + 2 bytes.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 2 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% float32 Adam without mixed precision is 16 bytes, too, but cut otherwise
# The sentence below the table: 16 bytes for each element of the share, and the largest layer's weight and
# gradient, 2 + 2 bytes for each of its elements.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 8 * total + 8 * own, 4 * total + 12 * own, 16 * own + 8 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% the stage with the least memory
# The stage is the first that fits, not the one that needs least: each further stage communicates no less.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    best = min(range(4), key=lambda n: needs[n])
    return needs, best if needs[best] <= memory else None


# %% must be strictly below
# From 0 to 3, the first that fits is the first need with `need <= memory`: equal fits.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need < memory), None)


# %% 3 where nothing fits
# No need is within `memory`: nothing fits, and the stage is None.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), 3)


# %% only the stage comes back
# Return `needs, stage`: a list of four numbers, and 0, 1, 2, 3 or None.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return next((n for n, need in enumerate(needs) if need <= memory), None)


# %% gradients are whole in stage 2
# The table's row for ZeRO-2: what is `in shards` counts for the share, the rest for the elements of all
# layers. Weights whole, 2 bytes; gradients and state in shards, 14 bytes.
def memory_plan(layers, ranks, memory):
    total, own = sum(layers), -(-sum(layers) // ranks)
    needs = [16 * total, 4 * total + 12 * own, 4 * total + 12 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% all layers are gathered at once in stage 3
# Only one layer at a time is whole: the largest counts, not those of all layers.
def memory_plan(layers, ranks, memory):
    total, own = sum(layers), -(-sum(layers) // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * total]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% float32 Adam
# The table's first row: 2 + 2 + 12 bytes, times the elements of all layers.
def memory_plan(layers, ranks, memory):
    total, own = sum(layers), -(-sum(layers) // ranks)
    needs = [14 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% each layer's share is rounded up
# Round the share up, `own = -(-sum(layers) // ranks)`, once, over all layers; then multiply by its bytes.
def plan(total, own, top, memory):
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


def memory_plan(layers, ranks, memory):
    return plan(sum(layers), sum(-(-n // ranks) for n in layers), max(layers), memory)


# %% the last layer counts as the largest
# The sentence below the table: 16 bytes for each element of the share, and the largest layer's weight and
# gradient, 2 + 2 bytes for each of its elements.
def plan(total, own, top, memory):
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


def memory_plan(layers, ranks, memory):
    return plan(sum(layers), -(-sum(layers) // ranks), layers[-1], memory)
