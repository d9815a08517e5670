"""Cross entropy on logits that stay cut by class."""

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import loss_parallel


def main(rank, world_size):
    torch.manual_seed(0)
    logits = torch.randn(4, 6)
    mesh = init_device_mesh("cpu", (world_size,))
    cut = distribute_tensor(logits, mesh, [Shard(1)]).requires_grad_()
    labels = torch.tensor([0, 5, 2, 3])
    with loss_parallel():
        loss = torch.nn.functional.cross_entropy(cut, labels)
        loss.backward()
    expected = torch.nn.functional.cross_entropy(logits, labels)
    return torch.allclose(loss.full_tensor(), expected), list(cut.grad.to_local().shape)
