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


# %% right: none of the eight is left
def find_the_bugs(*args, **settings):
    return script(set(), *args, **settings)


# %% right: averaged by hand, without DDP
def find_the_bugs(rank, world_size, model, train, test, path, batch_size, accumulate, clip, epochs):
    for p in model.parameters():
        dist.broadcast(p.data, 0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    sampler, history = DistributedSampler(train), []
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        model.train()
        for i, (x, y) in enumerate(DataLoader(train, batch_size, sampler=sampler)):
            (cross_entropy(model(x), y) / accumulate).backward()
            if i % accumulate < accumulate - 1:
                continue
            flat = torch.cat([p.grad.flatten() for p in model.parameters()])
            dist.all_reduce(flat, op=dist.ReduceOp.AVG)
            flat *= min(1, clip / (flat.norm() + 1e-6))
            parts = flat.split([p.numel() for p in model.parameters()])
            for p, part in zip(model.parameters(), parts):
                p.grad = part.view_as(p).clone()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        right = torch.tensor(0.0)
        with torch.inference_mode():
            for i in range(rank, len(test), world_size):
                x, y = test[i]
                right += model(x[None]).argmax().eq(y)
        dist.all_reduce(right)
        history.append(float(right) / len(test))
        if rank == 0:
            torch.save(model.state_dict(), path)
        dist.barrier()
    return history


# %% right: the wrapper switches modes and is unwrapped for the file
def find_the_bugs(rank, world_size, model, train, test, path, batch_size, accumulate, clip, epochs):
    ddp = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1, momentum=0.9)
    sampler = DistributedSampler(train, shuffle=True, seed=0)
    loader = DataLoader(train, batch_size=batch_size, sampler=sampler)
    history = []
    for epoch in range(epochs):
        ddp.train()
        sampler.set_epoch(epoch)
        optimizer.zero_grad()
        for i, (x, y) in enumerate(loader, 1):
            ddp.require_backward_grad_sync = i % accumulate == 0
            (cross_entropy(ddp(x), y) / accumulate).backward()
            if i % accumulate == 0:
                torch.nn.utils.clip_grad_norm_(ddp.parameters(), max_norm=clip)
                optimizer.step()
                optimizer.zero_grad()
        ddp.eval()
        sums = torch.zeros(2, dtype=torch.float64)
        with torch.no_grad():
            for x, y in DataLoader(Subset(test, range(len(test))[rank::world_size]), 100):
                sums[0] += (ddp.module(x).argmax(1) == y).sum()
                sums[1] += len(y)
        dist.all_reduce(sums)
        history.append((sums[0] / sums[1]).item())
        if rank == 0:
            torch.save(ddp.module.state_dict(), path)
    return history


# %% wrong: only `hang` is repaired | wrong | says: different weights|all write the same file
def find_the_bugs(*args, **settings):
    return script(ALL - {"hang"}, *args, **settings)


# %% wrong: synchronized with every microbatch | wrong | says: averaged once in each step
def find_the_bugs(*args, **settings):
    return script({"always"}, *args, **settings)


# %% wrong: only backward stands inside no_sync | wrong | says: must be inside no_sync
def find_the_bugs(*args, **settings):
    return script({"outside"}, *args, **settings)
