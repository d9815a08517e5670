from torch.nn.functional import cross_entropy


def average_parameters(model):
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()


# %% gradients averaged in every step
# The ranks average gradients: let each rank step with its own gradient, and average the weights after steps
# {every}, {twice}, ...
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
# The ranks average gradients: let each rank step with its own gradient, and average the weights after steps
# {every}, {twice}, ...
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
# The weights are averaged before step {every}: that step is still the rank's own, so average after it.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        if (step + 1) % every == 0:
            average_parameters(model)
        optimizer.step()


# %% never
# The ranks never average their weights: after step {every} each parameter becomes the mean over the ranks.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()


# %% the samples that are left over make one more step
# A last, smaller batch makes one more step: {samples} samples give len(x) // batch_size = {steps}, and the
# rest is not used.
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
# The gradients of earlier steps are still in the sum: clear them before each backward.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            for p in model.parameters():
                dist.all_reduce(p.data)
                p.data /= world_size


# %% counts steps from 0
# The weights are averaged one step too late. Count the steps from 1: the first average is after step
# {every}.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            average_parameters(model)


# %% once more at the end
# The weights are averaged once more at the end. Do not average after the last steps, those after the last
# multiple of {every}.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    steps = len(x) // batch_size
    for step in range(1, steps + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0 or step == steps:
            average_parameters(model)


# %% averaged after every step
# The weights are averaged after every step: only steps {every}, {twice}, ... end with an average.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(len(x) // batch_size):
        own = slice(step * batch_size, (step + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        average_parameters(model)


# %% gradients and weights averaged
# The ranks average gradients: let each rank step with its own gradient, and average the weights after steps
# {every}, {twice}, ...
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad /= world_size
        optimizer.step()
        if step % every == 0:
            average_parameters(model)


# %% forgets the momentum
# The optimizer forgets its momentum at each average: average the weights, and leave the optimizer alone.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            average_parameters(model)
            optimizer.state.clear()


# %% buffers are averaged too
# Buffers are averaged, too: average only `model.parameters()`.
def local_sgd(rank, world_size, model, optimizer, x, y, batch_size, every):
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        optimizer.zero_grad()
        cross_entropy(model(x[own]), y[own]).backward()
        optimizer.step()
        if step % every == 0:
            for value in model.state_dict().values():
                dist.all_reduce(value)
                value /= world_size
