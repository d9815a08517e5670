def shift(x, by):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    x = x.contiguous()
    box = torch.empty_like(x)
    there, here = (rank + by) % world_size, (rank - by) % world_size
    pair = [dist.P2POp(dist.isend, x, there), dist.P2POp(dist.irecv, box, here)]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    return box


# %% to the rank before
# This is the tensor of rank + 1. Each rank sends its own to rank + 1 and returns that of rank - 1.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, -1)

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, 1)


# %% the gradient goes on as well
# The gradient did not go back to the rank that x came from: in backward, send the gradient of what arrived
# from rank - 1 back to rank - 1, `shift(grad, -1)`.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, 1)


# %% the gradient stays
# The gradient did not go back to the rank that x came from: in backward, send the gradient of what arrived
# from rank - 1 back to rank - 1, `shift(grad, -1)`.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return grad


# %% nothing moves
# Nothing was moved: this is the rank's own tensor. Return what arrives from rank - 1.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


# %% no gradient
# No gradient reaches x: backward must return one gradient for its one input.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        shift(grad, -1)


# %% sent as it came | crashed
# A tensor that is not contiguous was sent. What autograd passes to backward need not be contiguous; `shift`
# takes care of that.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        rank, n = dist.get_rank(), dist.get_world_size()
        box, work = torch.empty(grad.shape, dtype=grad.dtype), dist.isend(grad, (rank - 1) % n)
        dist.recv(box, (rank + 1) % n)
        work.wait()
        return box


# %% written into x | crashed
# x is changed in place, and autograd does not allow that for a leaf that requires a gradient. Return what
# `shift` returns.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x.copy_(shift(x, 1))
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, -1)


# %% a contiguous copy of the box receives
# The gradient that was received is lost: `.contiguous()` of the buffer made a copy, and the data went
# there. Make a contiguous buffer and receive into that, or use `shift`.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        rank, world_size = dist.get_rank(), dist.get_world_size()
        box = torch.empty_like(grad)
        give = dist.P2POp(dist.isend, grad.contiguous(), (rank - 1) % world_size)
        take = dist.P2POp(dist.irecv, box.contiguous(), (rank + 1) % world_size)
        for work in dist.batch_isend_irecv([give, take]):
            work.wait()
        return box
