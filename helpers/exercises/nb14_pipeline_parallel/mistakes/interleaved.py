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


# %% a rank's stages are neighbors
# A rank runs a stage that it does not have: stage s belongs to rank s % world_size. A name starts with the
# stage, counted over all ranks, and ends with the microbatch.
def interleaved(rank, world_size, stages, microbatches):
    mine = [rank * stages + turn for turn in range(stages)]
    forwards = [f"{s}F{i}" for s in mine for i in range(microbatches)]
    backwards = [f"{s}B{i}" for s in mine[::-1] for i in range(microbatches)]
    return taking_turns(forwards, backwards, world_size - 1 - rank)


# %% all forwards first
# All forwards run before the first backward, as in GPipe, so every activation is kept.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    return forwards + backwards


# %% the warm-up of one stage a rank
# The warm-up is too short: it is that of 1F1B with one stage per rank. Here it has 2 * (world_size - 1 -
# rank) + (stages - 1) * world_size forwards.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    return taking_turns(forwards, backwards, world_size - 1 - rank)


# %% one forward too many
# The warm-up has one forward too many: after it, F and B alternate, F first.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size + 1
    return taking_turns(forwards, backwards, ahead)


# %% the same warm-up everywhere
# The warm-up is equally long on all ranks. It gets shorter from rank to rank; the last one's is the
# shortest.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    return taking_turns(forwards, backwards, 2 * (world_size - 1) + (stages - 1) * world_size)


# %% all microbatches through one stage after the other
# All microbatches go through one stage before the next stage starts. Take world_size of them at a time.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches, group=microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return taking_turns(forwards, backwards, ahead)


# %% one microbatch at a time
# Each microbatch goes through all stages of the rank before the next one starts. Take world_size of them at
# a time.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches, group=1)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return taking_turns(forwards, backwards, ahead)


# %% backward with the first stage first
# Backward takes a rank's stages in the order of forward. It takes them in reverse, the last one first.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    backwards = [each.replace("F", "B") for each in forwards]
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return taking_turns(forwards, backwards, ahead)


# %% the last backwards are forgotten
# Some backwards are missing: each microbatch goes forward and backward once through each of the rank's
# stages.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return taking_turns(forwards, backwards[: len(forwards) - ahead], ahead)


# %% without the stage's number
# These are not names of actions. Return a list with one string for each: "5F0" for stage 5, forward,
# microbatch 0.
def interleaved(rank, world_size, stages, microbatches):
    return [f"F{i}" for i in range(microbatches)] + [f"B{i}" for i in range(microbatches)]


# %% one string
# These are not names of actions. Return a list with one string for each: "5F0" for stage 5, forward,
# microbatch 0.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return " ".join(taking_turns(forwards, backwards, ahead))


# %% the warm-up without the other stages
# The warm-up is too short: it lacks (stages - 1) * world_size forwards, for the rank's other stages.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    return taking_turns(forwards, backwards, 2 * (world_size - 1 - rank))


# %% a warm-up one forward too short
# The first backward comes one forward too early: after the warm-up F and B alternate, F first.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size - 1
    return taking_turns(forwards, backwards, ahead)


# %% after the warm-up a backward comes first
# The first backward comes one forward too early: after the warm-up F and B alternate, F first.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = min(2 * (world_size - 1 - rank) + (stages - 1) * world_size, len(forwards))
    order = forwards[:ahead]
    for k, backward in enumerate(backwards):
        order += [backward] + forwards[ahead + k : ahead + k + 1]
    return order


# %% small letters
# These are not names of actions. Return a list with one string for each: "5F0" for stage 5, forward,
# microbatch 0.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    return [name.lower() for name in taking_turns(forwards, backwards, ahead)]


# %% parts in place of names
# These are not names of actions. Return a list with one string for each: "5F0" for stage 5, forward,
# microbatch 0.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    order = taking_turns(forwards, backwards, ahead)
    return [
        (int(s), kind, int(i))
        for kind in "FB"
        for s, _, i in (name.partition(kind) for name in order if kind in name)
    ]


# %% the microbatch before the stage
# A rank runs a stage that it does not have: stage s belongs to rank s % world_size. A name starts with the
# stage, counted over all ranks, and ends with the microbatch.
def interleaved(rank, world_size, stages, microbatches):
    forwards, backwards = lists(rank, world_size, stages, microbatches)
    ahead = 2 * (world_size - 1 - rank) + (stages - 1) * world_size
    order = taking_turns(forwards, backwards, ahead)
    return [
        f"{i}{kind}{s}" for n in order for kind in "FB" if kind in n for s, i in [n.split(kind)]
    ]


# %% a rank's stages are numbered from 0 on every rank
# A rank runs a stage that it does not have: stage s belongs to rank s % world_size. A name starts with the
# stage, counted over all ranks, and ends with the microbatch.
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


# %% all microbatches through a stage, and as long a warm-up
# All microbatches go through one stage before the next stage starts. Take world_size of them at a time.
def interleaved(rank, world_size, stages, microbatches):
    p, v, m = world_size, stages, microbatches
    forwards = [f"{k * p + rank}F{i}" for k in range(v) for i in range(m)]
    backwards = [f"{k * p + rank}B{i}" for k in reversed(range(v)) for i in range(m)]
    ahead = min(2 * (p - 1 - rank) + (v - 1) * m, v * m)
    order = forwards[:ahead]
    for f, b in zip(forwards[ahead:], backwards):
        order += [f, b]
    return order + backwards[v * m - ahead :]
