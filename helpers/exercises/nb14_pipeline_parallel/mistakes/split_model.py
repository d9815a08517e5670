from torch.nn.functional import cross_entropy


def front(model, cut, x):
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


# %% requires_grad_ forgotten | crashed
# The received tensor has no gradient: autograd does not track a tensor that `recv` has filled. Call
# requires_grad_() on it before the layers use it; after backward its `.grad` can be sent.
def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    b = torch.empty(len(y), model[cut].in_features, dtype=model[cut].weight.dtype)
    dist.recv(b, 0)
    loss = cross_entropy(model[cut:](b), y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss.detach()


# %% sends the gradient of a weight
# What rank 0 passes to its backward is not the gradient of its activation. Rank 1 sends `.grad` of the
# tensor that it received, which has the activation's shape, and rank 0 must wait until that gradient has
# arrived.
def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    b, loss = back(model, cut, y)
    loss.backward()
    dist.send(model[cut].weight.grad, 0)
    return loss.detach()


# %% rank 1 computes all layers of x that rank 0 sent
# A layer ran on a rank that does not own it. Rank 0 computes with model[:cut] only, rank 1 with
# model[cut:].
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
# Rank 1 returns no loss. Add `return loss.detach()` there.
def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    b, loss = back(model, cut, y)
    loss.backward()
    dist.send(b.grad, 0)
    print(loss.item())


# %% the number of rows is asked of x on both ranks | crashed
# `x` is None on rank 1, and `y` is None on rank 0: on rank 1 the number of rows is len(y).
def split_model(rank, model, cut, x, y):
    activation = torch.zeros(len(x), model[cut].in_features)
    if rank == 0:
        activation = model[:cut](x)
        dist.send(activation.detach(), 1)


# %% backward without the gradient from the other rank | crashed
# The activation is not a scalar, so `backward` needs a gradient argument: receive it from rank 1, then call
# `activation.backward(gradient)`.
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
# Rank 0's gradients are those of the sum of its activation: backward started from ones there. It must start
# from `.grad` of the tensor that rank 1 received.
def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    b, loss = back(model, cut, y)
    loss.backward()
    dist.send(torch.ones_like(b), 0)
    return loss.detach()


# %% two backwards on rank 0
# A layer ran more than once. Keep the activation that forward returned: backward needs its graph, not a
# second forward.
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
# This is the sum of the samples' losses. Use cross_entropy's default, the mean.
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
# The returned loss still refers to its graph. Return `loss.detach()`.
def split_model(rank, model, cut, x, y):
    if rank == 0:
        front(model, cut, x)
        return None
    b, loss = back(model, cut, y)
    loss.backward()
    dist.send(b.grad, 0)
    return loss


# %% a box of float32 for the activation | crashed
# The two sides disagree on shape or dtype. Rank 1 receives len(y) rows and model[cut].in_features columns,
# in the dtype of model[cut].weight; rank 0 receives a gradient of its activation's shape.
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
# Rank 0's gradients are twice as large as they should be: its backward must run once, with the gradient
# that rank 1 sent.
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


# %% sums the activation on rank 0
# Rank 0's gradients are those of the sum of its activation: backward started from ones there. It must start
# from `.grad` of the tensor that rank 1 received.
def split_model(rank, model, cut, x, y):
    if rank == 0:
        out = model[:cut](x)
        dist.send(out.detach(), 1)
        grad = torch.empty_like(out)
        dist.recv(grad, 1)
        out.sum().backward()
        return None
    a, loss = back(model, cut, y)
    loss.backward()
    dist.send(a.grad, 0)
    return loss.detach()
