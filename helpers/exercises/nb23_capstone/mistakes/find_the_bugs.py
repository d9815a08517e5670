from contextlib import nullcontext

from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, DistributedSampler, Subset

ALL = {"hang", "sync", "scale", "clip", "epoch", "eval", "padding", "files"}


def script(bugs, rank, world_size, model, train, test, path, batch_size, accumulate, clip, epochs):
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sampler = DistributedSampler(train)
    loader = DataLoader(train, batch_size, sampler=sampler)
    if "padding" in bugs:
        held_out = DataLoader(test, batch_size, sampler=DistributedSampler(test, shuffle=False))
    else:
        own = range(len(test)) if "everything" in bugs else range(rank, len(test), world_size)
        held_out = DataLoader(Subset(test, own), batch_size)
    history = []

    def loss_of(x, y):
        return cross_entropy(ddp(x), y)

    for epoch in range(epochs):
        if "epoch" not in bugs:
            sampler.set_epoch(epoch)
        if "eval" not in bugs:
            model.train()
        for i, (x, y) in enumerate(loader):
            last = (i + ("sync" not in bugs)) % accumulate == 0
            if "clear" in bugs:
                optimizer.zero_grad()
            loss = loss_of(x, y) if "outside" in bugs else None
            with nullcontext() if last or "always" in bugs else ddp.no_sync():
                loss = loss_of(x, y) if "outside" not in bugs else loss
                if "twice" in bugs:
                    loss = loss / world_size
                if "scale" not in bugs:
                    loss = loss / accumulate
                loss.backward()
            if "clip" in bugs:
                clip_grad_norm_(model.parameters(), clip)
            if (i + 1) % accumulate == 0:
                if "clip" not in bugs:
                    clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                optimizer.zero_grad()
        model.eval()
        counts = torch.zeros(2)
        with torch.no_grad():
            for x, y in held_out:
                counts += torch.tensor([(model(x).argmax(1) == y).sum(), len(y)])
        if "hang" not in bugs or rank == 0:
            dist.reduce(counts, dst=0) if bugs & {"hang", "reduce"} else dist.all_reduce(counts)
        history.append((counts[0] / counts[1]).item())
        if rank == 0 or "files" in bugs:
            torch.save((ddp if "prefix" in bugs else model).state_dict(), path)
    return history


# %% only `hang` is left | deadlocked
# Look at the calls above: the ranks are not in the same one. A collective needs every rank, but only some
# of them reach it.
def find_the_bugs(*args, **settings):
    return script({"hang"}, *args, **settings)


# %% only `sync` is left
# The ranks have different weights: their gradients were not averaged, or not all of them. With DDP the
# backward of the last microbatch must average them (notebook 09).
def find_the_bugs(*args, **settings):
    return script({"sync"}, *args, **settings)


# %% only `scale` is left
# The step has the wrong length. The loss of a step is the mean over all microbatches of all ranks (notebook
# 08).
def find_the_bugs(*args, **settings):
    return script({"scale"}, *args, **settings)


# %% only `clip` is left
# The gradient is clipped in the wrong place, or not at all. One process clips once per step, the gradient
# of the whole batch: after the last backward, before the optimizer's step.
def find_the_bugs(*args, **settings):
    return script({"clip"}, *args, **settings)


# %% only `epoch` is left
# Every epoch has the same order. A sampler that shuffles needs the epoch's number (notebook 07).
def find_the_bugs(*args, **settings):
    return script({"epoch"}, *args, **settings)


# %% only `eval` is left
# The model learns in evaluation mode. `model.eval()` stays in force until `model.train()` is called, which
# each epoch needs.
def find_the_bugs(*args, **settings):
    return script({"eval"}, *args, **settings)


# %% only `padding` is left
# Each test sample must count once, over all ranks together. A DistributedSampler pads the shares to equal
# lengths, or drops what is left over (notebook 07).
def find_the_bugs(*args, **settings):
    return script({"padding"}, *args, **settings)


# %% only `files` is left
# Several ranks write the same file. All have the same weights: let rank 0 write it.
def find_the_bugs(*args, **settings):
    return script({"files"}, *args, **settings)


# %% only `sync` is repaired | deadlocked
# Look at the calls above: the ranks are not in the same one. A collective needs every rank, but only some
# of them reach it.
def find_the_bugs(*args, **settings):
    return script(ALL - {"sync"}, *args, **settings)


# %% only `scale` is repaired | deadlocked
# Look at the calls above: the ranks are not in the same one. A collective needs every rank, but only some
# of them reach it.
def find_the_bugs(*args, **settings):
    return script(ALL - {"scale"}, *args, **settings)


# %% only `clip` is repaired | deadlocked
# Look at the calls above: the ranks are not in the same one. A collective needs every rank, but only some
# of them reach it.
def find_the_bugs(*args, **settings):
    return script(ALL - {"clip"}, *args, **settings)


# %% only `epoch` is repaired | deadlocked
# Look at the calls above: the ranks are not in the same one. A collective needs every rank, but only some
# of them reach it.
def find_the_bugs(*args, **settings):
    return script(ALL - {"epoch"}, *args, **settings)


# %% only `eval` is repaired | deadlocked
# Look at the calls above: the ranks are not in the same one. A collective needs every rank, but only some
# of them reach it.
def find_the_bugs(*args, **settings):
    return script(ALL - {"eval"}, *args, **settings)


# %% only `padding` is repaired | deadlocked
# Look at the calls above: the ranks are not in the same one. A collective needs every rank, but only some
# of them reach it.
def find_the_bugs(*args, **settings):
    return script(ALL - {"padding"}, *args, **settings)


# %% only `files` is repaired | deadlocked
# Look at the calls above: the ranks are not in the same one. A collective needs every rank, but only some
# of them reach it.
def find_the_bugs(*args, **settings):
    return script(ALL - {"files"}, *args, **settings)


# %% all as found | deadlocked
# Look at the calls above: the ranks are not in the same one. A collective needs every rank, but only some
# of them reach it.
def find_the_bugs(*args, **settings):
    return script(ALL, *args, **settings)


# %% the accuracy is summed for rank 0 alone
# Every rank must return the accuracy over all ranks: right answers of all ranks divided by test samples of
# all ranks.
def find_the_bugs(*args, **settings):
    return script({"reduce"}, *args, **settings)


# %% the file is DDP's
# The checkpoint has DDP's names. Save `model.state_dict()`: `model` is the plain model.
def find_the_bugs(*args, **settings):
    return script({"prefix"}, *args, **settings)


# %% every rank evaluates all samples
# Each test sample must count once, over all ranks together. A DistributedSampler pads the shares to equal
# lengths, or drops what is left over (notebook 07).
def find_the_bugs(*args, **settings):
    return script({"everything"}, *args, **settings)


# %% divided by the ranks as well
# The step has the wrong length. The loss of a step is the mean over all microbatches of all ranks (notebook
# 08).
def find_the_bugs(*args, **settings):
    return script({"twice"}, *args, **settings)


# %% gradients cleared before every microbatch
# Gradients must be cleared after each step, and nowhere else.
def find_the_bugs(*args, **settings):
    return script({"clear"}, *args, **settings)


# %% nobody clips
# The gradient is clipped in the wrong place, or not at all. One process clips once per step, the gradient
# of the whole batch: after the last backward, before the optimizer's step.
def find_the_bugs(rank, world_size, model, train, test, path, batch_size, accumulate, clip, epochs):
    return script(
        set(), rank, world_size, model, train, test, path, batch_size, accumulate, 1e9, epochs
    )


# %% nothing is returned
# Every rank must return the accuracy over all ranks: right answers of all ranks divided by test samples of
# all ranks.
def find_the_bugs(*args, **settings):
    script(set(), *args, **settings)
