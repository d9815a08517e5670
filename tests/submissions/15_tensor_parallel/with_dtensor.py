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


# %% wrong: names without paths | wrong | says: a name that no module has
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
