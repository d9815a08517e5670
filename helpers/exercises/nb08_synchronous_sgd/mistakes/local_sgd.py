from torch.nn.functional import cross_entropy


def average_parameters(model):
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()


# %% gradients averaged in every step
# A step is one rank's own affair, with its own gradient: no gradient is averaged. The weights are
# averaged, after steps {every}, {twice}, ...
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world_size
        optimizer.step()


# %% the sum of the weights
# This is the sum of the ranks' weights: divide it by the world size.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if (step + 1) % every == 0:
            for p in model.parameters():
                dist.all_reduce(p.data)


# %% averages the gradients every so many steps, not the weights
# A step is one rank's own affair, with its own gradient: no gradient is averaged. The weights are
# averaged, after steps {every}, {twice}, ...
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


# %% averages before the step
# Step {every} itself is still a rank's own: its weights are averaged after it, not before.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        if (step + 1) % every == 0:
            average_parameters(model)
        optimizer.step()


# %% never
# The ranks never meet: after step {every} each parameter becomes the mean of the ranks' parameters.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()


# %% the samples that are left over make one more step
# {samples} samples make len(x) // batch_size = {steps} steps of {size}: what is left over makes no step.
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


# %% gradients are never cleared
# The gradients of the steps before are added to these: clear them before each step.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            for p in model.parameters():
                dist.all_reduce(p.data)
                p.data /= world_size
