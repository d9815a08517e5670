from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters


# %% right: one vector for a model, one for its gradients
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    params = list(model.parameters())
    weights = parameters_to_vector(params).detach()
    for step in range(steps + 1):
        if rank == 0:
            weights = parameters_to_vector(params).detach()
            for worker in range(1, world_size):
                dist.send(weights, dst=worker)
        else:
            dist.recv(weights, src=0)
            vector_to_parameters(weights, params)
        if step == steps:
            return
        if rank == 0:
            total, box = torch.zeros_like(weights), torch.empty_like(weights)
            for worker in range(1, world_size):
                dist.recv(box, src=worker)
                total += box
            vector = total / (world_size - 1)
            for p, g in zip(params, vector.split([p.numel() for p in params])):
                p.grad = g.view_as(p)
            optimizer.step()
        else:
            own = slice(step * batch_size, (step + 1) * batch_size)
            grads = torch.autograd.grad(cross_entropy(model(x[own]), y[own]), params)
            dist.send(torch.cat([g.flatten() for g in grads]), dst=0)


# %% right: a parameter at a time, any source, irecv
def _serve(world_size, model, optimizer, steps):
    for _ in range(steps):
        _hand_out(world_size, model)
        model.zero_grad()
        for p in model.parameters():
            p.grad = torch.zeros_like(p)
        for worker in range(1, world_size):
            boxes = [torch.empty_like(p) for p in model.parameters()]
            works = [dist.irecv(box, src=worker) for box in boxes]
            for p, box, work in zip(model.parameters(), boxes, works):
                work.wait()
                p.grad += box / (world_size - 1)
        optimizer.step()
    _hand_out(world_size, model)


def _hand_out(world_size, model):
    for worker in range(1, world_size):
        for p in model.parameters():
            dist.send(p.data, dst=worker)


def _take(model):
    for p in model.parameters():
        dist.recv(p.data, src=0)


def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    if rank == 0:
        return _serve(world_size, model, optimizer, steps)
    for xs, ys in zip(x.split(batch_size), y.split(batch_size)):
        _take(model)
        model.zero_grad()
        cross_entropy(model(xs), ys).backward()
        for p in model.parameters():
            dist.send(p.grad, dst=0)
    _take(model)


# %% wrong: the server steps once for each worker | wrong | says: this rank calls optimizer.step
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for step in range(steps):
        own = slice(step * batch_size, (step + 1) * batch_size)
        if rank == 0:
            for w in range(1, world_size):
                for p in model.parameters():
                    dist.send(p.data, dst=w)
            for w in range(1, world_size):
                for p in model.parameters():
                    p.grad = torch.empty_like(p)
                    dist.recv(p.grad, src=w)
                optimizer.step()
        else:
            for p in model.parameters():
                dist.recv(p.data, src=0)
            model.zero_grad()
            cross_entropy(model(x[own]), y[own]).backward()
            for p in model.parameters():
                dist.send(p.grad, dst=0)
    for p in model.parameters():
        for w in range(1, world_size):
            if rank == 0:
                dist.send(p.data, dst=w)
            elif rank == w:
                dist.recv(p.data, src=0)


# %% wrong: an all_reduce in place of a server | forbidden call | says: only send and recv may be used
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    for step in range(steps):
        own = slice(step * batch_size, (step + 1) * batch_size)
        model.zero_grad()
        if rank:
            cross_entropy(model(x[own]), y[own]).backward()
        for p in model.parameters():
            if p.grad is None:
                p.grad = torch.zeros_like(p)
            dist.all_reduce(p.grad)
            p.grad /= world_size - 1
        if rank == 0:
            optimizer.step()
        for p in model.parameters():
            dist.broadcast(p.data, src=0)


# %% right: all receives posted at once, the mean of a stack
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def _talk(
    rank, world_size, model, optimizer, x, y, batch_size, steps, combine, begin=None, clear=True
):
    """A server whose details are put in; combine: from the workers' vectors to the mean."""
    params = list(model.parameters())
    vector = parameters_to_vector(params).detach()
    for step in range(steps + 1):
        if rank == 0:
            vector = parameters_to_vector(params).detach()
            for worker in range(1, world_size):
                dist.send(vector, worker)
        else:
            dist.recv(vector, 0)
            vector_to_parameters(vector, params)
        if step == steps:
            return
        if rank == 0:
            boxes = [torch.empty_like(vector) for _ in range(1, world_size)]
            for worker, box in enumerate(boxes, 1):
                dist.recv(box, worker)
            mean = combine(boxes)
            for p, g in zip(params, mean.split([p.numel() for p in params])):
                p.grad = g.view_as(p)
            optimizer.step()
        else:
            start = step * batch_size if begin is None else begin
            if clear:
                model.zero_grad()
            cross_entropy(
                model(x[start : start + batch_size]), y[start : start + batch_size]
            ).backward()
            dist.send(torch.cat([p.grad.flatten() for p in params]), 0)


def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    _talk(
        rank,
        world_size,
        model,
        optimizer,
        x,
        y,
        batch_size,
        steps,
        lambda g: torch.stack(g).mean(0),
    )


# %% right: isend and irecv, divided before it is added
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def _talk(
    rank, world_size, model, optimizer, x, y, batch_size, steps, combine, begin=None, clear=True
):
    """A server whose details are put in; combine: from the workers' vectors to the mean."""
    params = list(model.parameters())
    vector = parameters_to_vector(params).detach()
    for step in range(steps + 1):
        if rank == 0:
            vector = parameters_to_vector(params).detach()
            for worker in range(1, world_size):
                dist.send(vector, worker)
        else:
            dist.recv(vector, 0)
            vector_to_parameters(vector, params)
        if step == steps:
            return
        if rank == 0:
            boxes = [torch.empty_like(vector) for _ in range(1, world_size)]
            for worker, box in enumerate(boxes, 1):
                dist.recv(box, worker)
            mean = combine(boxes)
            for p, g in zip(params, mean.split([p.numel() for p in params])):
                p.grad = g.view_as(p)
            optimizer.step()
        else:
            start = step * batch_size if begin is None else begin
            if clear:
                model.zero_grad()
            cross_entropy(
                model(x[start : start + batch_size]), y[start : start + batch_size]
            ).backward()
            dist.send(torch.cat([p.grad.flatten() for p in params]), 0)


def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    params = list(model.parameters())
    for step in range(steps + 1):
        if rank == 0:
            works = [dist.isend(p.data, w) for w in range(1, world_size) for p in params]
            for work in works:
                work.wait()
        else:
            for p in params:
                dist.irecv(p.data, 0).wait()
        if step == steps:
            break
        if rank == 0:
            optimizer.zero_grad(set_to_none=False)
            for p in params:
                p.grad = torch.zeros_like(p)
            for w in range(1, world_size):
                for p in params:
                    box = torch.empty_like(p)
                    dist.irecv(box, w).wait()
                    p.grad.add_(box, alpha=1 / (world_size - 1))
            optimizer.step()
        else:
            model.zero_grad()
            own = slice(step * batch_size, (step + 1) * batch_size)
            torch.nn.CrossEntropyLoss()(model(x[own]), y[own]).backward()
            for p in params:
                dist.isend(p.grad, 0).wait()
