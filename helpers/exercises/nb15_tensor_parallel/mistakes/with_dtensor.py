from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


# %% Rowwise first | crashed
# Which layer gets which part? q, k, v, gate and up are Colwise, o and down Rowwise, with their default
# layouts.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": RowwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": RowwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": ColwiseParallel(), "mlp.down": ColwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% forgets the value | crashed
# Which layer gets which part? q, k, v, gate and up are Colwise, o and down Rowwise, with their default
# layouts.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qk"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% returns nothing | crashed
# Return the model that parallelize_module gives back.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    parallelize_module(model, mesh, plan)


# %% calls the class instead of an object | crashed
# The plan wants objects, not classes: `ColwiseParallel()`, with its brackets.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel for name in "qkv"}
    return parallelize_module(model, mesh, plan)


# %% the norm in the plan | crashed
# Colwise and Rowwise are for Linear layers (and embeddings). The norm stays whole: it has no place in the
# plan.
def with_dtensor(model, mesh):
    plan = {"norm": ColwiseParallel(), "mlp.up": ColwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% cuts a copy of the model
# parallelize_module changes the model that it is given: cut that one, and return it.
import copy


def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(copy.deepcopy(model), mesh, plan)


# %% a mesh of its own, of all ranks
# These are parts for all ranks of the world: cut over the `mesh` that is given, which may hold only some.
from torch.distributed.device_mesh import init_device_mesh


def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(model, init_device_mesh("cpu", (dist.get_world_size(),)), plan)
