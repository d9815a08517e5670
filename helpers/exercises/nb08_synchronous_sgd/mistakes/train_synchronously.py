from torch.nn.functional import cross_entropy


def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


# %% every rank its own weights
# The ranks begin with different weights: broadcast rank 0's before the first step.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses


# %% the step before the average
# Each rank steps with its own gradient: average the gradients between backward and optimizer.step(), on
# every rank.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        optimizer.step()
        average_gradients(model)
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses


# %% every rank computes the whole batch
# Cut this rank's part out of each batch first: the others compute the rest. And keep the loss that you
# called backward on: no second forward is needed to return it.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% the rank's own losses
# Return, on every rank, the mean over the whole batch: the mean of the ranks' losses, each taken before
# the step.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% prints the losses
# It returns no losses: a list of floats is wanted, one for each step, on every rank.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        print(loss.item())


# %% gradients never cleared
# The gradients of the steps before are added to these: clear them in each step, before backward.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses


# %% cleared between backward and step
# The weights do not move: is the gradient still there when optimizer.step() is called?
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.zero_grad(set_to_none=False)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses


# %% the averaged gradient averaged again
# Each step is {n} times too short: the gradients are divided by the world size twice.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own]) / world_size
        loss.backward()
        average_gradients(model)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item())
    return losses


# %% all ranks the first part of the batch
# All ranks learn from the first part of the batch: every sample belongs to exactly one rank.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size, step * batch_size + batch_size // world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% weights averaged in place of gradients
# Each rank steps with its own gradient: average the gradients between backward and optimizer.step(), on
# every rank.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        optimizer.step()
        for p in model.parameters():
            dist.all_reduce(p.data)
            p.data /= world_size
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses


# %% one loss too few, an early stop on rank 0 | deadlocked
# A collective waits for all ranks: every rank must make the same calls, in the same order.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        if rank == 0 and step == steps - 1:
            break
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(loss.item())
    return losses


# %% the gradients are summed
# Each step is {n} times too long: divide the sum of the gradients by the world size.
from torch.nn.functional import cross_entropy


def average_gradients(model):
    raise NotImplementedError("Exercise 8.1: Average the gradients")


def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses


# %% the losses are summed
# These are the sums over the ranks: divide each loss by the world size.
from torch.nn.functional import cross_entropy


def average_gradients(model):
    raise NotImplementedError("Exercise 8.1: Average the gradients")


def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item())
    return losses


# %% a second forward gives the whole batch's loss
# Cut this rank's part out of each batch first: the others compute the rest. And keep the loss that you
# called backward on: no second forward is needed to return it.
from torch.nn.functional import cross_entropy


def average_gradients(model):
    raise NotImplementedError("Exercise 8.1: Average the gradients")


def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        batch = slice(step * batch_size, (step + 1) * batch_size)
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        with torch.no_grad():
            losses.append(cross_entropy(model(x[batch]), y[batch]).item())
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        average_gradients(model)
        optimizer.step()
    return losses


# %% clears a gradient that is not there yet | crashed
# `p.grad` is None until a backward has set it, and again after `zero_grad()`, which clears what is there
# and leaves None alone.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        for p in model.parameters():
            p.grad.zero_()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses
