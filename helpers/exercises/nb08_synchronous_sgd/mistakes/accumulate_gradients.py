from torch.nn.functional import cross_entropy


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% the loss is not divided
# This is the sum over the {k} microbatches: divide each loss by their number.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        cross_entropy(model(x), y).backward()
    average_gradients(model)


# %% not averaged over ranks
# This is the rank's own mean: average over the ranks, once, after the loop.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()


# %% sum over the ranks
# This is the sum over the ranks: divide by the world size.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)


# %% zero_grad inside the loop
# There are {k} microbatches, and the gradients of only one of them arrive: zero_grad belongs before the
# loop, the average after it.
def accumulate_gradients(model, microbatches):
    for x, y in microbatches:
        model.zero_grad()
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)


# %% never cleared
# The gradients of an earlier step are added to these: clear them at the start of each step, once, before
# the loop.
def accumulate_gradients(model, microbatches):
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)


# %% one large batch
# One microbatch at a time: forward and backward, so that its memory is free again.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    x = torch.cat([x for x, _ in microbatches])
    y = torch.cat([y for _, y in microbatches])
    cross_entropy(model(x), y).backward()
    average_gradients(model)


# %% one backward for all
# One microbatch at a time: forward and backward, so that its memory is free again.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    loss = sum(cross_entropy(model(x), y) for x, y in microbatches) / len(microbatches)
    loss.backward()
    average_gradients(model)


# %% divides by the world size too
# This is divided by the world size twice.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches) / dist.get_world_size()).backward()
    average_gradients(model)


# %% steps as well
# Nothing steps here: leave the mean in `p.grad`, whoever calls will step.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)
    for p in model.parameters():
        p.data -= 0.1 * p.grad


# %% the average of the last microbatch alone
# There are {k} microbatches, and the gradients of only one of them arrive: zero_grad belongs before the
# loop, the average after it.
def accumulate_gradients(model, microbatches):
    for x, y in microbatches:
        model.zero_grad()
        cross_entropy(model(x), y).backward()
    average_gradients(model)


# %% cleared only where it is the first call
# The gradients of an earlier step are added to these: clear them at the start of each step, once, before
# the loop.
def accumulate_gradients(model, microbatches):
    if all(p.grad is None for p in model.parameters()):
        model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)


# %% neither divided
# This is the sum over ranks and microbatches: divide by both.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        cross_entropy(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)


# %% clears a gradient that is not there yet | crashed
# `p.grad` is None until a backward has set it, and again after `zero_grad()`, which clears what is there
# and leaves None alone.
def accumulate_gradients(model, microbatches):
    for p in model.parameters():
        p.grad.zero_()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)
