from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def _talk(rank, world_size, model, optimizer, x, y, batch_size, steps, combine, begin=None, clear=True):
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
            cross_entropy(model(x[start : start + batch_size]), y[start : start + batch_size]).backward()
            dist.send(torch.cat([p.grad.flatten() for p in params]), 0)


# %% wrong: the server steps once for each worker | wrong | says: optimizer.step\(\) is called


# %% wrong: weights go out only once | wrong | says: compute all gradients at the first weights


# %% right: all receives posted at once, the mean of a stack
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    _talk(rank, world_size, model, optimizer, x, y, batch_size, steps, lambda g: torch.stack(g).mean(0))


# %% right: isend and irecv, divided before it is added
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


# %% wrong: the sum of the gradients | wrong | says: divide by their number, \d
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    _talk(rank, world_size, model, optimizer, x, y, batch_size, steps, sum)


# %% wrong: only the last worker's gradient | wrong | says: one worker only reaches the optimizer
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    _talk(rank, world_size, model, optimizer, x, y, batch_size, steps, lambda g: g[-1])


# %% wrong: always the first samples | wrong | says: takes the first samples in each step
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    mean = lambda g: torch.stack(g).mean(0)  # noqa: E731
    _talk(rank, world_size, model, optimizer, x, y, batch_size, steps, mean, begin=0)


# %% wrong: the workers' gradients are never cleared | wrong | says: each step's begin from nothing
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    mean = lambda g: torch.stack(g).mean(0)  # noqa: E731
    _talk(rank, world_size, model, optimizer, x, y, batch_size, steps, mean, clear=False)
