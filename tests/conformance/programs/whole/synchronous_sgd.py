"""Two ranks with half batches train as one with the whole batch."""

import torch
import torch.distributed as dist


def train(x, y, average):
    torch.manual_seed(0)
    net = torch.nn.Linear(3, 1)
    for _ in range(4):
        net.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        with torch.no_grad():
            for p in net.parameters():
                average(p.grad)
                p -= 0.1 * p.grad
    return torch.cat([p.detach().flatten() for p in net.parameters()])


def main(rank, world_size):
    g = torch.Generator().manual_seed(1)
    x, y = torch.randn(8, 3, generator=g), torch.randn(8, 1, generator=g)

    def mean(grad):
        dist.all_reduce(grad)
        grad /= world_size

    mine = slice(rank * 4, rank * 4 + 4)
    return torch.allclose(train(x[mine], y[mine], mean), train(x, y, lambda grad: None), atol=1e-6)
