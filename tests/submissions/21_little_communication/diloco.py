# %% right: Nesterov by hand, one call for all weights
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    from torch.nn.utils import parameters_to_vector, vector_to_parameters

    old = parameters_to_vector(model.parameters()).detach().clone()
    speed = torch.zeros_like(old)
    steps = len(x) // batch_size
    for i in range(steps):
        xs, ys = x[i * batch_size :][:batch_size], y[i * batch_size :][:batch_size]
        for p in model.parameters():
            p.grad = None
        torch.nn.functional.cross_entropy(model(xs), ys).backward()
        inner.step()
        if (i + 1) % every:
            continue
        delta = old - parameters_to_vector(model.parameters()).detach()
        dist.all_reduce(delta)
        delta /= world_size
        speed = momentum * speed + delta
        old = old - outer_lr * (delta + momentum * speed)
        vector_to_parameters(old.clone(), model.parameters())


# %% right: averages the weights, then takes the difference
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    import copy

    theirs = copy.deepcopy(model)
    outer = torch.optim.SGD(theirs.parameters(), lr=outer_lr, momentum=momentum, nesterov=True)
    step = 0
    for first in range(0, len(x) // batch_size * batch_size, batch_size):
        inner.zero_grad()
        logits = model(x[first : first + batch_size])
        torch.nn.functional.cross_entropy(logits, y[first : first + batch_size]).backward()
        inner.step()
        step += 1
        if step % every == 0:
            with torch.no_grad():
                for old, new in zip(theirs.parameters(), model.parameters()):
                    mean = new.clone()
                    dist.all_reduce(mean)
                    old.grad = old - mean / world_size
            outer.step()
            model.load_state_dict(theirs.state_dict())


# %% wrong: averages gradients as well | wrong | says: each difference is averaged once, and nothing else is sent
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, len(x) // batch_size + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG)
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)


# %% wrong: the last batch, too | wrong | says: this rank calls inner.step\(\) \d times; \d times? is right
def diloco(rank, world_size, model, inner, x, y, batch_size, every, outer_lr, momentum):
    kept = [p.detach().clone() for p in model.parameters()]
    outer = torch.optim.SGD(kept, lr=outer_lr, momentum=momentum, nesterov=True)
    for step in range(1, -(-len(x) // batch_size) + 1):
        own = slice((step - 1) * batch_size, step * batch_size)
        inner.zero_grad()
        torch.nn.functional.cross_entropy(model(x[own]), y[own]).backward()
        inner.step()
        if step % every == 0:
            for k, p in zip(kept, model.parameters()):
                k.grad = k - p.data
                dist.all_reduce(k.grad, op=dist.ReduceOp.AVG)
            outer.step()
            for k, p in zip(kept, model.parameters()):
                p.data.copy_(k)
