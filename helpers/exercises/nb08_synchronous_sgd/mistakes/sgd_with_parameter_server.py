from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def send_weights(model):
    for w in range(1, dist.get_world_size()):
        for p in model.parameters():
            dist.send(p.data, dst=w)


def receive_weights(model):
    for p in model.parameters():
        dist.recv(p.data, src=0)


def send_gradients(model, x, y):
    model.zero_grad()
    cross_entropy(model(x), y).backward()
    for p in model.parameters():
        dist.send(p.grad, dst=0)


def average_of_workers(model):
    workers = dist.get_world_size() - 1
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    for w in range(1, workers + 1):
        for p in model.parameters():
            box = torch.empty_like(p)
            dist.recv(box, src=w)
            p.grad += box / workers


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


# %% divides by the world size
# The sum of the gradients is divided by {n}: divide it by the number of workers, as the server has no
# samples.
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for step in range(steps):
        own = slice(step * batch_size, (step + 1) * batch_size)
        if rank == 0:
            send_weights(model)
            for p in model.parameters():
                p.grad = torch.zeros_like(p)
            for w in range(1, world_size):
                for p in model.parameters():
                    box = torch.empty_like(p)
                    dist.recv(box, src=w)
                    p.grad += box / world_size
            optimizer.step()
        else:
            receive_weights(model)
            send_gradients(model, x[own], y[own])


# %% the last weights stay on the server
# The workers' weights are one step old: after the last step, send the weights once more.
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for step in range(steps):
        own = slice(step * batch_size, (step + 1) * batch_size)
        if rank == 0:
            send_weights(model)
            average_of_workers(model)
            optimizer.step()
        else:
            receive_weights(model)
            send_gradients(model, x[own], y[own])


# %% the workers step too
# The workers call optimizer.step(): only the server does, and then sends its new weights.
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    for step in range(steps + 1):
        own = slice(step * batch_size, (step + 1) * batch_size)
        if rank == 0:
            send_weights(model)
            if step == steps:
                return
            average_of_workers(model)
            optimizer.step()
        else:
            receive_weights(model)
            if step == steps:
                return
            send_gradients(model, x[own], y[own])
            optimizer.step()


# %% weights go out only once
# The workers compute all gradients with the first weights: the server must send its current weights in each
# step.
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    def hand_out():
        for p in model.parameters():
            for w in range(1, world_size):
                if rank == 0:
                    dist.send(p.data, dst=w)
                elif rank == w:
                    dist.recv(p.data, src=0)

    hand_out()
    for step in range(steps):
        own = slice(step * batch_size, (step + 1) * batch_size)
        if rank == 0:
            average_of_workers(model)
            optimizer.step()
        else:
            send_gradients(model, x[own], y[own])
    hand_out()


# %% all send first | deadlocked
# Server and workers must agree on the order: in each step the server sends weights, then receives
# gradients, while a worker receives, then sends. After the last step the server sends the weights once
# more.
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    if rank == 0:
        for w in range(1, world_size):
            for p in model.parameters():
                dist.send(p.data, dst=w)
    else:
        cross_entropy(model(x[:batch_size]), y[:batch_size]).backward()
        for p in model.parameters():
            dist.send(p.grad, dst=0)


# %% the sum of the gradients
# This is the sum of the gradients of {workers}: divide it by their number.
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    _talk(rank, world_size, model, optimizer, x, y, batch_size, steps, sum)


# %% only the last worker's gradient
# Only one worker's gradient reaches the optimizer: average the gradients of {workers}.
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    _talk(rank, world_size, model, optimizer, x, y, batch_size, steps, lambda g: g[-1])


# %% always the first samples
# A worker uses its first samples in every step: in step k (from 0) they begin at `k * batch_size`.
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    mean = lambda g: torch.stack(g).mean(0)  # noqa: E731
    _talk(rank, world_size, model, optimizer, x, y, batch_size, steps, mean, begin=0)


# %% the workers' gradients are never cleared
# The gradients of earlier steps are still in the sum: clear them in each step.
def sgd_with_parameter_server(rank, world_size, model, optimizer, x, y, batch_size, steps):
    mean = lambda g: torch.stack(g).mean(0)  # noqa: E731
    _talk(rank, world_size, model, optimizer, x, y, batch_size, steps, mean, clear=False)
