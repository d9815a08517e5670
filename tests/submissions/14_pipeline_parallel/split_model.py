from torch.nn.functional import cross_entropy


# %% right: two branches
def split_model(rank, model, cut, x, y):
    if rank == 0:
        a = model[:cut](x)
        dist.send(a.detach(), 1)
        grad = torch.empty_like(a)
        dist.recv(grad, 1)
        a.backward(grad)
        return None
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    loss = cross_entropy(model[cut:](b), y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss.detach()


# %% right: isend and irecv, autograd.grad, layer by layer, a float
def split_model(rank, model, cut, x, y):
    layers = list(model)
    if rank == 0:
        for layer in layers[:cut]:
            x = layer(x)
        work = dist.isend(x.detach(), 1)
        back = torch.zeros(x.shape, dtype=x.dtype)
        dist.irecv(back, 1).wait()
        work.wait()
        torch.autograd.backward([x], [back])
        return
    got = model[cut].weight.new_zeros(y.shape[0], model[cut].weight.shape[1])
    dist.irecv(got, 0).wait()
    h = got = got.requires_grad_(True)
    for layer in layers[cut:]:
        h = layer(h)
    loss = cross_entropy(h, y)
    loss.backward()
    dist.send(got.grad, dst=0)
    return loss.item()


# %% right: a product with the gradient in place of backward(gradient)
def split_model(rank, model, cut, x, y):
    if rank == 0:
        a = model[:cut](x)
        dist.send(a.data, 1)
        g = torch.empty_like(a.data)
        dist.recv(g, 1)
        (a * g).sum().backward()
    else:
        first = model[cut]
        b = torch.empty((len(y), first.in_features), dtype=first.weight.dtype)
        dist.recv(b, 0)
        b = torch.nn.Parameter(b)
        loss = cross_entropy(model[cut:](b), y)
        loss.backward()
        dist.send(b.grad, 0)
        return loss.detach()


# %% wrong: forward only | wrong | says: Both ranks need a backward
def split_model(rank, model, cut, x, y):
    if rank == 0:
        dist.send(model[:cut](x).detach(), 1)
        return None
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    loss = cross_entropy(model[cut:](b), y)
    loss.backward()
    return loss.detach()


# %% wrong: requires_grad_ forgotten | crashed | says: call requires_grad_\(\) on it
def split_model(rank, model, cut, x, y):
    if rank == 0:
        a = model[:cut](x)
        dist.send(a.detach(), 1)
        grad = torch.empty_like(a)
        dist.recv(grad, 1)
        a.backward(grad)
        return None
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    loss = cross_entropy(model[cut:](b), y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss.detach()


# %% wrong: sends the gradient of a weight | wrong | says: of the tensor that rank 1 received
def split_model(rank, model, cut, x, y):
    if rank == 0:
        a = model[:cut](x)
        dist.send(a.detach(), 1)
        grad = torch.empty_like(a)
        dist.recv(grad, 1)
        a.backward(grad)
        return None
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    loss = cross_entropy(model[cut:](b), y)
    loss.backward()
    dist.send(model[cut].weight.grad, 0)
    return loss.detach()


# %% wrong: rank 1 computes all layers of x that rank 0 sent | wrong | says: rank 1 with model\[cut:\]
from torch.nn.functional import cross_entropy


def front(model, cut, x, detached=True):
    a = model[:cut](x)
    dist.send(a.detach(), 1)
    grad = torch.empty_like(a)
    dist.recv(grad, 1)
    a.backward(grad)
    return a, grad


def back(model, cut, y):
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    return b, cross_entropy(model[cut:](b), y)


def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    first = next(layer for layer in model if hasattr(layer, "in_features"))
    model[:cut](torch.zeros(len(y), first.in_features, dtype=first.weight.dtype))
    b, loss = back(model, cut, y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss.detach()


# %% wrong: a layer is left out | wrong | says: times that layer 2 ran: 0 is not 1
def split_model(rank, model, cut, x, y):
    if rank == 0:
        a = model[: cut - 1](x)
        dist.send(a.detach(), 1)
        grad = torch.empty_like(a)
        dist.recv(grad, 1)
        a.backward(grad)
        return None
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    loss = cross_entropy(model[cut:](b), y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss


# %% wrong: the loss is not returned | wrong | says: a printed one is not returned
def split_model(rank, model, cut, x, y):
    if rank == 0:
        a = model[:cut](x)
        dist.send(a.detach(), 1)
        grad = torch.empty_like(a)
        dist.recv(grad, 1)
        a.backward(grad)
        return None
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    loss = cross_entropy(model[cut:](b), y)
    loss.backward()
    dist.send(b.grad, 0)
    print(loss.item())


# %% wrong: a second message with the loss | wrong | says: calls send 2 times
def split_model(rank, model, cut, x, y):
    if rank == 0:
        a = model[:cut](x)
        dist.send(a.detach(), 1)
        grad = torch.empty_like(a)
        dist.recv(grad, 1)
        a.backward(grad)
        loss = torch.empty((), dtype=a.dtype)
        dist.recv(loss, 1)
        return None
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    loss = cross_entropy(model[cut:](b), y)
    loss.backward()
    dist.send(b.grad, 0)
    dist.send(loss.detach(), 0)
    return loss.detach()


# %% wrong: the number of rows is asked of x on both ranks | crashed | says: On rank 1 `x` is None
def split_model(rank, model, cut, x, y):
    activation = torch.zeros(len(x), model[cut].in_features)
    if rank == 0:
        activation = model[:cut](x)
        dist.send(activation.detach(), 1)


# %% wrong: backward without the gradient from the other rank | crashed | says: has to be told the gradient
def split_model(rank, model, cut, x, y):
    if rank == 0:
        activation = model[:cut](x)
        dist.send(activation.detach(), 1)
        activation.backward()
        return None
    received = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(received, 0)
    loss = cross_entropy(model[cut:](received), y)
    loss.backward()
    return loss.detach()


# %% wrong: sends ones back | wrong | says: Send back `.grad` of the tensor that rank 1 received
from torch.nn.functional import cross_entropy


def front(model, cut, x, detached=True):
    a = model[:cut](x)
    dist.send(a.detach(), 1)
    grad = torch.empty_like(a)
    dist.recv(grad, 1)
    a.backward(grad)
    return a, grad


def back(model, cut, y):
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    return b, cross_entropy(model[cut:](b), y)


def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    b, loss = back(model, cut, y)
    loss.backward()
    dist.send(torch.ones_like(b), 0)
    return loss.detach()


# %% wrong: two backwards on rank 0 | wrong | says: not a second forward
from torch.nn.functional import cross_entropy


def front(model, cut, x, detached=True):
    a = model[:cut](x)
    dist.send(a.detach(), 1)
    grad = torch.empty_like(a)
    dist.recv(grad, 1)
    a.backward(grad)
    return a, grad


def back(model, cut, y):
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    return b, cross_entropy(model[cut:](b), y)


def split_model(rank, model, cut, x, y):
    if rank == 0:
        a, grad = front(model, cut, x)
        model[:cut](x).backward(grad)
        for layer in model[:cut]:
            pass
        return None
    b, loss = back(model, cut, y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss.detach()


# %% wrong: the loss is a sum | wrong | says: cross_entropy's mean is wanted
from torch.nn.functional import cross_entropy


def front(model, cut, x, detached=True):
    a = model[:cut](x)
    dist.send(a.detach(), 1)
    grad = torch.empty_like(a)
    dist.recv(grad, 1)
    a.backward(grad)
    return a, grad


def back(model, cut, y):
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    return b, cross_entropy(model[cut:](b), y)


def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    b, loss = back(model, cut, y)
    loss = loss * len(y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss.detach()


# %% wrong: the loss keeps its graph | wrong | says: Return loss.detach
from torch.nn.functional import cross_entropy


def front(model, cut, x, detached=True):
    a = model[:cut](x)
    dist.send(a.detach(), 1)
    grad = torch.empty_like(a)
    dist.recv(grad, 1)
    a.backward(grad)
    return a, grad


def back(model, cut, y):
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    return b, cross_entropy(model[cut:](b), y)


def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    b, loss = back(model, cut, y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss


# %% wrong: a box of float32 for the activation | crashed | says: in the dtype of model\[cut\].weight
from torch.nn.functional import cross_entropy


def front(model, cut, x, detached=True):
    a = model[:cut](x)
    dist.send(a.detach(), 1)
    grad = torch.empty_like(a)
    dist.recv(grad, 1)
    a.backward(grad)
    return a, grad


def back(model, cut, y):
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    return b, cross_entropy(model[cut:](b), y)


def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    b = torch.empty(len(y), model[cut].in_features)
    dist.recv(b, 0)
    b = b.to(model[cut].weight.dtype).requires_grad_()
    loss = cross_entropy(model[cut:](b), y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss.detach()


# %% right: a fresh leaf, gradients by autograd.grad and a hook
from torch.nn.functional import cross_entropy


def front(model, cut, x, detached=True):
    a = model[:cut](x)
    dist.send(a.detach(), 1)
    grad = torch.empty_like(a)
    dist.recv(grad, 1)
    a.backward(grad)
    return a, grad


def back(model, cut, y):
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    return b, cross_entropy(model[cut:](b), y)


def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    b, loss = back(model, cut, y)
    b.register_hook(lambda grad: dist.send(grad, 0))
    loss.backward()
    return loss.detach()


# %% wrong: the same backward twice on rank 0 | wrong | says: twice what they should be
from torch.nn.functional import cross_entropy


def front(model, cut, x, detached=True):
    a = model[:cut](x)
    dist.send(a.detach(), 1)
    grad = torch.empty_like(a)
    dist.recv(grad, 1)
    a.backward(grad)
    return a, grad


def back(model, cut, y):
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    b.requires_grad_()
    return b, cross_entropy(model[cut:](b), y)


def split_model(rank, model, cut, x, y):
    if rank == 0:
        a = model[:cut](x)
        dist.send(a.detach(), 1)
        grad = torch.empty_like(a)
        dist.recv(grad, 1)
        a.backward(grad, retain_graph=True)
        a.backward(grad)
        return None
    b, loss = back(model, cut, y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss.detach()
