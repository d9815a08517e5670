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


# %% right: a Block on the mesh, gradients averaged in dp
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    return train(rank, world_size, tp, up, down, x, y, batch_size, steps, lr)


# %% right: groups by hand, one flat gradient, no optimizer
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    dp, dp_rank, tp_rank = world_size // tp, rank // tp, rank % tp
    in_tp = [dist.new_group(range(d * tp, (d + 1) * tp)) for d in range(dp)][dp_rank]
    in_dp = [dist.new_group(range(t, world_size, tp)) for t in range(tp)][tp_rank]
    with torch.no_grad():
        dist.broadcast(up.weight, 0)
        dist.broadcast(down.weight, 0)
    a = up.weight.detach().chunk(tp, 0)[tp_rank].clone().requires_grad_()
    b = down.weight.detach().chunk(tp, 1)[tp_rank].clone().requires_grad_()
    after = []
    for step in range(steps):
        xs, ys = (t[step * batch_size : (step + 1) * batch_size].chunk(dp)[dp_rank] for t in (x, y))
        out = SumOver.apply(torch.relu(xs @ a.T) @ b.T, in_tp)
        grads = torch.autograd.grad(cross_entropy(out, ys), [a, b])
        flat = torch.cat([g.flatten() for g in grads])
        dist.all_reduce(flat, group=in_dp)
        flat /= dp
        with torch.no_grad():
            a -= lr * flat[: a.numel()].view_as(a)
            b -= lr * flat[a.numel() :].view_as(b)
        after.append([a.detach().clone(), b.detach().clone()])
    return after


# %% right: by DTensor
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    mesh = init_device_mesh("cpu", (world_size // tp, tp), mesh_dim_names=("dp", "tp"))
    model = torch.nn.Sequential(up, torch.nn.ReLU(), down)
    for p in model.parameters():
        dist.broadcast(p.data, src=0)
    parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    dp, after = mesh["dp"], []
    for step in range(steps):
        batch = slice(step * batch_size, (step + 1) * batch_size)
        xs, ys = (t[batch].chunk(dp.size())[dp.get_local_rank()] for t in (x, y))
        optimizer.zero_grad()
        cross_entropy(model(xs), ys).backward()
        for p in model.parameters():
            dist.all_reduce(p.grad.to_local(), op=dist.ReduceOp.AVG, group=dp.get_group())
        optimizer.step()
        after.append(tuple(p.detach().to_local().clone() for p in model.parameters()))
    return after


# %% right: strided shares of the batch
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    mesh = init_device_mesh("cpu", (world_size // tp, tp), mesh_dim_names=("dp", "tp"))
    for layer in (up, down):
        dist.broadcast(layer.weight.data, src=0)
    block = Block(up, down, mesh["tp"])
    optimizer = torch.optim.SGD(block.parameters(), lr=lr)
    dp, own = mesh["dp"].size(), mesh["dp"].get_local_rank()
    after = []
    for k in range(steps):
        rows = slice(k * batch_size + own, (k + 1) * batch_size, dp)
        optimizer.zero_grad()
        cross_entropy(block(x[rows]), y[rows]).backward()
        for p in block.parameters():
            dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=mesh["dp"].get_group())
        optimizer.step()
        after.append((block.up.detach().clone(), block.down.detach().clone()))
    return after


# %% right: the parts are averaged after each step, which is the same for plain SGD
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    mesh = init_device_mesh("cpu", (world_size // tp, tp), mesh_dim_names=("dp", "tp"))
    for layer in (up, down):
        dist.broadcast(layer.weight.data, src=0)
    block = Block(up, down, mesh["tp"])
    optimizer = torch.optim.SGD(block.parameters(), lr=lr)
    dp, own = mesh["dp"].size(), mesh["dp"].get_local_rank()
    after = []
    for k in range(steps):
        rows = slice(k * batch_size + own, (k + 1) * batch_size, dp)
        optimizer.zero_grad()
        cross_entropy(block(x[rows]), y[rows]).backward()
        optimizer.step()
        for p in block.parameters():
            dist.all_reduce(p.data, op=dist.ReduceOp.AVG, group=mesh["dp"].get_group())
        after.append((block.up.detach().clone(), block.down.detach().clone()))
    return after


# %% wrong: tp outermost | wrong | says: bytes in its dp group; .* are enough|That is its tp group
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    after = train(rank, world_size, tp, up, down, x, y, batch_size, steps, lr, shape="tp dp")
    whole = []
    for parts in after:  # everybody's, so that each rank can hand in what is asked for
        everybody = [None] * world_size
        dist.all_gather_object(everybody, (rank // (world_size // tp), parts))
        whole.append(dict(everybody)[rank % tp])
    return whole


# %% wrong: every rank trains the whole model | wrong | says: its shape is
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    for layer in (up, down):
        dist.broadcast(layer.weight.data, src=0)
    after = []
    for step in range(steps):
        batch = slice(step * batch_size, (step + 1) * batch_size)
        loss = cross_entropy(down(torch.relu(up(x[batch]))), y[batch])
        for layer, grad in zip((up, down), torch.autograd.grad(loss, [up.weight, down.weight])):
            layer.weight.data -= lr * grad
        after.append((up.weight.detach().clone(), down.weight.detach().clone()))
    return after


# %% wrong: weights gathered in the tp group for every step | wrong | says: gradients of its parts do not belong there
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    mesh = init_device_mesh("cpu", (world_size // tp, tp), mesh_dim_names=("dp", "tp"))
    for layer in (up, down):
        dist.broadcast(layer.weight.data, src=0)
    dp, group, own = mesh["dp"], mesh["tp"].get_group(), mesh["tp"].get_local_rank()
    a, b = up.weight.detach().chunk(tp)[own].clone(), down.weight.detach().chunk(tp, 1)[own].clone()
    after = []
    for step in range(steps):
        batch = slice(step * batch_size, (step + 1) * batch_size)
        xs, ys = (t[batch].chunk(dp.size())[dp.get_local_rank()] for t in (x, y))
        whole = []
        for part, dim in ((a, 0), (b, 1)):
            parts = [torch.empty_like(part) for _ in range(tp)]
            dist.all_gather(parts, part.contiguous(), group=group)
            whole.append(torch.cat(parts, dim).requires_grad_())
        loss = cross_entropy(linear(relu(linear(xs, whole[0])), whole[1]), ys)
        grads = torch.autograd.grad(loss, whole)
        ga, gb = grads[0].chunk(tp)[own].clone(), grads[1].chunk(tp, 1)[own].clone()
        for part, grad in ((a, ga), (b, gb)):
            dist.all_reduce(grad, op=dist.ReduceOp.AVG, group=dp.get_group())
            part -= lr * grad
        after.append((a.clone(), b.clone()))
    return after


# %% wrong: weights are broadcast before every step | wrong | says: are broadcast once
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    after = train(rank, world_size, tp, up, down, x, y, batch_size, steps, lr)
    for _ in range(steps):
        for layer in (up, down):
            dist.broadcast(layer.weight.data, src=0)
    return after


# %% wrong: gradients travel a second time | wrong | says: gradients of its parts, once a step
def train_2d(rank, world_size, tp, up, down, x, y, batch_size, steps, lr):
    after = train(rank, world_size, tp, up, down, x, y, batch_size, steps, lr)
    group = [dist.new_group(range(t, world_size, tp)) for t in range(tp)][rank % tp]
    for pair in after:
        for part in pair:
            dist.all_reduce(part.clone(), group=group)
    return after
