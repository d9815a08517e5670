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


# %% wrong: gradients averaged in every step | wrong | says: one rank's own affair
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world_size
        optimizer.step()


# %% wrong: meets at step 0 | wrong | says: Count the steps from 1
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            average_parameters(model)


# %% wrong: the sum of the weights | wrong | says: divided by the world size
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if (step + 1) % every == 0:
            for p in model.parameters():
                dist.all_reduce(p.data)


# %% wrong: averages the gradients every so many steps, not the weights | wrong | says: averaged after it
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        if (step + 1) % every == 0:
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p.grad /= world_size
        optimizer.step()


# %% wrong: averages before the step | wrong | says: averaged after it
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        if (step + 1) % every == 0:
            average_parameters(model)
        optimizer.step()


# %% wrong: once more at the end | wrong | says: at no other time
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if (step + 1) % every == 0:
            average_parameters(model)
    average_parameters(model)


# %% wrong: never | wrong | says: mean of the ranks'\s+parameters
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()


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


# %% wrong: averaged after every step | wrong | says: Count the steps from 1|one rank's own affair
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        average_parameters(model)


# %% wrong: the samples that are left over make one more step | wrong | says: what is left over makes no step
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for k in range(-(-len(x) // batch_size)):
        own = slice(k * batch_size, (k + 1) * batch_size)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if (k + 1) % every == 0:
            for p in model.parameters():
                dist.all_reduce(p.data)
                p.data /= world_size
