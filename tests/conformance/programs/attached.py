# %% accumulator_hooks | Hooks of the nodes that accumulate gradients, as DDP and Apex use them.
import torch
import torch.distributed as dist

LIKE = "torchrun"
net = torch.nn.Linear(1, 1, bias=False)
net.weight.data.fill_(1.0)
nodes, calls = [], []


def make_hook(p):
    def reduce(*unused):
        dist.all_reduce(p.grad)
        calls.append("reduced")

    return reduce


for p in net.parameters():
    node = p.expand_as(p).grad_fn.next_functions[0][0]
    handle = node.register_hook(make_hook(p))
    node.register_prehook(lambda gradients: (gradients[0] * 10,))
    nodes.append(node)


def main(rank, world_size):
    net(torch.full((1, 1), rank + 1.0)).sum().backward()
    first = net.weight.grad.clone()
    handle.remove()
    net.weight.grad = None
    net(torch.full((1, 1), rank + 1.0)).sum().backward()
    same = nodes[0] is net.weight.expand_as(net.weight).grad_fn.next_functions[0][0]
    return first, net.weight.grad, list(calls), same, nodes[0].variable is net.weight


# %% arrays_share_memory | Arrays of numpy, their slices and the tensors made from them share memory.
import numpy as np
import torch

LIKE = "torchrun"
array = np.zeros(6, np.float32)
tensor = torch.from_numpy(array)
late = torch.from_numpy(array[2:])
half, back = array[3:], array[::-1]
column = array.reshape(2, 3)[:, 1]
of_tensor = torch.zeros(2, 2)
seen = of_tensor.numpy()
fixed = array[:2]
fixed.flags.writeable = False


def main(rank, world_size):
    tensor[4] = rank + 1.0
    half[0] = 5
    late[0] = 7
    back[0] = 9
    of_tensor.add_(1)
    return (array, tensor, half, late, column, seen, back, fixed), fixed.flags.writeable


# %% attributes | Attributes of parameters and tensors, which may refer to their model.
import torch

LIKE = "torchrun"
net = torch.nn.Linear(2, 1)
net.weight.lr_scale = 2
net.bias.owner = net
mask = torch.ones(2)
mask.source = [mask, net.weight]
optimizer = torch.optim.SGD(net.parameters(), 0.1)
net.weight.optimizer = optimizer


def main(rank, world_size):
    found = net.weight.lr_scale, net.bias.owner is net, mask.source[0] is mask
    return *found, mask.source[1] is net.weight, net.weight.optimizer is optimizer, mask


# %% averaged_model | Models averaged by swa_utils, and updated on ranks.
import torch
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn

LIKE = "torchrun"
net = torch.nn.Linear(1, 1, bias=False)
net.weight.data.fill_(1.0)
ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))
mine = AveragedModel(net, avg_fn=lambda mean, new, count: mean + (new - mean) / 4)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
scheduler = SWALR(optimizer, 0.05, anneal_epochs=2)
ema.update_parameters(net), mine.update_parameters(net)


def main(rank, world_size):
    net(torch.ones(1, 1)).sum().backward()
    optimizer.step(), scheduler.step()
    ema.update_parameters(net), mine.update_parameters(net)
    return net.weight, ema.module.weight, mine.module.weight, ema.n_averaged, scheduler.get_last_lr()


# %% bucket_of_gradients | Gradients are views of one flat buffer, which is reduced.
import torch
import torch.distributed as dist

LIKE = "torchrun"
net = torch.nn.Linear(2, 1)
bucket = torch.zeros(3)
net.weight.grad, net.bias.grad = bucket[:2].view(1, 2), bucket[2:]


def main(rank, world_size):
    bucket.zero_()
    net(torch.full((1, 2), rank + 1.0)).sum().backward()
    dist.all_reduce(bucket)
    return net.weight.grad, net.bias.grad


# %% closures | Functions that share a variable by nonlocal, recursion, and a class in a function.
LIKE = "torchrun"


def make():
    count = 0

    def add():
        nonlocal count
        count += 1
        return add

    def read():
        return count

    def factorial(n):
        return n * factorial(n - 1) if n else 1

    class Base:
        def value(self):
            return 1

    class Derived(Base):
        def value(self):
            add()
            return super().value() + 1

    return add, read, factorial, Derived


add, read, factorial, Derived = make()
add()


def main(rank, world_size):
    again = add()
    return read(), again is add, factorial(4), Derived().value(), read()


# %% compiled_with_hooks | Hooks of a compiled module, and of a module compiled in place.
import torch

LIKE = "torchrun"
net = torch.nn.Linear(1, 1)
torch.nn.init.ones_(net.weight), torch.nn.init.zeros_(net.bias)
wrapped = torch.compile(net, backend="eager")
inside = net.register_forward_hook(lambda module, args, out: out + 1)
outside = wrapped.register_forward_hook(lambda module, args, out: out * 10)
other = torch.nn.Linear(1, 1)
torch.nn.init.ones_(other.weight), torch.nn.init.zeros_(other.bias)
other.compile(backend="eager")


def main(rank, world_size):
    one = torch.ones(1, 1)
    first = wrapped(one)
    outside.remove()
    return first, wrapped(one), other(one), wrapped._orig_mod is net


# %% data_pipeline | A loader with a generator, a sampler of an epoch, and a started one.
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset, WeightedRandomSampler

LIKE = "torchrun"
data = TensorDataset(torch.arange(12.0))
generator = torch.Generator().manual_seed(3)
loader = DataLoader(data, batch_size=4, shuffle=True, generator=generator)
next(iter(loader))
sampler = DistributedSampler(data, 2, 0, seed=5)
sampler.set_epoch(4)
weighted = WeightedRandomSampler([1.0] * 12, 6, generator=generator)
workers = DataLoader(
    data, 4, sampler=sampler, num_workers=1, collate_fn=lambda rows: len(rows), persistent_workers=True
)


def main(rank, world_size):
    rows = [batch[0] for batch in loader]
    numbers = list(workers), list(weighted), list(sampler), sampler.epoch
    return rows, numbers, loader.generator is generator, workers.sampler is sampler


# %% flat_parameters | Parameters are views of one flat buffer, as in FSDP and Megatron.
import torch
import torch.distributed as dist

LIKE = "torchrun"
net = torch.nn.Linear(2, 1)
flat = torch.arange(3.0)
net.weight.data, net.bias.data = flat[:2].view(1, 2), flat[2:]
transposed = flat.view(3, 1).t()
tied = torch.nn.Linear(2, 1)
tied.weight = net.weight
optimizer = torch.optim.SGD([torch.nn.Parameter(flat)], 1.0)


def main(rank, world_size):
    flat.add_(rank)
    dist.all_reduce(flat)
    optimizer.param_groups[0]["params"][0].grad = torch.ones(3)
    optimizer.step()
    links = tied.weight is net.weight, net.weight.data_ptr() == flat.data_ptr()
    return net.weight, net.bias, transposed, links, net.weight.stride(), transposed.stride()


# %% generators | Generators continue from their state in the cell.
import torch

LIKE = "torchrun"
generator = torch.Generator().manual_seed(1)
torch.rand(3, generator=generator)
users = [generator, {"again": generator}]


def main(rank, world_size):
    first = torch.rand(2, generator=users[1]["again"])
    return first, torch.rand(2, generator=generator), generator.initial_seed()


# %% gradient_of_a_cell | The cell has called backward(), and ranks call step().
import torch

LIKE = "torchrun"
net = torch.nn.Linear(1, 1, bias=False)
net.weight.data.fill_(1.0)
table = torch.nn.Embedding(3, 1, sparse=True)
table.weight.data.fill_(1.0)
parameters = [*net.parameters(), *table.parameters()]
optimizer = torch.optim.SGD(parameters, 0.1)
(net(torch.ones(1, 1)).sum() + table(torch.tensor([1, 1])).sum()).backward()
x = torch.ones(2, requires_grad=True)
(x * x).sum().backward(create_graph=False)
copied = x.grad


def main(rank, world_size):
    optimizer.step()
    copied.add_(1)
    return net.weight, table.weight, x.grad, x.grad is copied, table.weight.grad.is_sparse


# %% hooks_of_modules | Hooks of modules of all kinds, and their handles.
import functools

import torch

LIKE = "torchrun"
calls = []
net = torch.nn.Sequential(torch.nn.Linear(1, 1, bias=False))
net[0].weight.data.fill_(2.0)


class Log:
    def note(self, name, *unused, **more):
        calls.append(name)


log = Log()
handle = net.register_forward_hook(lambda module, args, out: out + 1)
net.register_forward_pre_hook(
    lambda module, args, kwargs: log.note("pre"), with_kwargs=True, prepend=True
)
net[0].register_full_backward_hook(functools.partial(log.note, "backward"))
net[0].register_full_backward_pre_hook(functools.partial(Log.note, log, "before backward"))
net.register_state_dict_pre_hook(functools.partial(log.note, "before state"))
net.register_state_dict_post_hook(functools.partial(log.note, "state"))
net.register_load_state_dict_pre_hook(functools.partial(log.note, "before load"))
net.register_load_state_dict_post_hook(functools.partial(log.note, "load"))


def main(rank, world_size):
    first = net(torch.ones(1, 1))
    first.sum().backward()
    net.load_state_dict(net.state_dict())
    handle.remove()
    second = net.register_forward_hook(lambda module, args, out: out * 3)
    now = net(torch.ones(1, 1))
    second.remove()
    return first, now, net(torch.ones(1, 1)), list(calls), len(net._forward_pre_hooks)


# %% hooks_of_optimizers | Hooks of steps and states, attributes, and a replaced step().
import torch

LIKE = "torchrun"
calls = []
net = torch.nn.Linear(1, 1, bias=False)
net.weight.data.fill_(1.0)
optimizer = torch.optim.AdamW(net.parameters(), 0.1)
optimizer.register_step_pre_hook(lambda opt, args, kwargs: calls.append("before"))
handle = optimizer.register_step_post_hook(lambda opt, args, kwargs: calls.append(opt is optimizer))
optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "more": 1})
optimizer.register_load_state_dict_pre_hook(lambda opt, state: calls.append("load"))
optimizer.names = ["weight"]
net(torch.ones(1, 1)).sum().backward()
optimizer.step()
clipped = torch.optim.SGD(net.parameters(), 0.1)
inner = clipped.step


def step(*args):
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
    return inner(*args)


clipped.step = step


def main(rank, world_size):
    optimizer.step()
    handle.remove()
    optimizer.step()
    state = optimizer.state_dict()
    optimizer.load_state_dict(state)
    clipped.step()
    links = optimizer.param_groups[0]["params"][0] is net.weight, net.weight in optimizer.state
    return calls, net.weight, state["more"], optimizer.names, links, state["state"][0]["step"]


# %% hooks_of_parameters | Gradients are reduced by hooks registered in the cell.
import torch
import torch.distributed as dist

LIKE = "torchrun"
net = torch.nn.Linear(1, 1, bias=False)
net.weight.data.fill_(1.0)
for p in net.parameters():
    p.register_post_accumulate_grad_hook(lambda p: dist.all_reduce(p.grad))


def main(rank, world_size):
    net(torch.full((1, 1), rank + 1.0)).sum().backward()
    return net.weight.grad


# %% hooks_of_tensors | Hooks of tensors, with handles, new hooks, and objects of the cell.
import functools

import torch

LIKE = "torchrun"
seen = []
x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)


class Scale:
    def __init__(self, by):
        self.by = by

    def __call__(self, gradient):
        seen.append(self.by)
        return gradient * self.by

    def scale(self, gradient):
        return self(gradient)


scale = Scale(2)
handles = [x.register_hook(scale), x.register_hook(scale.scale)]
x.register_hook(functools.partial(torch.mul, other=10))
y.register_hook(lambda gradient: x.detach() * 3)
handle = y.register_post_accumulate_grad_hook(lambda tensor: seen.append(tensor is y))


def main(rank, world_size):
    scale.by = 5
    (x + y).sum().backward()
    first = x.grad.clone(), y.grad.clone(), list(seen)
    handles[0].remove(), handle.remove()
    x.register_hook(lambda gradient: gradient + 1)
    x.grad = y.grad = None
    (x + y).sum().backward()
    return first, x.grad, y.grad, list(seen)


# %% multi_grad_hook | One hook of several tensors.
import torch
from torch.autograd.graph import register_multi_grad_hook

LIKE = "torchrun"
calls = []
x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
handle = register_multi_grad_hook((x, y), lambda grads: calls.append([g.item() for g in grads]))


def main(rank, world_size):
    (x + y * 2).sum().backward()
    return list(calls)


# %% graph_of_a_cell | A tensor computed in the cell has its value on ranks, but not its graph.
import torch

LIKE = "torchrun"
DIFFERS = {
    "untraced": ("RuntimeError", "a graph belongs to one process; the error says so"),
    "launch": ("RuntimeError", "a graph belongs to one process; the error says so"),
}
w = torch.ones(2, requires_grad=True)
y = w * 3


def main(rank, world_size):
    assert torch.equal(y, torch.full((2,), 3.0)) and y.requires_grad and not y.is_leaf
    (y + w).sum().backward()
    return w.grad


# %% kinds_of_tensors | Tensors of all layouts and kinds, with flags and strides.
import warnings

import torch

LIKE = "torchrun"


class Marked(torch.Tensor):
    pass


class Own(torch.nn.Parameter):
    pass


marked = torch.ones(2).as_subclass(Marked)
marked.mark = [marked]
leaf = torch.ones(1).as_subclass(Marked).requires_grad_()
leaf.register_hook(lambda gradient: gradient * 5)
own = Own(torch.ones(1))
own.register_hook(lambda gradient: gradient * 2)
sparse = torch.eye(2).to_sparse().requires_grad_()
image = torch.zeros(1, 2, 2, 2).to(memory_format=torch.channels_last)
conjugate = torch.tensor([1 + 2j]).conj()
meta = torch.empty(2, device="meta", requires_grad=True)
empty = torch.empty(0, 3, requires_grad=True)
words = torch.arange(4.0)
as_ints = words.view(torch.int32)
diagonal = torch.zeros(2, 2)
rows = diagonal.diagonal()
buffer = torch.nn.Buffer(torch.ones(1), persistent=False)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch warns when it makes these
    compressed = torch.eye(2).to_sparse_csr()
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.5, 1, torch.qint8)
    lazy = torch.nn.LazyLinear(2)


def main(rank, world_size):
    (own * 3 + leaf).sum().backward()
    words.zero_()
    rows.fill_(2)
    kinds = [type(t).__name__ for t in (marked, own, own.data, leaf)]
    flags = sparse.requires_grad, sparse.is_leaf, sparse.is_coalesced(), meta.requires_grad
    layout = image.stride(), str(compressed.layout), conjugate.is_conj(), empty.shape
    tensors = own.grad, leaf.grad.as_subclass(torch.Tensor), sparse.to_dense(), compressed.to_dense(), quantized.dequantize(), as_ints
    more = conjugate.resolve_conj(), diagonal, buffer, buffer.persistent, lazy(torch.ones(1, 3)).shape
    return kinds, marked.mark[0] is marked, flags, layout, tensors, more


# %% parametrized | Modules with parametrizations, pruning and normed weights.
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

LIKE = "torchrun"


class Double(nn.Module):
    def forward(self, x):
        return 2 * x


plain = nn.Linear(1, 1, bias=False)
plain.weight.data.fill_(1.0)
parametrize.register_parametrization(plain, "weight", Double())
normed = parametrizations.weight_norm(nn.Linear(2, 1, bias=False))
spectral = parametrizations.spectral_norm(nn.Linear(2, 2)).eval()
pruned = nn.Linear(2, 1, bias=False)
pruned.weight.data.fill_(1.0)
prune.l1_unstructured(pruned, "weight", 1)
net = nn.Sequential(plain, nn.Linear(1, 2), normed)
normed.parametrizations.weight.original1.data.fill_(1.0)
normed.parametrizations.weight.original0.data.fill_(2.0)


def main(rank, world_size):
    out = plain(torch.ones(1, 1))
    out.sum().backward()
    gradient = plain.parametrizations.weight.original.grad
    first = parametrize.is_parametrized(plain), net[0] is plain, type(plain).__name__
    parametrize.remove_parametrizations(plain, "weight")
    pruned(torch.ones(1, 2)).sum().backward()
    spectral(torch.ones(1, 2))
    return out, gradient, first, plain.weight, type(plain).__name__, normed.weight, pruned.weight


# %% scaler | A scaler of gradients, with the scale reached in the cell.
import torch

LIKE = "torchrun"
scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=1)
net = torch.nn.Linear(1, 1, bias=False)
net.weight.data.fill_(1.0)
optimizer = torch.optim.SGD(net.parameters(), 0.1)


def train():
    optimizer.zero_grad()
    scaler.scale(net(torch.ones(1, 1)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


train()


def main(rank, world_size):
    first = scaler.get_scale()
    train()
    return first, scaler.get_scale(), net.weight


# %% schedulers | Schedulers of a cell's optimizer, without false warnings.
import warnings

import torch
from torch.optim import lr_scheduler

LIKE = "torchrun"
factor = 0.5
p = torch.nn.Parameter(torch.ones(1))


def make(kind, *args, momentum=0.0, **more):
    optimizer = torch.optim.SGD([p], 1.0, momentum=momentum)
    return optimizer, kind(optimizer, *args, **more)


pairs = [
    make(lr_scheduler.StepLR, 1, 0.5),
    make(lr_scheduler.LambdaLR, lambda epoch: factor**epoch),
    make(lr_scheduler.CosineAnnealingLR, 4),
    make(lr_scheduler.OneCycleLR, 2.0, 10, momentum=0.9),
    make(lr_scheduler.CyclicLR, 0.1, 1.0, 2, momentum=0.9, mode="exp_range", gamma=0.9),
    make(lr_scheduler.CyclicLR, 0.1, 1.0, 2, momentum=0.9, scale_fn=lambda x: factor),
    make(lr_scheduler.ReduceLROnPlateau, patience=0),
]
optimizer = torch.optim.SGD([p], 1.0)
first, second = lr_scheduler.LinearLR(optimizer), lr_scheduler.ExponentialLR(optimizer, 0.5)
pairs.append((optimizer, lr_scheduler.SequentialLR(optimizer, [first, second], [1])))


def main(rank, world_size):
    rates = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for optimizer, scheduler in pairs:
            for loss in (1.0, 2.0):
                optimizer.step()
                wants = isinstance(scheduler, lr_scheduler.ReduceLROnPlateau)
                scheduler.step(loss) if wants else scheduler.step()
            rates.append(optimizer.param_groups[0]["lr"])
    return rates, [str(w.message) for w in caught], scheduler.optimizer is optimizer


# %% views_of_a_base | Changes of a view reach its base, also for autograd.
import torch

LIKE = "torchrun"
base = torch.zeros(4)
left, right = base[:2], base.view(2, 2).t()[1]
parts = base.split(2)
w = torch.ones(2, requires_grad=True)


def main(rank, world_size):
    left.add_(w * 3)
    base.sum().backward()
    with torch.no_grad():
        right.fill_(5)
    links = left._base is base, [part._base is base for part in parts]
    return w.grad, base, parts[1], links, right.stride()


# %% weak_references | Weak references to objects that the cell keeps alive.
import gc
import weakref

import torch

LIKE = "torchrun"


class Node:
    def __init__(self, parent=None):
        self.parent = parent and weakref.ref(parent)
        self.children = []


root = Node()
root.children.append(Node(root))
child = root.children[0]
alone = weakref.ref(Node())
layer = torch.nn.Linear(1, 1)
to_layer = weakref.ref(layer)
nodes = weakref.WeakSet([root])
by_name = weakref.WeakValueDictionary({"root": root})
names = weakref.WeakKeyDictionary({layer: "layer"})
proxy = weakref.proxy(root)
forward = weakref.WeakMethod(layer.extra_repr)


def main(rank, world_size):
    gc.collect()
    kept = len(nodes), list(by_name), list(names.values()), forward()()
    same = child.parent() is root, by_name["root"] in nodes, len(proxy.children)
    return kept, same, alone() is None, to_layer().weight.shape
