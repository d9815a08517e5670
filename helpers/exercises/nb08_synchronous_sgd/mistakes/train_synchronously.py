from torch.nn.functional import cross_entropy


def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


def broadcast_weights(model):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)


def train_on(model, optimizer, x, y):
    optimizer.zero_grad()
    loss = cross_entropy(model(x), y)
    loss.backward()
    average_gradients(model)
    optimizer.step()
    return loss


def mean_over_ranks(loss):
    mean = loss.detach()
    dist.all_reduce(mean)
    return mean.item() / dist.get_world_size()


# %% every rank its own weights
# The ranks start with different weights: broadcast rank 0's parameters before the first step.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = train_on(model, optimizer, x[own], y[own])
        losses.append(mean_over_ranks(loss))
    return losses


# %% the step before the average
# Each rank steps with its own gradient: average the gradients after backward and before optimizer.step().
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        optimizer.step()
        average_gradients(model)
        losses.append(mean_over_ranks(loss))
    return losses


# %% every rank computes the whole batch
# Every rank computes the whole batch: take this rank's share of its samples, such as every world_size-th
# from `rank` on.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
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
# These are the rank's own losses: return the mean over all ranks, which is the loss of the whole batch.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = train_on(model, optimizer, x[own], y[own])
        losses.append(loss.item())
    return losses


# %% prints the losses
# No losses are returned: return a list of floats, one for each step, on every rank.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = train_on(model, optimizer, x[own], y[own])
        print(loss.item())


# %% gradients never cleared
# The gradients of earlier steps are still in the sum: clear them in each step, before backward.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(mean_over_ranks(loss))
    return losses


# %% cleared between backward and step
# The weights do not change: the gradients are zero when optimizer.step() is called.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.zero_grad(set_to_none=False)
        optimizer.step()
        losses.append(mean_over_ranks(loss))
    return losses


# %% the averaged gradient averaged again
# The gradients are divided by the world size twice, so each step is {n} times too short.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
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
# All ranks use the first part of the batch: each sample belongs to exactly one rank.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size, step * batch_size + batch_size // world_size)
        loss = train_on(model, optimizer, x[own], y[own])
        losses.append(loss.item())
    return losses


# %% weights averaged in place of gradients
# Each rank steps with its own gradient: average the gradients after backward and before optimizer.step().
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
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
        losses.append(mean_over_ranks(loss))
    return losses


# %% one loss too few, an early stop on rank 0 | deadlocked
# A collective call waits for all ranks: every rank must make the same calls in the same order.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        if rank == 0 and step == steps - 1:
            break
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = train_on(model, optimizer, x[own], y[own])
        losses.append(loss.item())
    return losses


# %% the gradients are summed
# The gradients are summed, so each step is {n} times too long: divide them by the world size.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
        optimizer.step()
        losses.append(mean_over_ranks(loss))
    return losses


# %% the losses are summed
# The losses are summed over the ranks: divide each by the world size.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = train_on(model, optimizer, x[own], y[own])
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item())
    return losses


# %% a second forward gives the whole batch's loss
# The loss comes from a second forward of the whole batch: average the ranks' own losses instead, on which
# they called backward.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
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
# `p.grad` is None until backward has set it. `zero_grad()` clears gradients that exist and skips None.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        for p in model.parameters():
            p.grad.zero_()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        losses.append(mean_over_ranks(loss))
    return losses


# %% the loss is computed again after the step
# The loss is computed by another forward after the step: return the loss on which you called backward,
# averaged over the ranks.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        average_gradients(model)
        optimizer.step()
        mean = cross_entropy(model(x[own]), y[own]).detach()
        dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses


# %% only matrices are broadcast
# The ranks start with different biases: broadcast every parameter, not only the matrices.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        if p.dim() > 1:
            dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = train_on(model, optimizer, x[own], y[own])
        losses.append(mean_over_ranks(loss))
    return losses


# %% the first batch in every step
# Every step uses the first batch: step k (from 0) uses the samples from `k * batch_size` on.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for _ in range(steps):
        own = slice(rank, batch_size, world_size)
        loss = train_on(model, optimizer, x[own], y[own])
        losses.append(mean_over_ranks(loss))
    return losses


# %% each batch begins at its number
# Batch k begins at sample k: step k (from 0) uses the samples from `k * batch_size` on.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    broadcast_weights(model)
    losses = []
    for step in range(steps):
        own = slice(step + rank, step + batch_size, world_size)
        loss = train_on(model, optimizer, x[own], y[own])
        losses.append(mean_over_ranks(loss))
    return losses


# %% the weights at the start are averaged
# The ranks start from the mean of their weights: start from rank 0's, with one broadcast.
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= world_size
    losses = []
    for step in range(steps):
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = train_on(model, optimizer, x[own], y[own])
        losses.append(mean_over_ranks(loss))
    return losses
