"""What DDP tells about itself."""

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    model = DDP(torch.nn.Linear(10, 10))
    data = model._get_ddp_logging_data()
    return data["world_size"], data["total_parameter_size_bytes"], data["backend_name"]
