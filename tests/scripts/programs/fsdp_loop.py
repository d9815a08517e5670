"""FSDP2: layers are sharded one by one, and the full state is gathered at the end."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


class Layer(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))


def samples(rank, step):
    generator = torch.Generator().manual_seed(100 * step + rank)
    x = torch.randn(8, 16, generator=generator)
    return {"x": x, "y": x.flip(-1)}


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(0)
    model = torch.nn.Sequential(Layer(16), Layer(16), Layer(16))
    for layer in model:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(4):
        batch = samples(rank, step)
        loss = (model(batch["x"]) - batch["y"]).square().mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        if rank == 0:
            print(f"step {step} loss {mean.item():.4f}")
    total = sum(p.full_tensor().double().sum().item() for p in model.parameters())
    print(f"sum of weights {total:.3f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
