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


# %% wrong: a rank's stages are neighbours | wrong | says: Stages are dealt in turn
def interleaved(rank, world_size, stages, microbatches):
    mine = [rank * stages + turn for turn in range(stages)]
    forwards = [f"{s}F{i}" for s in mine for i in range(microbatches)]
    backwards = [f"{s}B{i}" for s in mine[::-1] for i in range(microbatches)]
    return taking_turns(forwards, backwards, world_size - 1 - rank)


# %% wrong: all forwards first | wrong | says: that is GPipe
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    return forwards + backwards


# %% wrong: the warm-up of one stage a rank | wrong | says: The warm-up is too short
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    return taking_turns(forwards, backwards, world_size - 1 - rank)


# %% right: a shorter warm-up, which holds less and is as fast where transfers take no time
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = world_size - 1 - rank + (stages - 1) * world_size
    return taking_turns(forwards, backwards, ahead)


# %% wrong: one forward too many | wrong | says: The warm-up ends one forward earlier
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size + 1
    return taking_turns(forwards, backwards, ahead)


# %% wrong: the same warm-up everywhere | wrong | says: The ranks differ in their warm-up
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    return taking_turns(forwards, backwards, 2 * (world_size - 1) + (stages - 1) * world_size)


# %% wrong: all microbatches through one stage after the other | wrong | says: All microbatches go through a stage before
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches, group=microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return taking_turns(forwards, backwards, ahead)


# %% wrong: one microbatch at a time | wrong | says: One microbatch goes through all stages
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches, group=1)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return taking_turns(forwards, backwards, ahead)


# %% wrong: backward with the first stage first | wrong | says: (A backward needs the forward|in reverse)
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    backwards = [each.replace("F", "B") for each in forwards]
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return taking_turns(forwards, backwards, ahead)


# %% wrong: the last backwards are forgotten | wrong | says: never runs
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return taking_turns(forwards, backwards[: len(forwards) - ahead], ahead)


# %% wrong: without the stage's number | wrong | says: One name for each action
def interleaved(rank, world_size, stages, microbatches):
    return [f"F{i}" for i in range(microbatches)] + [f"B{i}" for i in range(microbatches)]


# %% wrong: one string | wrong | says: One name for each action
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return " ".join(taking_turns(forwards, backwards, ahead))


# %% wrong: the warm-up without the other stages | wrong | says: forwards are missing from it
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    return taking_turns(forwards, backwards, 2 * (world_size - 1 - rank))


# %% wrong: a warm-up one forward too short | wrong | says: The first backward comes one forward too early
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size - 1
    return taking_turns(forwards, backwards, ahead)


# %% wrong: after the warm-up a backward comes first | wrong | says: The first backward comes one forward too early
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = min(2 * (world_size - 1 - rank) + (stages - 1) * world_size, len(forwards))
    order = forwards[:ahead]
    for k, backward in enumerate(backwards):
        order += [backward] + forwards[ahead + k : ahead + k + 1]
    return order


# %% wrong: small letters | wrong | says: '0f0', which names no action
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return [name.lower() for name in taking_turns(forwards, backwards, ahead)]


# %% wrong: parts in place of names | wrong | says: \(0, 'F', 0\), which names no action
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    order = taking_turns(forwards, backwards, ahead)
    return [
        (int(s), kind, int(i))
        for kind in "FB"
        for s, _, i in (name.partition(kind) for name in order if kind in name)
    ]


# %% wrong: nothing comes back | wrong | says: nothing
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    taking_turns(forwards, backwards, 2 * (world_size - 1 - rank) + (stages - 1) * world_size)


# %% wrong: the microbatch before the stage | wrong | says: A name begins with its stage
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    order = taking_turns(forwards, backwards, ahead)
    return [
        f"{i}{kind}{s}" for n in order for kind in "FB" if kind in n for s, i in [n.split(kind)]
    ]


# %% wrong: a rank's stages are numbered from 0 on every rank | wrong | says: of all ranks' stages
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    order = taking_turns(forwards, backwards, ahead)
    return [
        f"{int(s) // world_size}{kind}{i}"
        for n in order
        for kind in "FB"
        if kind in n
        for s, i in [n.split(kind)]
    ]
