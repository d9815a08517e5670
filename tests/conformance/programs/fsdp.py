# %% clip_norm | Clipping uses the norm of all shards' gradients together.
import torch
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    fully_shard(model)
    model(torch.ones(2, 4) * 3).sum().backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    return norm.full_tensor()


# %% first_version | FullyShardedDataParallel, the older wrapper, raises a clear error on a CPU or works.
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = FSDP(torch.nn.Linear(4, 2), device_id=torch.device("cpu"))
    try:
        model(torch.ones(1, 4)).sum().backward()
    except Exception as error:
        return type(error).__name__
    return "went through", sum(p.numel() for p in model.parameters())


# %% first_version_full_state | FullyShardedDataParallel: the whole parameters, summoned.
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = FSDP(torch.nn.Linear(4, 2), device_id=torch.device("cpu"))
    with FSDP.summon_full_params(model):
        shapes = [list(p.shape) for p in model.parameters()]
    return shapes


# %% first_version_training | FullyShardedDataParallel takes two steps of SGD.
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
from torch.distributed.fsdp import ShardingStrategy


def main(rank, world_size):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
    model = FSDP(net, sharding_strategy=ShardingStrategy.FULL_SHARD, device_id=torch.device("cpu"))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 4) * (rank + 1)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


# %% fully_shard_step | fully_shard: a step of Adam on shards has the same result as on the whole model.
import copy

import torch
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    whole = torch.nn.Sequential(torch.nn.Linear(4, 6), torch.nn.ReLU(), torch.nn.Linear(6, 2))
    model = copy.deepcopy(whole)
    for layer in model:
        if isinstance(layer, torch.nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    x = torch.arange(8.0).reshape(2, 4)
    for net in (model, whole):
        optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
        net(x).sum().backward()
        optimizer.step()
    pairs = zip(model.parameters(), whole.parameters(), strict=True)
    return all(torch.allclose(p.full_tensor(), q) for p, q in pairs)


# %% hybrid | A mesh of two dimensions: shards within pairs, replicas across them.
import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

WORLD_SIZE = 4


def main(rank, world_size):
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
    model = torch.nn.Linear(4, 4)
    fully_shard(model, mesh=mesh)
    model(torch.ones(1, 4) * (rank + 1)).sum().backward()
    return model.weight.to_local().shape, model.weight.grad.full_tensor()[0]


# %% local_loss | A loss that is NaN on one rank only makes the gradient NaN on all.
import torch
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 2, bias=False)
    fully_shard(model)
    x = torch.full((1, 2), float("nan") if rank == 1 else 1.0)
    model(x).sum().backward()
    return bool(model.weight.grad.to_local().isnan().all())


# %% meta_device | Built on the meta device, then given memory and values.
import torch
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    with torch.device("meta"):
        model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    fully_shard(model)
    model.to_empty(device="cpu")
    with torch.no_grad():
        for p in model.parameters():
            p.fill_(0.5)
    return model(torch.ones(1, 4))


# %% mixed_precision | bfloat16 for the products, float32 for the stored weights.
import torch
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    fully_shard(model, mp_policy=policy)
    y = model(torch.ones(1, 4))
    y.sum().backward()
    return y.dtype, model.weight.dtype, model.weight.grad.dtype


# %% no_reshard | reshard_after_forward=False keeps the whole weights until backward.
import torch
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    for layer in model:
        fully_shard(layer, reshard_after_forward=False)
    y = model(torch.ones(1, 2))
    between = type(next(model.parameters())).__name__
    y.sum().backward()
    return between, type(next(model.parameters())).__name__


# %% shard_sizes | Each rank keeps a part of each parameter, as a DTensor.
import torch
from torch.distributed.fsdp import fully_shard

WORLD_SIZE = 3


def main(rank, world_size):
    model = torch.nn.Linear(4, 7)
    fully_shard(model)
    kinds = {type(p).__name__ for p in model.parameters()}
    return sorted(kinds), [list(p.to_local().shape) for p in model.parameters()]
