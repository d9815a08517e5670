from torch.nn.functional import cross_entropy


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% the loss is not divided
# This is the sum over {k}: divide each loss by the number of microbatches.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        cross_entropy(model(x), y).backward()
    average_gradients(model)


# %% not averaged over ranks
# This is the rank's own mean: average the gradients over the ranks once, after the loop.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()


# %% sum over the ranks
# This is the sum over the ranks: divide it by the world size.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)


# %% zero_grad inside the loop
# There are {k}, but only the last one's gradients are left: call zero_grad before the loop.
def accumulate_gradients(model, microbatches):
    for x, y in microbatches:
        model.zero_grad()
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)


# %% never cleared
# The gradients of an earlier step are still in the sum: clear them once in each step, before the loop.
def accumulate_gradients(model, microbatches):
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)


# %% one large batch
# Run forward and backward for one microbatch before the next: backward frees its activations.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    x = torch.cat([x for x, _ in microbatches])
    y = torch.cat([y for _, y in microbatches])
    cross_entropy(model(x), y).backward()
    average_gradients(model)


# %% one backward for all
# Run forward and backward for one microbatch before the next: backward frees its activations.
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
# This changes the weights: only leave the mean in `p.grad`; the caller steps.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)
    for p in model.parameters():
        p.data -= 0.1 * p.grad


# %% the average of the last microbatch alone
# There are {k}, but only the last one's gradients are left: call zero_grad before the loop.
def accumulate_gradients(model, microbatches):
    for x, y in microbatches:
        model.zero_grad()
        cross_entropy(model(x), y).backward()
    average_gradients(model)


# %% cleared only where it is the first call
# The gradients of an earlier step are still in the sum: clear them once in each step, before the loop.
def accumulate_gradients(model, microbatches):
    if all(p.grad is None for p in model.parameters()):
        model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)


# %% neither divided
# This is the sum over ranks and microbatches: divide by the number of both.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        cross_entropy(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)


# %% clears a gradient that is not there yet | crashed
# `p.grad` is None until backward has set it. `zero_grad()` clears gradients that exist and skips None.
def accumulate_gradients(model, microbatches):
    for p in model.parameters():
        p.grad.zero_()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)


# %% summed over samples
# Within a microbatch this sums over the samples (reduction="sum"): the mean over all samples is wanted.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y, reduction="sum") / len(microbatches)).backward()
    average_gradients(model)


# %% in eval mode
# Leave the model in training mode: in eval mode dropout is off, and BatchNorm does not learn.
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    model.eval()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)
