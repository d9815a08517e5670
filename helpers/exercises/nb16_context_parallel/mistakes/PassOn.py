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
# This comes from rank + 1. Each rank gives its own to rank + 1, and gets that of rank - 1.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, -1)

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, 1)


# %% the gradient goes on as well
# What comes from the rank before in forward has its gradient sent back there in backward: `shift(grad,
# -1)`.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, 1)


# %% the gradient stays
# What comes from the rank before in forward has its gradient sent back there in backward: `shift(grad,
# -1)`.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return grad


# %% nothing moves
# Nothing has moved.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


# %% no gradient
# backward returns one gradient for its one input.
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        shift(grad, -1)


# %% sent as it came | crashed
# What autograd hands to backward need not be contiguous, and only contiguous tensors can be sent: `shift`
# sees to that.
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
