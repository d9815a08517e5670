from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)


# %% wrong: the MLP stays whole | wrong | says: shape of mlp.gate.weight: .*, not


# %% wrong: the model as it is | wrong | says: whole on every rank


# %% wrong: the norm in the plan | crashed | says: The norm stays whole


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
