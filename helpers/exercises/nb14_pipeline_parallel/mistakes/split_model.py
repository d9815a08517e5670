from torch.nn.functional import cross_entropy


# %% requires_grad_ forgotten | crashed
# A tensor that came by recv has no gradient by itself: call requires_grad_() on it before the layers use
# it; after backward its `.grad` is there to be sent.
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


# %% sends the gradient of a weight
# What rank 0 hands to its backward has not arrived, or not all of it: wait for it, and let rank 1 send
# `.grad` of the tensor that rank 1 received, which has the activation's shape.
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


# %% rank 1 computes all layers of x that rank 0 sent
# Rank 0 computes with model[:cut] only, rank 1 with model[cut:].
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


# %% the loss is not returned
# Return the loss on rank 1, `return loss.detach()`; a printed one is not returned.
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


# %% the number of rows is asked of x on both ranks | crashed
# On rank 1 `x` is None, and on rank 0 `y` is: the number of rows there is len(y).
def split_model(rank, model, cut, x, y):
    activation = torch.zeros(len(x), model[cut].in_features)
    if rank == 0:
        activation = model[:cut](x)
        dist.send(activation.detach(), 1)


# %% backward without the gradient from the other rank | crashed
# The activation is no single number, so its backward has to be told the gradient: receive it from rank 1,
# then `activation.backward(gradient)`.
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


# %% sends ones back
# Send back `.grad` of the tensor that rank 1 received (after backward), and receive it on rank 0 into a
# new tensor of the activation's shape.
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


# %% two backwards on rank 0
# Keep what forward gave: backward needs that graph, not a second forward.
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


# %% the loss is a sum
# This is the loss of the samples in sum: cross_entropy's mean is wanted.
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


# %% the loss keeps its graph
# Return loss.detach(): the loss alone, without the graph behind it.
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


# %% a box of float32 for the activation | crashed
# The two sides disagree on shape or dtype. Receive len(y) rows, model[cut].in_features columns, in the
# dtype of model[cut].weight; send what model[:cut] gave, no layer more, and send back `.grad` of the
# tensor that rank 1 received.
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


# %% the same backward twice on rank 0
# Rank 0's gradients are twice what they should be: its backward runs once, with what has come back.
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
