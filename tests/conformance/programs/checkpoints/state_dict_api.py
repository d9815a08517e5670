"""get_model_state_dict and its full form on rank 0."""

import torch
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.fsdp import fully_shard


def main(rank, world_size):
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2)
    fully_shard(model)
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    full = get_model_state_dict(model, options=options)
    shapes = {name: list(value.shape) for name, value in full.items()}
    changed = {name: torch.ones(shape) for name, shape in (("weight", (2, 4)), ("bias", 2))}
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, changed if rank == 0 else {}, options=options)
    return shapes, model.weight.full_tensor().sum()
