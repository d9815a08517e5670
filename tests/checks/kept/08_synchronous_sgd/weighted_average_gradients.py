# %% wrong: the total is taken anew for each parameter | wrong | says: add it up once


# %% wrong: the rank without samples returns early | deadlocked | says: Rank \d has no samples


# %% wrong: weighted, then divided by the world size | wrong | says: divide by the number of all samples


# %% right: SUM of weighted copies, the number in float64 of shape (1,)
def weighted_average_gradients(model, samples):
    number = torch.full((1,), samples, dtype=torch.float64)
    dist.all_reduce(number)
    share = samples / number.item()
    with torch.no_grad():
        for p in model.parameters():
            part = p.grad * share if samples else torch.zeros_like(p)
            dist.all_reduce(part)
            p.grad = part


# %% wrong: divided by the number of samples and by the world size | wrong | says: and by the world size as well
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples / total
        dist.all_reduce(g, op=dist.ReduceOp.AVG)
        p.grad = g


# %% wrong: weighted, but not divided | wrong | says: divide by their number
def weighted_average_gradients(model, samples):
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples
        dist.all_reduce(g)
        p.grad = g


# %% wrong: forgets to write back where it was None | wrong | says: also where it was None
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples / total
        dist.all_reduce(g)


# %% wrong: no sum over the ranks | wrong | says: its own summand of the mean
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        if p.grad is not None:
            p.grad *= samples / total


# %% wrong: an average beside p.grad | wrong | says: as they were: write the mean
def weighted_average_gradients(model, samples):
    total = torch.tensor(float(samples))
    dist.all_reduce(total)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        g *= samples / total
        dist.all_reduce(g)


# %% wrong: gathers everybody's number | forbidden call | says: only all_reduce may be used
def weighted_average_gradients(model, samples):
    mine = torch.tensor(samples)
    all_of_them = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(all_of_them, mine)
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        g *= samples / sum(all_of_them)
        dist.all_reduce(g)
        p.grad = g
