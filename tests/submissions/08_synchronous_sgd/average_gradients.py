# %% right: a loop over the parameters, zeros for what is missing
def average_gradients(model):
    for p in model.parameters():
        if not p.requires_grad:
            continue
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)
        p.grad /= dist.get_world_size()


# %% right: flattened into one tensor, AVG
def average_gradients(model: torch.nn.Module) -> None:
    trained = [p for p in model.parameters() if p.requires_grad]
    flat = torch.cat(
        [(p.grad if p.grad is not None else torch.zeros_like(p)).reshape(-1) for p in trained]
    )
    dist.all_reduce(flat, op=dist.ReduceOp.AVG)
    for p, g in zip(trained, flat.split([p.numel() for p in trained])):
        p.grad = g.view_as(p).clone()


# %% right: all in flight at once, named_parameters, in-place div_, returns the model
def average_gradients(model):
    works = []
    for name, p in model.named_parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = p.data.new_zeros(p.shape)
            works.append((p, dist.all_reduce(p.grad.data, op=dist.ReduceOp.SUM, async_op=True)))
    for p, work in works:
        work.wait()
        p.grad.data.div_(float(dist.get_world_size()))
    return model


# %% right: first agrees on who has a gradient, leaves None what nobody has
def average_gradients(model):
    ps = [p for p in model.parameters() if p.requires_grad]
    has = torch.tensor([p.grad is not None for p in ps]).int()
    dist.all_reduce(has)
    for p, count in zip(ps, has.tolist()):
        if count:
            grad = torch.zeros_like(p) if p.grad is None else p.grad / dist.get_world_size()
            dist.all_reduce(grad)
            p.grad = grad


# %% right: divides before it adds, under no_grad, by a helper
def _grad_of(p):
    if p.grad is None:
        p.grad = p.new_zeros(p.size())
    return p.grad


@torch.no_grad()
def average_gradients(model):
    n = dist.get_world_size()
    for p in filter(lambda p: p.requires_grad, model.parameters()):
        g = _grad_of(p)
        g.mul_(1 / n)
        dist.all_reduce(g)


# %% wrong: a shared weight goes twice | wrong | says: travels once
def average_gradients(model):
    for _, p in model.named_parameters(remove_duplicate=False):
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)
            p.grad /= dist.get_world_size()


# %% wrong: gathers everything | forbidden call | says: only all_reduce may be used
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            mine = torch.zeros_like(p) if p.grad is None else p.grad
            parts = [torch.empty_like(p) for _ in range(dist.get_world_size())]
            dist.all_gather(parts, mine)
            p.grad = torch.stack(parts).mean(0).detach()


# %% wrong: does not wait | wrong | says: never calls wait
def average_gradients(model):
    for p in model.parameters():
        if p.requires_grad:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            p.grad /= dist.get_world_size()
            dist.all_reduce(p.grad, async_op=True)
    import time

    time.sleep(0.05)


# %% right: sums in float64, names in sorted order, the copy written back
def average_gradients(model):
    for _, p in sorted(model.named_parameters()):
        if p.requires_grad:
            wide = (
                torch.zeros(p.shape, dtype=p.dtype) if p.grad is None else p.grad.detach().clone()
            )
            dist.all_reduce(wide)
            mean = (wide.double() / dist.get_world_size()).to(p.dtype)
            p.grad = mean if p.grad is None else p.grad.copy_(mean)


# %% right: a gradient that nobody has stays None, as DDP leaves it
def average_gradients(model):
    for p in model.parameters():
        if not p.requires_grad:
            continue
        mine = p.grad
        g = torch.zeros_like(p) if mine is None else mine / dist.get_world_size()
        dist.all_reduce(g)
        there = torch.tensor(int(mine is not None))
        dist.all_reduce(there, op=dist.ReduceOp.MAX)
        p.grad = g if there else None
