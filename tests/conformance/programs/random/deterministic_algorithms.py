"""use_deterministic_algorithms and the flags of the backends."""

import torch


def main(rank, world_size):
    torch.use_deterministic_algorithms(True)
    torch.backends.mkldnn.deterministic = True
    torch.set_float32_matmul_precision("high")
    on = torch.are_deterministic_algorithms_enabled()
    return on, torch.backends.cudnn.is_available(), torch.get_float32_matmul_precision()
