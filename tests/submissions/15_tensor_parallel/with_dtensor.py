from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


# %% right: a plan of paths
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% right: wildcards, and returns the model that it changed
def with_dtensor(model, mesh):
    parallelize_module(model.attention, mesh, {"[qkv]": ColwiseParallel()})
    parallelize_module(model.attention.o, mesh, RowwiseParallel())
    parallelize_module(model.mlp, mesh, {"down": RowwiseParallel(), "*up*": ColwiseParallel()})
    parallelize_module(model.mlp.gate, mesh, ColwiseParallel())
    return model


# %% right: x becomes a DTensor once
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import PrepareModuleInput


def with_dtensor(model, mesh):
    once = PrepareModuleInput(input_layouts=Replicate(), desired_input_layouts=Replicate())
    col, row = ColwiseParallel(), RowwiseParallel()
    plan = {"attention": once, "mlp": once, "attention.o": row, "mlp.down": row}
    plan |= dict.fromkeys(["attention.q", "attention.k", "attention.v", "mlp.gate", "mlp.up"], col)
    return parallelize_module(model, mesh, plan)


# %% wrong: Rowwise first | crashed | says: Which layer gets which part
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": RowwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": RowwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": ColwiseParallel(), "mlp.down": ColwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% wrong: forgets the value | crashed | says: Which layer gets which part
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qk"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% wrong: names without paths | wrong | says: A name that no module has
def with_dtensor(model, mesh):
    plan = {name: ColwiseParallel() for name in ("q", "k", "v", "gate", "up")}
    plan |= {"o": RowwiseParallel(), "down": RowwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% wrong: the MLP stays whole | wrong | says: shape of mlp.gate.weight: .*, not
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    return parallelize_module(model, mesh, plan | {"attention.o": RowwiseParallel()})


# %% wrong: gathers between the layers | wrong | says: One sum at the end of attention
from torch.distributed.tensor import Replicate


def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    gathers = ColwiseParallel(output_layouts=Replicate())
    plan |= {f"mlp.{name}": gathers for name in ("gate", "up")}
    cuts = RowwiseParallel(input_layouts=Replicate())
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": cuts}
    return parallelize_module(model, mesh, plan)


# %% wrong: returns nothing | crashed | says: Return the model
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    parallelize_module(model, mesh, plan)


# %% wrong: the model as it is | wrong | says: whole on every rank
def with_dtensor(model, mesh):
    return model


# %% wrong: calls the class instead of an object | crashed | says: ColwiseParallel\(\)
def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel for name in "qkv"}
    return parallelize_module(model, mesh, plan)


# %% wrong: the norm in the plan | crashed | says: The norm stays whole
def with_dtensor(model, mesh):
    plan = {"norm": ColwiseParallel(), "mlp.up": ColwiseParallel()}
    return parallelize_module(model, mesh, plan)


# %% wrong: cuts a copy of the model | wrong | says: changes the model that it is given
import copy


def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(copy.deepcopy(model), mesh, plan)


# %% wrong: a mesh of its own, of all ranks | wrong | says: cut over the `mesh` that is given
from torch.distributed.device_mesh import init_device_mesh


def with_dtensor(model, mesh):
    plan = {f"attention.{name}": ColwiseParallel() for name in "qkv"}
    plan |= {f"mlp.{name}": ColwiseParallel() for name in ("gate", "up")}
    plan |= {"attention.o": RowwiseParallel(), "mlp.down": RowwiseParallel()}
    return parallelize_module(model, init_device_mesh("cpu", (dist.get_world_size(),)), plan)
