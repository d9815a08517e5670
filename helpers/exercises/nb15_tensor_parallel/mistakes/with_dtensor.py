from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


# %% Rowwise first | crashed
# The shapes do not fit: a layer of the plan is split the wrong way, or missing. q, k, v, gate and up are
# ColwiseParallel(), o and down RowwiseParallel(), with their default layouts.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": RowwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": RowwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": ColwiseParallel(), "mlp.down": ColwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% forgets the value | crashed
# The shapes do not fit: a layer of the plan is split the wrong way, or missing. q, k, v, gate and up are
# ColwiseParallel(), o and down RowwiseParallel(), with their default layouts.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qk"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% returns nothing | crashed
# with_dtensor returns nothing. Return the model that parallelize_module returns.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    parallelize_module(model, mesh, plan)


# %% calls the class instead of an object | crashed
# The plan holds a class, `ColwiseParallel`. It needs objects: `ColwiseParallel()`.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel for name in "qkv"}
    return parallelize_module(model, mesh, plan)


# %% the norm in the plan | crashed
# The plan splits the norm. ColwiseParallel and RowwiseParallel are for Linear layers and embeddings; the
# norm stays whole.
def with_dtensor(model, mesh):
    plan = {"norm": ColwiseParallel(), "mlp.up": ColwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% cuts a copy of the model
# This is a copy of the model. parallelize_module changes the model that it is given: pass it the one you
# were given, and return that.
import copy


def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(copy.deepcopy(model), mesh, plan)


# %% a mesh of its own, of all ranks
# The weights are split over all ranks of the world. Split them over the `mesh` that was given, which may
# hold only some of the ranks.
from torch.distributed.device_mesh import init_device_mesh


def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(model, init_device_mesh("cpu", (dist.get_world_size(),)), plan)


# %% up is forgotten | crashed
# The shapes do not fit: a layer of the plan is split the wrong way, or missing. q, k, v, gate and up are
# ColwiseParallel(), o and down RowwiseParallel(), with their default layouts.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    del plan["mlp.up"]
    return parallelize_module(model, mesh, plan)


# %% every layer by columns | crashed
# The shapes do not fit: a layer of the plan is split the wrong way, or missing. q, k, v, gate and up are
# ColwiseParallel(), o and down RowwiseParallel(), with their default layouts.
def with_dtensor(model, mesh):
    names = [f"attention.{name}" for name in "qkvo"] + [f"mlp.{name}" for name in ("gate", "up", "down")]
    return parallelize_module(model, mesh, {name: ColwiseParallel() for name in names})


# %% the norm becomes a DTensor | crashed
# The norm's parameters are DTensors, but x is a plain tensor. The norm stays whole: leave it as it is.
from torch.distributed.tensor import Replicate, distribute_tensor


def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    for name, p in list(model.norm.named_parameters()):
        whole = distribute_tensor(p.detach(), mesh, [Replicate()])
        model.norm.register_parameter(name, torch.nn.Parameter(whole))
    return parallelize_module(model, mesh, plan)


# %% only attention
# The MLP's weights are whole: the plan needs mlp.gate, mlp.up and mlp.down, too.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    plan = {name: style for name, style in plan.items() if name.startswith("attention")}
    return parallelize_module(model, mesh, plan)


# %% names without the path
# No weight is split. parallelize_module splits the layers of the plan; its keys are paths such as
# `attention.q` and `mlp.gate`, and a name that no module has only causes a warning.
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    plan = {name.split(".")[1]: style for name, style in plan.items()}
    return parallelize_module(model, mesh, plan)


# %% every layer by columns, the outputs whole | crashed
# The shapes do not fit: a layer of the plan is split the wrong way, or missing. q, k, v, gate and up are
# ColwiseParallel(), o and down RowwiseParallel(), with their default layouts.
def with_dtensor(model, mesh):
    from torch.distributed.tensor import Replicate

    last = ("attention.o", "mlp.down")
    names = [f"attention.{name}" for name in "qkv"] + ["mlp.gate", "mlp.up"]
    plan = {name: ColwiseParallel() for name in names}
    plan |= {name: ColwiseParallel(output_layouts=Replicate()) for name in last}
    return parallelize_module(model, mesh, plan)


# %% v by rows
# A layer of the plan is split the wrong way, which costs a further call. q, k, v, gate and up are
# ColwiseParallel(), o and down RowwiseParallel(), with their default layouts.
def with_dtensor(model, mesh):
    from torch.distributed.tensor import Replicate, Shard

    plan = {f"attention.{name}": ColwiseParallel() for name in "qk"}
    plan["attention.v"] = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(-1))
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% the model as it is
# No weight is split. parallelize_module splits the layers of the plan; its keys are paths such as
# `attention.q` and `mlp.gate`, and a name that no module has only causes a warning.
def with_dtensor(model, mesh):
    return model
