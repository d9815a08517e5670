from torch.nn.functional import cross_entropy


def average_gradients(model):
    raise NotImplementedError("Exercise 8.1: Average the gradients")


# %% wrong: gradients never cleared | wrong | says: clear them in each step


# %% wrong: the averaged gradient averaged again | wrong | says: divided by the world size twice


# %% wrong: all ranks the first part of the batch | wrong | says: belongs to exactly one rank


# %% wrong: rank 0's weights after every step too | wrong | says: Once, at the start


# %% right: average_gradients is still a stub, losses averaged by AVG
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.detach(), src=0)
    losses = []
    for xs, ys in zip(x[: steps * batch_size].split(batch_size), y.split(batch_size)):
        optimizer.zero_grad()
        loss = cross_entropy(model(xs[rank::world_size]), ys[rank::world_size])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        told = loss.detach().clone()
        dist.all_reduce(told, op=dist.ReduceOp.AVG)
        losses.append(told.item())
    return losses


# %% right: the gradients of sums over samples, divided by the batch
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    dist.broadcast(weights, src=0)
    torch.nn.utils.vector_to_parameters(weights, model.parameters())
    losses = []
    for step in range(steps):
        own = torch.arange(step * batch_size + rank, (step + 1) * batch_size, world_size)
        loss = cross_entropy(model(x[own]), y[own], reduction="sum") / batch_size
        for p, g in zip(model.parameters(), torch.autograd.grad(loss, list(model.parameters()))):
            dist.all_reduce(g)
            p.grad = g
        optimizer.step()
        total = loss.detach()
        dist.all_reduce(total)
        losses.append(float(total))
    return losses


# %% wrong: the gradients are summed | wrong | says: divide the sum of the gradients by the world size
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


# %% wrong: the losses are summed | wrong | says: divide each loss by the world size
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


# %% wrong: a second forward gives the whole batch's loss | wrong | says: no second forward is needed
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


# %% wrong: one step too many | wrong | says: optimizer.step\(\) is called
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in [*range(steps), 0]:
        own = slice(step * batch_size + rank, (step + 1) * batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses[:-1]


# %% wrong: the ranks' weights at the start are averaged | wrong | says: weights before step 1
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.all_reduce(p.data, op=dist.ReduceOp.AVG)
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


# %% wrong: each batch begins at its number | wrong | says: weights after step 2
def train_synchronously(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    losses = []
    for step in range(steps):
        own = slice(step + rank, step + batch_size, world_size)
        optimizer.zero_grad()
        loss = cross_entropy(model(x[own]), y[own])
        loss.backward()
        average_gradients(model)
        optimizer.step()
        mean = loss.detach()
        dist.all_reduce(mean)
        losses.append(mean.item() / world_size)
    return losses
