# %% all_to_all_experts | Tokens go to the rank of their expert and come back.
import torch
import torch.distributed as dist


def main(rank, world_size):
    tokens = torch.arange(6.0) + 10 * rank
    expert = torch.tensor([0, 1, 1, 0, 1, 1])
    order = expert.argsort(stable=True)
    give = expert.bincount(minlength=world_size)
    take = torch.empty_like(give)
    dist.all_to_all_single(take, give)
    got = torch.empty(int(take.sum()))
    dist.all_to_all_single(got, tokens[order], take.tolist(), give.tolist())
    back = torch.empty(6)
    dist.all_to_all_single(back, got * (rank + 2), give.tolist(), take.tolist())
    out = torch.empty(6)
    out[order] = back
    return out


# %% attention_ring | Attention over blocks that are sent around a ring equals attention over all.
import torch
import torch.distributed as dist


def main(rank, world_size):
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 4 * world_size, 8)
    mine = slice(4 * rank, 4 * rank + 4)
    block, scores, values = torch.stack([k[mine], v[mine]]), [], []
    for _ in range(world_size):
        scores.append(q[mine] @ block[0].T)
        values.append(block[1])
        box = torch.empty_like(block)
        work = dist.isend(block, dst=(rank + 1) % world_size)
        dist.recv(box, src=(rank - 1) % world_size)
        work.wait()
        block = box
    out = torch.cat(scores, 1).softmax(-1) @ torch.cat(values)
    return torch.allclose(out, (q[mine] @ k.T).softmax(-1) @ v, atol=1e-5)


# %% early_stopping | Rank 0 decides when to stop and tells the others.
import torch
import torch.distributed as dist


def main(rank, world_size):
    losses = iter([1.0, 0.7, 0.69, 0.8, 0.9])
    best, steps = float("inf"), 0
    stop = torch.zeros(1)
    while not stop.item():
        loss = next(losses)
        if rank == 0 and loss > best:
            stop.fill_(1)
        best = min(best, loss)
        dist.broadcast(stop, src=0)
        steps += 1
    return steps, best


# %% exact_accuracy | Accuracy over ranks with unequal numbers of samples: sums are reduced, not means.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    right = torch.arange(10) % 3 == 0
    mine = right[rank::world_size]
    counts = torch.tensor([mine.sum().item(), len(mine)])
    dist.all_reduce(counts)
    return counts[0].item() / counts[1].item(), len(mine)


# %% gradient_accumulation | Four micro-batches a step under no_sync give the gradient of the whole batch.
from contextlib import nullcontext

import torch
from torch.nn.parallel import DistributedDataParallel as DDP


def main(rank, world_size):
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 1))
    batch = torch.arange(16.0).reshape(8, 2) + rank
    for i, part in enumerate(batch.chunk(4)):
        with model.no_sync() if i < 3 else nullcontext():
            (model(part).sum() / 8).backward()
    return model.module.weight.grad


# %% halo_exchange | Heat on a rod that is cut into parts: edges are exchanged at each step.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    u = torch.zeros(6)
    if rank == 0:
        u[1] = 100.0
    for _ in range(20):
        works = []
        for peer, give, take in ((rank - 1, 1, 0), (rank + 1, -2, -1)):
            if 0 <= peer < world_size:
                works.append(dist.isend(u[give : give + 1 or None].clone(), dst=peer))
                works.append(dist.irecv(u[take : take + 1 or None], src=peer))
        for work in works:
            work.wait()
        u[1:-1] += 0.25 * (u[:-2] - 2 * u[1:-1] + u[2:])
    return [round(x, 4) for x in u[1:-1].tolist()]


# %% parameter_server | A parameter server: workers ask and push, and rank 0 answers in order of arrival.
import torch
import torch.distributed as dist

WORLD_SIZE = 3
STEPS = 4


def main(rank, world_size):
    w = torch.zeros(2)
    if rank == 0:
        for _ in range(STEPS * (world_size - 1)):
            grad = torch.empty(2)
            who = dist.recv(grad)
            w -= 0.5 * grad
            dist.send(w, dst=who)
        return w
    for _ in range(STEPS):
        dist.send(torch.full((2,), float(rank)), dst=0)
        dist.recv(w, src=0)
    return None


# %% resume | Training is stopped, saved and resumed, with the same result.
import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP


def new():
    torch.manual_seed(0)
    model = DDP(torch.nn.Linear(2, 1))
    return model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def train(model, optimizer, first, last):
    for step in range(first, last):
        optimizer.zero_grad()
        model(torch.full((1, 2), step + 1.0)).sum().backward()
        optimizer.step()


def main(rank, world_size):
    model, optimizer = new()
    train(model, optimizer, 0, 2)
    if rank == 0:
        torch.save({"m": model.state_dict(), "o": optimizer.state_dict()}, "last.pt")
    dist.barrier()
    train(model, optimizer, 2, 5)
    again, its = new()
    kept = torch.load("last.pt")
    again.load_state_dict(kept["m"])
    its.load_state_dict(kept["o"])
    train(again, its, 2, 5)
    dist.barrier()
    if rank == 0:
        os.unlink("last.pt")
    return torch.equal(model.module.weight, again.module.weight)


# %% ring_all_reduce | A ring all-reduce by hand agrees with torch's.
import torch
import torch.distributed as dist

WORLD_SIZE = 4


def ring_all_reduce(x, rank, n):
    parts = list(x.chunk(n))
    right, left = (rank + 1) % n, (rank - 1) % n
    for phase in range(2):
        for step in range(n - 1):
            give, take = (rank - step + phase) % n, (rank - step - 1 + phase) % n
            box = torch.empty_like(parts[take])
            work = dist.isend(parts[give].contiguous(), dst=right)
            dist.recv(box, src=left)
            work.wait()
            parts[take].add_(box) if phase == 0 else parts[take].copy_(box)
    return x


def main(rank, world_size):
    x = torch.arange(8.0) * (rank + 1)
    y = x.clone()
    dist.all_reduce(y)
    return torch.equal(ring_all_reduce(x, rank, world_size), y)


# %% synchronous_sgd | Two ranks with half batches train as one with the whole batch.
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


# %% timing | A usual measurement: warm up, barrier, clock, median.
import statistics
import time

import torch
import torch.distributed as dist


def main(rank, world_size):
    x, laps = torch.ones(1000), []
    for i in range(10):
        dist.barrier()
        start = time.perf_counter()
        dist.all_reduce(x)
        if i >= 3:
            laps.append(time.perf_counter() - start)
    return len(laps), 0 < statistics.median(laps) < 5


# %% work_queue | Rank 0 sends tasks to any free rank and collects the answers.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    message = torch.zeros(2, dtype=torch.int64)
    if rank > 0:
        answer = torch.tensor([-1, 0])
        while True:
            dist.send(answer, dst=0)
            dist.recv(message, src=0)
            if message[0] < 0:
                return "sent home"
            answer = torch.stack([message[0], message[0] ** 2])
    results, waiting, ended = {}, list(range(7)), 0
    while ended < world_size - 1:
        who = dist.recv(message)
        if message[0] >= 0:
            results[message[0].item()] = message[1].item()
        task = waiting.pop() if waiting else -1
        ended += task < 0
        dist.send(torch.tensor([task, 0]), dst=who)
    return sorted(results.items())
