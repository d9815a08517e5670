# %% right: by the table
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)]
    stage = next((n for n, need in enumerate(needs) if need <= memory), None)
    return needs, stage


# %% right: in steps, with a tuple

def memory_plan(layers: list[int], ranks: int, memory: int):
    weight, grad, state = 2, 2, 12
    n = sum(layers)
    shard = (n + ranks - 1) // ranks
    ddp = n * (weight + grad + state)
    zero1 = n * (weight + grad) + shard * state
    zero2 = n * weight + shard * (grad + state)
    zero3 = shard * (weight + grad + state) + max(layers) * (weight + grad)
    needs = (ddp, zero1, zero2, zero3)
    for stage in range(4):
        if needs[stage] <= memory:
            return needs, stage
    return needs, None


# %% right: numpy, stages by a matrix
import numpy as np


def memory_plan(layers, ranks, memory):
    n, own = sum(layers), (sum(layers) + ranks - 1) // ranks
    cut = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]])
    needs = (np.array([2, 2, 12]) * np.where(cut, own, n)).sum(1)
    needs[3] += 4 * max(layers)
    fits = [i for i in range(4) if needs[i] <= memory]
    return [int(v) for v in needs], (fits[0] if fits else None)


# %% wrong: printed | wrong | says: prints, but returns nothing
def memory_plan(layers, ranks, memory):
    total = sum(layers)
    own = -(-total // ranks)
    print([16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * max(layers)])


# %% right: the layers by a loop, needs as a tuple
def plan(total, own, top, memory):
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


def memory_plan(layers, ranks, memory):
    total = largest = 0
    for n in layers:
        total, largest = total + n, max(largest, n)
    own = (total + ranks - 1) // ranks
    needs, stage = plan(total, own, largest, memory)
    return tuple(needs), stage


# %% wrong: the stages are numbered from 1 | wrong | says: \[1\]:
def plan(total, own, top, memory):
    needs = [16 * total, 4 * total + 12 * own, 2 * total + 14 * own, 16 * own + 4 * top]
    return needs, next((n for n, need in enumerate(needs) if need <= memory), None)


def memory_plan(layers, ranks, memory):
    needs, stage = plan(sum(layers), -(-sum(layers) // ranks), max(layers), memory)
    return needs, None if stage is None else stage + 1
