from torch.nn.functional import cross_entropy


def average_parameters(model):
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()


# %% right: weights averaged after every so many steps
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if (step + 1) % every == 0:
            average_parameters(model)


# %% right: one vector, AVG, a loop over split
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for count, (a, b) in enumerate(zip(x.split(batch_size), y.split(batch_size)), start=1):
        if len(a) < batch_size:
            return
        loss = cross_entropy(model(a), b)
        model.zero_grad()
        loss.backward()
        optimizer.step()
        if not count % every:
            vector = parameters_to_vector(model.parameters()).detach()
            dist.all_reduce(vector, op=dist.ReduceOp.AVG)
            vector_to_parameters(vector, model.parameters())


# %% wrong: rank 0's weights for all | wrong | says: only all_reduce may be used
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if (step + 1) % every == 0:
            for p in model.parameters():
                dist.broadcast(p.data, src=0)


# %% right: a while loop, the mean in a buffer, AVG under no_grad
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    step = 0
    while (step + 1) * batch_size <= len(x):
        batch = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad(set_to_none=False)
        torch.nn.CrossEntropyLoss()(model(x[batch]), y[batch]).backward()
        optimizer.step()
        step += 1
        if step % every:
            continue
        with torch.no_grad():
            for p in model.parameters():
                mean = p.clone()
                dist.all_reduce(mean, op=dist.ReduceOp.AVG)
                p.copy_(mean)


# %% right: all in flight, then all divided
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        model.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            works = [dist.all_reduce(p.data, async_op=True) for p in model.parameters()]
            for work, p in zip(works, model.parameters()):
                work.wait()
                p.data.div_(world_size)


# %% wrong: divides before wait() | wrong | says: never calls wait
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            for p in model.parameters():
                dist.all_reduce(p.data, async_op=True)
                p.data /= world_size


# %% wrong: counts its steps through all calls | wrong | says: weights (at|after)
STEPS = 0


def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    global STEPS
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        STEPS += 1
        if STEPS % every == 0:
            average_parameters(model)
