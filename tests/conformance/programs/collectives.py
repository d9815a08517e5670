# %% all_gather | all_gather into a list, and into one tensor.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.tensor([rank + 0.25, rank + 0.5])
    boxes = [torch.empty(2) for _ in range(world_size)]
    dist.all_gather(boxes, x)
    flat = torch.empty(2 * world_size)
    dist.all_gather_into_tensor(flat, x)
    return torch.stack(boxes), flat


# %% all_reduce_ops | Every reduction that gloo knows, on whole numbers.
import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

WORLD_SIZE = 3


def main(rank, world_size):
    ops = {"sum": ReduceOp.SUM, "max": ReduceOp.MAX, "min": ReduceOp.MIN, "prod": ReduceOp.PRODUCT}
    ops |= {"band": ReduceOp.BAND, "bor": ReduceOp.BOR, "bxor": ReduceOp.BXOR}
    got = {}
    for name, op in ops.items():
        x = torch.tensor([rank + 2, 7 - rank])
        dist.all_reduce(x, op=op)
        got[name] = x.tolist()
    return got


# %% all_reduce_sum | Sum one tensor over all ranks.
import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    x = torch.tensor([float(rank), 0.1 * rank])
    dist.all_reduce(x, op=dist.ReduceOp.SUM)
    print(f"rank {rank} has {x.tolist()}")
    return x


# %% all_to_all | all_to_all_single with parts of different sizes.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    give = [rank + 1] * world_size
    take = [r + 1 for r in range(world_size)]
    x = torch.arange(sum(give)) + 100 * rank
    out = torch.empty(sum(take), dtype=torch.int64)
    dist.all_to_all_single(out, x, take, give)
    return out


# %% async_op | async_op=True: a rank computes before waiting for the result.
import torch
import torch.distributed as dist


def main(rank, world_size):
    xs = [torch.full((1000,), float(i + rank)) for i in range(5)]
    works = [dist.all_reduce(x, async_op=True) for x in xs]
    other = torch.eye(50).matrix_power(3).trace().item()
    for work in works:
        work.wait()
    return [x[0].item() for x in xs], other, all(w.is_completed() for w in works)


# %% autograd_function | An all_reduce whose backward sums gradients, as an autograd function.
import torch
import torch.distributed as dist


class Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        dist.all_reduce(grad)
        return grad


def main(rank, world_size):
    x = torch.tensor([1.0 + rank], requires_grad=True)
    (Sum.apply(x) ** 2 * (rank + 1)).sum().backward()
    return x.grad


# %% average | The mean over ranks by ReduceOp.AVG.
import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    x = torch.tensor([float(rank), 1.0])
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
    return x


# %% barriers | Barriers order the ranks' writes into one file.
import os
import tempfile

import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    path = os.path.join(tempfile.gettempdir(), "conformance-order.txt")
    for turn in range(world_size):
        if rank == turn:
            with open(path, "a") as file:
                file.write(f"rank {rank}\n")
        dist.barrier()
    with open(path) as file:
        text = file.read()
    dist.barrier()
    if rank == 0:
        os.unlink(path)
    return text


# %% broadcast | Broadcast from the last rank, in three dtypes.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    got = []
    for dtype in (torch.float64, torch.int32, torch.bool):
        x = torch.full((2, 2), rank, dtype=dtype)
        dist.broadcast(x, src=world_size - 1)
        got.append(x)
    return got


# %% dtypes | Sums of each floating dtype are rounded to that dtype.
import torch
import torch.distributed as dist


def main(rank, world_size):
    got = []
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        x = torch.tensor([0.1, 1000.3], dtype=dtype) * (rank + 1)
        dist.all_reduce(x)
        got.append(x)
    return got


# %% future_then | A callback on the future of an all_reduce divides its result.
import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    x = torch.tensor([float(rank)])
    future = dist.all_reduce(x, async_op=True).get_future()
    mean = future.then(lambda f: f.value()[0] / world_size)
    return mean.wait()


# %% gather | gather: only rank 0 passes a list.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.tensor([rank, rank**2])
    boxes = [torch.empty_like(x) for _ in range(world_size)] if rank == 0 else None
    dist.gather(x, boxes, dst=0)
    return boxes


# %% inference_mode | Collectives under inference_mode and no_grad.
import torch
import torch.distributed as dist


@torch.inference_mode()
def main(rank, world_size):
    x = torch.ones(3)
    dist.all_reduce(x)
    with torch.no_grad():
        dist.broadcast(x, src=0)
    return x.clone()


# %% many_small | A thousand small sums in a row.
import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.ones(1, dtype=torch.float64)
    for _ in range(1000):
        dist.all_reduce(x)
        x /= 2
    return x


# %% objects | Objects: all_gather_object, gather_object, broadcast_object_list, scatter_object_list.
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    every = [None] * world_size
    dist.all_gather_object(every, {"rank": rank, "name": "abc"[rank]})
    at_two = [None] * world_size if rank == 2 else None
    dist.gather_object((rank, [rank] * rank), at_two, dst=2)
    said = ["first", {1, 2}] if rank == 0 else [None, None]
    dist.broadcast_object_list(said, src=0)
    mine = [None]
    dist.scatter_object_list(mine, [10, "eleven", (12,)] if rank == 0 else None, src=0)
    return every, at_two, said, mine


# %% reduce_scatter | reduce_scatter_tensor: each rank keeps one part of the sum.
import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    x = torch.arange(8.0) + rank
    mine = torch.empty(2)
    dist.reduce_scatter_tensor(mine, x)
    return mine


# %% reduce_to_one | reduce: only rank 1 gets the sum.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.tensor([2.0**rank])
    dist.reduce(x, dst=1)
    return x if rank == 1 else None


# %% scatter | scatter: each rank gets its part of rank 0's list.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    parts = list(torch.arange(6.0).reshape(3, 2)) if rank == 0 else None
    mine = torch.empty(2)
    dist.scatter(mine, parts, src=0)
    return mine
