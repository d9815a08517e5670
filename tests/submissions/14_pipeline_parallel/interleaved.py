def name(kind, k, rank, world_size, stages):
    group, place = divmod(k, world_size * stages)
    turn, i = divmod(place, world_size)
    if kind == "B":
        turn = stages - 1 - turn
    return f"{turn * world_size + rank}{kind}{group * world_size + i}"


def taking_turns(forwards, backwards, ahead):
    order = forwards[:ahead]
    for k, backward in enumerate(backwards):
        order += forwards[ahead + k : ahead + k + 1] + [backward]
    return order


def lists(rank, world_size, stages, microbatches, group=0):
    group = group or world_size
    mine = [rank + world_size * turn for turn in range(stages)]
    rounds = [range(i, i + group) for i in range(0, microbatches, group)]
    forwards = [f"{s}F{i}" for few in rounds for s in mine for i in few]
    backwards = [f"{s}B{i}" for few in rounds for s in mine[::-1] for i in few]
    return forwards, backwards


# %% right: numbers, by divmod
def interleaved(rank, world_size, stages, microbatches):
    total = microbatches * stages
    ahead = min(2 * (world_size - 1 - rank) + (stages - 1) * world_size, total)
    order = [name("F", k, rank, world_size, stages) for k in range(ahead)]
    for k in range(total):
        if ahead + k < total:
            order.append(name("F", ahead + k, rank, world_size, stages))
        order.append(name("B", k, rank, world_size, stages))
    return order


# %% right: two lists, taken in turn, as a tuple
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return tuple(taking_turns(forwards, backwards, min(ahead, len(forwards))))


# %% right: in time, backward as soon as it can be, and no more held than allowed
def interleaved(rank, world_size, stages, microbatches):
    p, queues = world_size, []
    for r in range(p):
        queues.append(lists(r, p, stages, microbatches))
    forwards, backwards = queues[rank]
    most = 2 * (p - 1 - rank) + (stages - 1) * p + 1
    order, held = [], 0
    forwards, backwards = forwards[::-1], backwards[::-1]
    while backwards:
        if forwards and held < most:
            order.append(forwards.pop())
            held += 1
        else:
            order.append(backwards.pop())
            held -= 1
    return order


# %% right: a shorter warm-up, which holds less and is as fast where transfers take no time
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = world_size - 1 - rank + (stages - 1) * world_size
    return taking_turns(forwards, backwards, ahead)


# %% wrong: nothing comes back | wrong | says: nothing
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    taking_turns(forwards, backwards, 2 * (world_size - 1 - rank) + (stages - 1) * world_size)
