# %% the share is a fraction
# A share has a whole number of elements: round it up once, over all layers, `own = -(-sum(layers) //
# ranks)`.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = total / ranks
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% rounded down
# The share is rounded down: round it up, `own = -(-sum(layers) // ranks)`.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = total // ranks
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% nothing is gathered in stage 3
# The need of ZeRO-3 lacks the gathered layer: for a moment one layer's weight and gradient are whole, 4
# bytes per element.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% only the weight of the largest layer
# ZeRO-3 counts only the weight of the gathered layer: its gradient is whole for a moment, too, 2 + 2 bytes
# an element.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 2 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% float32 Adam without mixed precision is 16 bytes, too, but cut otherwise
# ZeRO-3 is wrong: 16 bytes for each element of the share, and 2 + 2 bytes for each element of the largest
# layer.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 8 * total + 8 * own, 4 * total + 12 * own, 16 * own + 8 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% the stage with the least memory
# This is the stage that needs least: return the first one that fits, because a later stage never
# communicates less.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    best = min(range(4), key=lambda n: needs[n])
    return needs, best if needs[best] <= memory else None


# %% must be strictly below
# A need that equals `memory` fits: use `need <= memory`.
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need < memory), None)


# %% 3 where nothing fits
# No stage fits into `memory`: return None as the stage.
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
# ZeRO-2 is wrong: weights are whole (2 bytes an element), gradients and state are in shards (14 bytes).
def memory_plan(layers, ranks, memory):
    total, own = sum(layers), -(-sum(layers) // ranks)
    needs = [16 * total, 4 * total + 12 * own, 4 * total + 12 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% all layers are gathered at once in stage 3
# ZeRO-3 counts all layers as gathered: only one at a time is, so count the largest.
def memory_plan(layers, ranks, memory):
    total, own = sum(layers), -(-sum(layers) // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * total]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% float32 Adam
# The number of bytes without sharding is wrong: 2 + 2 + 12 bytes for each element of all layers.
def memory_plan(layers, ranks, memory):
    total, own = sum(layers), -(-sum(layers) // ranks)
    needs = [14 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% each layer's share is rounded up
# The share of each layer is rounded up: round up once, over all layers, `own = -(-sum(layers) // ranks)`.
def plan(total, own, top, memory):
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


def memory_plan(layers, ranks, memory):
    return plan(sum(layers), sum(-(-n // ranks) for n in layers), max(layers), memory)


# %% the last layer counts as the largest
# ZeRO-3 does not use the largest layer: 4 bytes for each element of `max(layers)`.
def plan(total, own, top, memory):
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


def memory_plan(layers, ranks, memory):
    return plan(sum(layers), -(-sum(layers) // ranks), layers[-1], memory)


# %% rounded by float division
# The share goes through a float, which has only about 16 digits: use integers, `-(-sum(layers) // ranks)`.
def memory_plan(layers, ranks, memory):
    import math

    total = sum(layers)
    own = math.ceil(total / ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% the largest layer without its shard
# ZeRO-3 counts the gathered layer without this rank's shard of it: count the whole layer, 4 bytes for each
# of its elements.
def memory_plan(layers, ranks, memory):
    total, top = sum(layers), max(layers)
    own = -(-total // ranks)
    needs = [
        16 * total,
        4 * total + 12 * own,
        2 * total + 14 * own,
        16 * own + 4 * (top - -(-top // ranks)),
    ]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% a middle layer counts as the largest
# ZeRO-3 does not use the largest layer: 4 bytes for each element of `max(layers)`.
def memory_plan(layers, ranks, memory):
    total, top = sum(layers), sorted(layers)[len(layers) // 2]
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% empties the list
# `layers` is changed: leave it as it was given.
def memory_plan(layers, ranks, memory):
    total = top = 0
    while layers:
        size = layers.pop()
        total, top = total + size, max(top, size)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)
