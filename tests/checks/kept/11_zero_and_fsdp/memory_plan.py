def plan(total, own, top, memory):
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


# %% wrong: the share is a fraction | wrong | says: Round the share up


# %% wrong: rounded down | wrong | says: Round the share up


# %% wrong: nothing is gathered in stage 3 | wrong | says: For a moment one layer is whole


# %% wrong: float32 Adam without mixed precision is 16 bytes, too, but cut otherwise | wrong | says: The sentence below the table


# %% wrong: only the stage comes back | wrong | says: Return `needs, stage`


# %% wrong: printed | wrong | says: prints, but returns nothing


# %% wrong: all layers are gathered at once in stage 3 | wrong | says: not those of all layers


# %% wrong: each layer's share is rounded up | wrong | says: once, over all layers
def memory_plan(layers, ranks, memory):
    return plan(sum(layers), sum(-(-n // ranks) for n in layers), max(layers), memory)


# %% wrong: the last layer counts as the largest | wrong | says: The sentence below the table
def memory_plan(layers, ranks, memory):
    return plan(sum(layers), -(-sum(layers) // ranks), layers[-1], memory)


# %% right: the layers by a loop, needs as a tuple
def memory_plan(layers, ranks, memory):
    total = largest = 0
    for n in layers:
        total, largest = total + n, max(largest, n)
    own = (total + ranks - 1) // ranks
    needs, stage = plan(total, own, largest, memory)
    return tuple(needs), stage


# %% wrong: the stages are numbered from 1 | wrong | says: \[1\]: 
def memory_plan(layers, ranks, memory):
    needs, stage = plan(sum(layers), -(-sum(layers) // ranks), max(layers), memory)
    return needs, None if stage is None else stage + 1
