def shift(x, by):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    x = x.contiguous()
    box = torch.empty_like(x)
    there, here = (rank + by) % world_size, (rank - by) % world_size
    pair = [dist.P2POp(dist.isend, x, there), dist.P2POp(dist.irecv, box, here)]
    for work in dist.batch_isend_irecv(pair):
        work.wait()
    return box


# %% right: shift there, shift back
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, -1)


# %% right: by sends and receives of its own
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        rank, n = dist.get_rank(), dist.get_world_size()
        box, work = torch.empty_like(x), dist.isend(x.contiguous(), (rank + 1) % n)
        dist.recv(box, (rank - 1) % n)
        work.wait()
        return box

    @staticmethod
    def backward(ctx, grad):
        rank, n = dist.get_rank(), dist.get_world_size()
        grad = grad.contiguous()
        box, work = torch.empty_like(grad), dist.isend(grad, (rank - 1) % n)
        dist.recv(box, (rank + 1) % n)
        work.wait()
        return box


# %% wrong: to the rank before | wrong | says: gives its own to rank \+ 1
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, -1)

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, 1)


# %% wrong: the gradient goes on as well | wrong | says: has its gradient sent back there
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, 1)


# %% wrong: the gradient stays | wrong | says: has its gradient sent back there
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return grad


# %% wrong: nothing moves | wrong | says: Nothing has moved
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


# %% wrong: no gradient | wrong | says: returns one gradient
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return shift(x, 1)

    @staticmethod
    def backward(ctx, grad):
        shift(grad, -1)


# %% wrong: around by the other ranks | wrong | says: are enough
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        for _ in range(dist.get_world_size() + 1):
            x = shift(x, 1)
        return x

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, -1)


# %% wrong: all gathered | forbidden call | says: all_gather
class PassOn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        boxes = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(boxes, x)
        return boxes[dist.get_rank() - 1]

    @staticmethod
    def backward(ctx, grad):
        return shift(grad, -1)


# %% wrong: sent as it came | crashed | says: need not be contiguous
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
