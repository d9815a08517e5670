# %% any_source | Rank 0 receives from any rank that is ready, and learns the sender.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    if rank:
        dist.send(torch.tensor([rank * 7]), dst=0)
        return None
    got = {}
    for _ in range(world_size - 1):
        x = torch.zeros(1, dtype=torch.int64)
        source = dist.recv(x)
        got[source] = x.item()
    return sorted(got.items())


# %% batched | batch_isend_irecv exchanges with both neighbors at once.
import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    from_left, from_right = torch.zeros(2), torch.zeros(2)
    mine = torch.tensor([rank, rank + 0.5])
    operations = [
        dist.P2POp(dist.isend, mine, right, tag=1),
        dist.P2POp(dist.isend, mine, left, tag=2),
        dist.P2POp(dist.irecv, from_left, left, tag=1),
        dist.P2POp(dist.irecv, from_right, right, tag=2),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    return from_left, from_right


# %% big_message | Sixteen megabytes from rank 0 to rank 1, which sums them.
import torch
import torch.distributed as dist


def main(rank, world_size):
    n = 4 * 1024 * 1024
    if rank == 0:
        dist.send(torch.arange(n, dtype=torch.int32), dst=1)
        return 0
    x = torch.empty(n, dtype=torch.int32)
    dist.recv(x, src=0)
    return x.sum().item()


# %% completed_flag | A received message: when wait returns, the buffer holds it.
import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.full((3,), -1.0)
    if rank == 0:
        work = dist.irecv(x, src=1)
        dist.barrier()
        work.wait()
    else:
        work = dist.isend(torch.arange(3.0), dst=0)
        dist.barrier()
        work.wait()
    return x


# %% many_in_flight | A hundred messages in flight, waited for at the end.
import torch
import torch.distributed as dist


def main(rank, world_size):
    other = 1 - rank
    boxes = [torch.zeros(1) for _ in range(100)]
    waits = [dist.irecv(box, src=other, tag=i) for i, box in enumerate(boxes)]
    gone = [torch.tensor([rank * 1000.0 + i]) for i in range(100)]
    waits += [dist.isend(x, dst=other, tag=i) for i, x in enumerate(gone)]
    for work in waits:
        work.wait()
    return sum(box.item() for box in boxes)


# %% objects | Objects are sent from rank to rank by send_object_list and recv_object_list.
import torch.distributed as dist


def main(rank, world_size):
    if rank == 0:
        dist.send_object_list([{"a": [1, 2]}, "text", (3.5, None)], dst=1)
        return None
    got = [None, None, None]
    source = dist.recv_object_list(got, src=0)
    return got, source


# %% peer_has_left | Rank 0 destroys its group and continues: rank 1, receiving from it, catches the error.
import time

import torch
import torch.distributed as dist


def main(rank, world_size):
    if rank == 0:
        dist.destroy_process_group()
        time.sleep(3)
        return "done"
    try:
        dist.recv(torch.zeros(1), src=0)
    except Exception as error:
        return type(error).__name__


# %% ping_pong | A number goes to the other rank and back.
import torch
import torch.distributed as dist


def main(rank, world_size):
    x = torch.zeros(1)
    for turn in range(4):
        if rank == turn % 2:
            x += 1
            dist.send(x, dst=1 - rank)
        else:
            dist.recv(x, src=1 - rank)
    return x


# %% pipeline_by_hand | A pipeline of three stages in a loop: receive, compute, send.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    done = []
    for step in range(4):
        x = torch.tensor([float(step)])
        if rank > 0:
            dist.recv(x, src=rank - 1)
        x = x * 2 + rank
        if rank < world_size - 1:
            dist.send(x, dst=rank + 1)
        else:
            done.append(x.item())
    return done


# %% ring_isend | Every rank sends to the right without blocking and receives from the left.
import torch
import torch.distributed as dist

WORLD_SIZE = 4


def main(rank, world_size):
    out, into = torch.tensor([rank * 1.5]), torch.empty(1)
    request = dist.isend(out, dst=(rank + 1) % world_size)
    dist.recv(into, src=(rank - 1) % world_size)
    request.wait()
    return into


# %% self_send | A rank sends to itself: torch refuses.
import torch
import torch.distributed as dist

FAILS = "ValueError"


def main(rank, world_size):
    dist.send(torch.ones(1), dst=rank)


# %% tags | Messages with tags are received in a different order than they were sent.
import torch
import torch.distributed as dist


def main(rank, world_size):
    if rank == 0:
        requests = [dist.isend(torch.tensor([tag * 10]), dst=1, tag=tag) for tag in (1, 2, 3)]
        for request in requests:
            request.wait()
        return None
    got = []
    for tag in (3, 1, 2):
        x = torch.zeros(1, dtype=torch.int64)
        dist.recv(x, src=0, tag=tag)
        got.append(x.item())
    return got


# %% within_group | In a subgroup, a rank names its peer by group_dst and group_src.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    group = dist.new_group([1, 2])
    x = torch.tensor([float(rank)])
    if rank == 1:
        dist.send(x, group=group, group_dst=1)
    elif rank == 2:
        dist.recv(x, group=group, group_src=0)
    return x
