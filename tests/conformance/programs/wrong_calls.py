# %% after_destroy | A collective after the group was destroyed.
import torch
import torch.distributed as dist

FAILS = "ValueError"


def main(rank, world_size):
    dist.destroy_process_group()
    dist.all_reduce(torch.ones(1))


# %% broadcast_shape | Rank 1 waits for more elements than are broadcast.
import torch
import torch.distributed as dist

FAILS = "SIGABRT"


def main(rank, world_size):
    x = torch.ones(1000 if rank == 0 else 10)
    dist.broadcast(x, src=0)
    return x


# %% buffer_changed_early | The buffer of an isend is only changed after its wait, which is right.
import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.zeros(1000)
    if rank == 0:
        work = dist.isend(x + 1, dst=1)
        work.wait()
        x.fill_(9)
    else:
        dist.recv(x, src=0)
    return x.sum()


# %% forgotten_wait | A receive without a wait: its Work is dropped at once, and the ranks hang.
import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    x = torch.zeros(1)
    if rank == 0:
        dist.irecv(x, src=1)
    else:
        dist.isend(torch.ones(1), dst=0)
    dist.barrier()
    return "continued"


# %% gather_list_on_all | gather with a list on every rank.
import torch
import torch.distributed as dist

FAILS = "ValueError"


def main(rank, world_size):
    x = torch.ones(1)
    dist.gather(x, [torch.zeros(1) for _ in range(world_size)], dst=0)


# %% groups_in_other_order | Ranks use two groups in different orders.
import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    a, b = dist.new_group(), dist.new_group()
    first, second = (a, b) if rank == 0 else (b, a)
    x = torch.ones(1)
    dist.all_reduce(x, group=first)
    dist.all_reduce(x, group=second)


# %% if_rank_zero_barrier | A barrier inside `if rank == 0`, while the other rank receives.
import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    if rank == 0:
        dist.barrier()
        dist.send(torch.ones(1), dst=1)
    else:
        dist.recv(torch.zeros(1), src=0)
        dist.barrier()


# %% init_twice | init_process_group although the group has already been joined.
import torch.distributed as dist

FAILS = "ValueError"


def main(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size)


# %% list_for_tensor | A list where a tensor is needed.
import torch.distributed as dist

FAILS = "TypeError"


def main(rank, world_size):
    dist.all_reduce([1.0, 2.0])


# %% list_too_long | all_gather_object into a list that is too long: elements stay empty, or it fails.
import torch.distributed as dist


def main(rank, world_size):
    box = [None] * (world_size + 1)
    try:
        dist.all_gather_object(box, rank)
    except Exception as error:
        return type(error).__name__
    return box


# %% nccl | NCCL without a GPU, or without the requested one.
import torch.distributed as dist

INIT = False
FAILS = "RuntimeError"


def main(rank, world_size):
    dist.init_process_group("nccl", rank=rank, world_size=world_size)


# %% negative_source | A negative source in broadcast.
import torch
import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    dist.broadcast(torch.ones(1), src=-1)


# %% new_group_by_members | new_group is only called by its members: it waits for the others.
import torch.distributed as dist

FAILS = "hang"
WORLD_SIZE = 3


def main(rank, world_size):
    if rank < 2:
        dist.new_group([0, 1, 2])
    else:
        import threading

        threading.Event().wait()


# %% no_send | Rank 1 receives a message that rank 0 never sends; rank 0 has returned.
import torch
import torch.distributed as dist

FAILS = "RuntimeError"
DIFFERS = {
    "untraced": ("Deadlock", "a rank that has returned is named before its connections close"),
    "launch": ("Deadlock", "a rank that has returned is named before its connections close"),
    "ranks": ("Deadlock", "a rank that has returned is named before its connections close"),
}


def main(rank, world_size):
    if rank == 1:
        dist.recv(torch.zeros(1), src=0)
    return "done"


# %% not_contiguous | A non-contiguous view, sent point to point.
import torch
import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    x = torch.arange(6.0).reshape(2, 3).t()
    if rank == 0:
        dist.send(x, dst=1)
    else:
        dist.recv(x, src=0)


# %% not_initialised | A collective before the group exists.
import torch
import torch.distributed as dist

INIT = False
FAILS = "ValueError"


def main(rank, world_size):
    dist.all_reduce(torch.ones(1))


# %% odd_split | reduce_scatter of a tensor whose length is not divisible.
import torch
import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    dist.reduce_scatter_tensor(torch.zeros(1), torch.ones(3))


# %% one_skips_reduce | Rank 0 skips a collective and returns: the other rank waits forever.
import torch
import torch.distributed as dist

FAILS = "RuntimeError"
DIFFERS = {
    "untraced": ("Deadlock", "a rank that has returned is named before its connections close"),
    "launch": ("Deadlock", "a rank that has returned is named before its connections close"),
    "ranks": ("Deadlock", "a rank that has returned is named before its connections close"),
}


def main(rank, world_size):
    x = torch.ones(1)
    if rank > 0:
        dist.all_reduce(x)
    return x


# %% other_collective | One rank reduces, the other broadcasts.
import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    x = torch.ones(1)
    if rank == 0:
        dist.all_reduce(x)
    else:
        dist.broadcast(x, src=0)
    dist.barrier()


# %% other_dtype | Ranks pass dtypes of different widths: bytes are misread without an error.
import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.ones(4, dtype=torch.float32 if rank == 0 else torch.float64)
    dist.broadcast(x, src=0)
    return x


# %% rank_missing | init_process_group with a rank that is out of range: it waits for the lower ranks.
import torch.distributed as dist

INIT = False
FAILS = "hang"


def main(rank, world_size):
    dist.init_process_group("gloo", rank=rank + world_size, world_size=world_size)


# %% rank_too_large | A destination that does not exist: gloo waits for it.
import torch
import torch.distributed as dist

FAILS = "hang"
DIFFERS = {
    "untraced": (
        "SIGSEGV|RankTimeout",
        "gloo reads beyond its list of pairs, and what it finds in memory there is chance.",
    ),
    "launch": (
        "ValueError",
        "The recorder looks at the peer first: gloo reads beyond its list of pairs.",
    ),
    "ranks": (
        "ValueError",
        "The recorder looks at the peer first: gloo reads beyond its list of pairs.",
    ),
    "script": (
        "ValueError",
        "The recorder looks at the peer first: gloo reads beyond its list of pairs.",
    ),
}


def main(rank, world_size):
    dist.send(torch.ones(1), dst=world_size)


# %% recv_first | Each rank receives before sending: none of them continues.
import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    other = 1 - rank
    x = torch.zeros(1)
    dist.recv(x, src=other)
    dist.send(torch.ones(1), dst=other)
    return x


# %% ring_of_receives | A ring in which every rank receives first.
import torch
import torch.distributed as dist

FAILS = "hang"
WORLD_SIZE = 3


def main(rank, world_size):
    x = torch.zeros(1)
    dist.recv(x, src=(rank - 1) % world_size)
    dist.send(x, dst=(rank + 1) % world_size)


# %% same_rank_twice | Both processes say that they are rank 0: the group waits for rank 1.
from pathlib import Path

import torch.distributed as dist

INIT = False
FAILS = "hang"


def main(rank, world_size):
    place = Path("joined").absolute()
    dist.init_process_group("gloo", init_method=f"file://{place}", rank=0, world_size=world_size)


# %% scatter_without_list | scatter from a rank that passes no list.
import torch
import torch.distributed as dist

FAILS = "ValueError"


def main(rank, world_size):
    dist.scatter(torch.zeros(1), src=0)


# %% send_first | Each rank sends before receiving: gloo does not buffer messages.
import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    other = 1 - rank
    dist.send(torch.ones(1), dst=other)
    x = torch.zeros(1)
    dist.recv(x, src=other)
    return x


# %% short_list | all_gather into a list that is too short.
import torch
import torch.distributed as dist

FAILS = "RuntimeError"


def main(rank, world_size):
    dist.all_gather([torch.zeros(1)], torch.ones(1))


# %% sleep_for_ever | A rank sleeps far longer than any wait.
import time

import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    if rank == 0:
        time.sleep(3600)
    dist.barrier()


# %% unknown_backend | A backend with a typing mistake.
import torch.distributed as dist

INIT = False
FAILS = "AssertionError"


def main(rank, world_size):
    dist.init_process_group("glow", rank=rank, world_size=world_size)


# %% wait_for_oneself | A loop that waits for a flag that is never set.
FAILS = "hang"


def main(rank, world_size):
    flag = False
    while not flag:
        pass


# %% waits_for_more_ranks | A world_size larger than the number of ranks.
import torch.distributed as dist

INIT = False
FAILS = "hang"


def main(rank, world_size):
    dist.init_process_group("gloo", rank=rank, world_size=world_size + 1)


# %% wrong_tag | A message with tag 1, waited for with tag 2.
import torch
import torch.distributed as dist

FAILS = "hang"


def main(rank, world_size):
    if rank == 0:
        dist.send(torch.ones(1), dst=1, tag=1)
    else:
        dist.recv(torch.zeros(1), src=0, tag=2)
