from torch.nn.functional import cross_entropy


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% wrong: synchronises in every microbatch | wrong | says: then synchronise once


# %% wrong: the loss is not divided | wrong | says: This is the sum over the \d microbatches


# %% wrong: not averaged over ranks | wrong | says: This is the rank's own mean


# %% wrong: zero_grad inside the loop | wrong | says: the gradients of only one of them arrive


# %% wrong: never cleared | wrong | says: gradients of an earlier step are added


# %% right: average_gradients is a stub, as in the notebook
def average_gradients(model):
    raise NotImplementedError("Exercise 8.1: Average the gradients")


def accumulate_gradients(model, microbatches):
    model.zero_grad(set_to_none=False)
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)


# %% right: an optimizer clears, the sum is divided afterwards
def accumulate_gradients(model, microbatches):
    torch.optim.SGD(model.parameters(), lr=0.1).zero_grad()
    for x, y in reversed(microbatches):
        torch.nn.CrossEntropyLoss()(model(x), y).backward()
    for p in model.parameters():
        p.grad /= len(microbatches)
    average_gradients(model)


# %% wrong: the average of the last microbatch alone | wrong | says: the gradients of only one of them arrive
def accumulate_gradients(model, microbatches):
    for x, y in microbatches:
        model.zero_grad()
        cross_entropy(model(x), y).backward()
    average_gradients(model)


# %% wrong: gradients gathered | forbidden call | says: only all_reduce may be used
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    for p in model.parameters():
        parts = [torch.empty_like(p.grad) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, p.grad)
        p.grad = sum(parts) / len(parts)


# %% wrong: cleared only where it is the first call | wrong | says: gradients of an earlier step are added
def accumulate_gradients(model, microbatches):
    if all(p.grad is None for p in model.parameters()):
        model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    average_gradients(model)


# %% wrong: neither divided | wrong | says: divide by both
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        cross_entropy(model(x), y).backward()
    for p in model.parameters():
        dist.all_reduce(p.grad)
