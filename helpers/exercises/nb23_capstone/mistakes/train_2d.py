from torch.distributed.device_mesh import init_device_mesh
from torch.nn.functional import cross_entropy, linear, relu


class CopyTo(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total, group=ctx.group)
        return total, None


class SumOver(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        total = x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Block(torch.nn.Module):
    def __init__(self, up, down, tp):
        super().__init__()
        size, own, self.group = tp.size(), tp.get_local_rank(), tp.get_group()
        self.up = torch.nn.Parameter(up.weight.detach().chunk(size)[own].clone())
        self.down = torch.nn.Parameter(down.weight.detach().chunk(size, dim=1)[own].clone())

    def forward(self, x):
        hidden = relu(linear(CopyTo.apply(x, self.group), self.up))
        return SumOver.apply(linear(hidden, self.down), self.group)


def train(
    rank, world_size, tp, up, down, x, y, batch_size, steps, lr,
    begin="all", share_of="dp", average="dp", op=dist.ReduceOp.AVG, clones=True, shape="dp tp",
    zero=True, early=False, steps_up=False, same=False, batch=True,
):  # fmt: skip
    sizes = {"dp": world_size // tp, "tp": tp}
    names = tuple(shape.split())
    mesh = init_device_mesh("cpu", tuple(sizes[n] for n in names), mesh_dim_names=names)
    groups = {"all": dist.group.WORLD, **{n: mesh[n].get_group() for n in names}}
    for weight in (up.weight, down.weight):
        if begin == "all":
            dist.broadcast(weight.data, src=0)
        elif begin == "tp":
            dist.broadcast(weight.data, group=groups["tp"], group_src=0)
    block = Block(up, down, mesh["tp"])
    for weight in block.parameters() if begin == "parts" else ():
        dist.broadcast(weight.data, src=0)
    stepped = (up.weight, down.weight) if steps_up else block.parameters()
    optimizer = torch.optim.SGD(stepped, lr=lr)
    parts = sizes["dp"] if share_of == "dp" else world_size
    own = mesh["dp"].get_local_rank() if share_of == "dp" else rank
    own = 0 if same else own
    share, after = batch_size // parts, []
    for step in range(steps):
        first = batch * step * batch_size + own * share
        if zero:
            optimizer.zero_grad()
        cross_entropy(block(x[first : first + share]), y[first : first + share]).backward()
        for p in block.parameters() if average else ():
            dist.all_reduce(p.grad, op=op, group=groups[average])
        held = (block.up.detach(), block.down.detach())
        if early:
            after.append(tuple(t.clone() for t in held))
        optimizer.step()
        if not early:
            after.append(tuple(t.clone() for t in held) if clones else held)
    return after


# %% no broadcast
# The ranks start from different weights: each has built its layers from its own seed. Broadcast rank 0's
# weights to all ranks before you split them.
def train_2d(*given):
    return train(*given, begin="")


# %% a broadcast within tp groups only
# The ranks start from different weights: each has built its layers from its own seed. Broadcast rank 0's
# weights to all ranks before you split them.
def train_2d(*given):
    return train(*given, begin="tp")


# %% samples dealt out by rank
# This rank learns from the wrong samples. They depend on its dp coordinate only: ranks of one tp group need
# the same ones.
def train_2d(*given):
    return train(*given, share_of="rank")


# %% gradients summed
# The gradients have the wrong scale. They are the mean over the dp group, as each loss is a mean over a
# share of the batch; nothing is divided in the tp group.
def train_2d(*given):
    return train(*given, op=dist.ReduceOp.SUM)


# %% the same tensors in every entry
# The list holds the same tensors in every entry, and they change with each step. Append clones.
def train_2d(*given):
    return train(*given, clones=False)


# %% gradients are never cleared
# The first step is right, later ones are not: the gradients are not cleared between steps.
def train_2d(*given):
    return train(*given, zero=False)


# %% copies made before the step
# The copies were made before `optimizer.step()`. Make them after it.
def train_2d(*given):
    return train(*given, early=True)


# %% the optimizer has the layers, not the block
# The weights that you copy never change. Pass the optimizer the parameters that you copy,
# `block.parameters()`, not the layers'.
def train_2d(*given):
    return train(*given, steps_up=True)


# %% the parts are broadcast after cutting
# Every rank starts with rank 0's part of the weights. Broadcast the whole weights before you split them.
def train_2d(*given):
    return train(*given, begin="parts")


# %% nobody averages gradients
# Each replica learns from its own samples only. Average the gradients over the dp group.
def train_2d(*given):
    return train(*given, average="")


# %% all replicas take the first share
# All replicas learn from the same share of the batch. Take the share of the dp coordinate.
def train_2d(*given):
    return train(*given, same=True)


# %% the first batch in every step
# Every step learns from the first batch. Step k starts at sample `k * batch_size`.
def train_2d(*given):
    return train(*given, batch=False)


# %% whole weights in the list
# These are the whole weights. Return this rank's parts: rows of `up` (`chunk(tp)`) and columns of `down`
# (`chunk(tp, dim=1)`), by the tp coordinate.
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    after = train(rank, world_size, tp, up, down, x, y, batch_size, steps, lr)
    return [(a.repeat(tp, 1), b.repeat(1, tp)) for a, b in after]


# %% gradients averaged over all ranks
# Gradients are averaged in the wrong group. Average over the ranks that hold the same part and learn from
# different samples: the dp group.
def train_2d(*given):
    return train(*given, average="all")


# %% gradients averaged over tp
# Gradients are averaged in the wrong group. Average over the ranks that hold the same part and learn from
# different samples: the dp group.
def train_2d(*given):
    return train(*given, average="tp")


# %% the mesh is written innermost first
# The mesh has its dimensions in the wrong order. tp is innermost, and `init_device_mesh` takes the
# innermost dimension last: ("dp", "tp").
def train_2d(*given):
    return train(*given, shape="tp dp")


# %% outputs are summed in backward, too
# Gradients are summed in the tp group. The backward of the function that sums the outputs returns its
# gradient as it is.
class SumOver(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group, total = group, x.clone()
        dist.all_reduce(total, group=group)
        return total

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad, group=ctx.group)
        return grad, None


def train_2d(*given):
    return train(*given)


# %% a whole batch for each replica
# Each replica takes a whole batch. A batch of `batch_size` samples is for all replicas together: each takes
# batch_size // dp of them.
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    mesh = init_device_mesh("cpu", (world_size // tp, tp), mesh_dim_names=("dp", "tp"))
    for layer in (up, down):
        dist.broadcast(layer.weight.data, src=0)
    block = Block(up, down, mesh["tp"])
    optimizer = torch.optim.SGD(block.parameters(), lr=lr)
    dp, own = mesh["dp"].size(), mesh["dp"].get_local_rank()
    after = []
    for k in range(steps):
        rows = slice((k * dp + own) * batch_size, (k * dp + own + 1) * batch_size)
        optimizer.zero_grad()
        cross_entropy(block(x[rows]), y[rows]).backward()
        for p in block.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=mesh["dp"].get_group())
        optimizer.step()
        after.append((block.up.detach().clone(), block.down.detach().clone()))
    return after
