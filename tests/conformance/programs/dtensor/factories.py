"""ones, zeros and full made in parts."""

from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, full, ones, zeros


def main(rank, world_size):
    mesh = init_device_mesh("cpu", (world_size,))
    x = ones(4, 2, device_mesh=mesh, placements=[Shard(0)])
    y = zeros(4, 2, device_mesh=mesh, placements=[Shard(0)])
    z = full((4, 2), 0.5, device_mesh=mesh, placements=[Shard(0)])
    return (x + y).full_tensor().sum(), tuple(z.to_local().shape)
