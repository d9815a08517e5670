from torch.nn.functional import cross_entropy


def average_gradients(model):
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% right: the loss divided, one average after the loop
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        loss = cross_entropy(model(x), y) / len(microbatches)
        loss.backward()
    average_gradients(model)


# %% right: sums of losses, one flattened call, divided at the end
def accumulate_gradients(model, microbatches):
    for p in model.parameters():
        p.grad = None
    count = 0
    for x, y in microbatches:
        cross_entropy(model(x), y, reduction="sum").backward()
        count += len(x)
    flat = torch.cat([p.grad.view(-1) for p in model.parameters()])
    dist.all_reduce(flat)
    flat /= count * dist.get_world_size()
    for p, g in zip(model.parameters(), flat.split([p.numel() for p in model.parameters()])):
        p.grad.copy_(g.view_as(p))


# %% right: own sums by torch.autograd.grad, AVG
def accumulate_gradients(model, microbatches):
    params = list(model.parameters())
    sums = [torch.zeros_like(p) for p in params]
    for x, y in microbatches:
        loss = cross_entropy(model(x), y)
        for s, g in zip(sums, torch.autograd.grad(loss, params)):
            s += g
    for p, s in zip(params, sums):
        dist.all_reduce(s, op=dist.ReduceOp.AVG)
        p.grad = s / len(microbatches)


# %% wrong: synchronizes in every microbatch | wrong | says: then synchronize once
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        loss = cross_entropy(model(x), y) / len(microbatches)
        loss.backward()
        average_gradients(model)


# %% wrong: right values, but each microbatch's gradient travels | wrong | says: then synchronize once
def accumulate_gradients(model, microbatches):
    totals = [torch.zeros_like(p) for p in model.parameters()]
    for x, y in microbatches:
        model.zero_grad()
        (cross_entropy(model(x), y) / len(microbatches)).backward()
        average_gradients(model)
        for t, p in zip(totals, model.parameters()):
            t += p.grad
    for t, p in zip(totals, model.parameters()):
        p.grad = t


# %% right: sums over samples, then a weighted average with one number more
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    count = torch.tensor(0.0)
    for x, y in microbatches:
        torch.nn.functional.cross_entropy(model(x), y, reduction="sum").backward()
        count += len(x)
    dist.all_reduce(count)
    for p in model.parameters():
        dist.all_reduce(p.grad)
        p.grad /= count


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


# %% wrong: gradients gathered | forbidden call | says: only all_reduce may be used
def accumulate_gradients(model, microbatches):
    model.zero_grad()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    for p in model.parameters():
        parts = [torch.empty_like(p.grad) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, p.grad)
        p.grad = sum(parts) / len(parts)


# %% right: clears only what is there, leaves out what has no gradient
def accumulate_gradients(model, microbatches):
    for p in model.parameters():
        if p.grad is not None:
            p.grad.zero_()
    for x, y in microbatches:
        (cross_entropy(model(x), y) / len(microbatches)).backward()
    for p in model.parameters():
        if p.grad is not None:
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()
