"""bfloat16 for the products, float32 for the weights that are kept."""

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
