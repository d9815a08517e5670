"""Wrong programs, the advice on each, and the corrected programs.

A program is the body of `f(rank, n)`. `right` must succeed, because advice must not lead to the next fault.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Advised:
    """A program and its correction. says: words of the advice. init: whether the group was joined before.

    trace: whether the calls are recorded.
    """

    wrong: str
    says: str
    right: str
    size: int = 2
    init: bool = True
    trace: bool = True
    timeout: float = 20


NO_GPU = "Compute on the CPU"
DDP = "torch.nn.parallel.DistributedDataParallel"

# --- helpers/ranks/advice.py --------------------------------------------------------------------------

ERRORS: dict[str, Advised] = {
    "init twice": Advised(
        "dist.init_process_group('gloo'); dist.barrier()",
        "leave out init_process_group(...)",
        "dist.barrier()",
    ),
    "no group": Advised(
        "dist.barrier()",
        "call dist.init_process_group('gloo') first",
        "dist.init_process_group('gloo'); dist.barrier()",
        init=False,
    ),
    "port in use": Advised(
        "import socket\nif rank == 0:\n"
        "    s = socket.create_server(('', int(os.environ['MASTER_PORT'])))\n"
        "    dist.init_process_group('gloo')",
        "call helpers.free_port()",
        "import helpers\nif rank == 0:\n    os.environ['MASTER_PORT'] = str(helpers.free_port())\n"
        "    dist.init_process_group('gloo', rank=0, world_size=1)",
        init=False,
    ),
    "debugger": Advised("breakpoint()\nx = 1", "Print what you want to see", "print(rank)"),
    "input": Advised("input()", "Call input() in the notebook", "text = 'from the notebook'"),
    "pinned memory": Advised("torch.ones(1).pin_memory()", "Leave it out", "torch.ones(1)"),
    "dtypes of one call": Advised(
        "x = torch.ones(2, dtype=torch.float64)\ndist.all_gather([torch.empty(2) for _ in range(n)], x)",
        "have different dtypes",
        "x = torch.ones(2, dtype=torch.float64)\n"
        "dist.all_gather([torch.empty(2, dtype=x.dtype) for _ in range(n)], x)",
    ),
    "device_ids": Advised(
        f"{DDP}(torch.nn.Linear(1, 1), device_ids=[rank])",
        "Write DDP(model).",
        f"{DDP}(torch.nn.Linear(1, 1))",
    ),
    "profiler": Advised(
        "from torch.profiler import profile, ProfilerActivity\n"
        "with profile(activities=[ProfilerActivity.CUDA]): pass",
        "activities=[ProfilerActivity.CPU]",
        "from torch.profiler import profile, ProfilerActivity\n"
        "with profile(activities=[ProfilerActivity.CPU]): pass",
    ),
    "device count": Advised("rank % torch.cuda.device_count()", NO_GPU, "torch.device('cpu')"),
    "nccl": Advised("dist.new_group(backend='nccl')", '"gloo"', "dist.new_group(backend='gloo')"),
    "backend of a typo": Advised(
        "dist.new_group(backend='glooo')", '"gloo"', "dist.new_group(backend='gloo')"
    ),
    "gpu": Advised("torch.ones(1).to(rank)", NO_GPU, "torch.ones(1).to('cpu')"),
    "interface": Advised(
        "os.environ['GLOO_SOCKET_IFNAME'] = 'eth77'; dist.init_process_group('gloo')",
        "Leave that line out",
        "dist.init_process_group('gloo')",
        init=False,
    ),
    "message to oneself": Advised(
        "dist.send(torch.ones(1), rank)", "Copy the tensor", "torch.zeros(1).copy_(torch.ones(1))"
    ),
    "early return, not recorded": Advised(
        "if rank == 0: dist.destroy_process_group(); return\ndist.all_reduce(torch.ones(1))",
        "All ranks must make the same calls before one of them leaves",
        "leaves = torch.tensor([float(rank == 0)])\ndist.all_reduce(leaves)\n"
        "if leaves: dist.destroy_process_group(); return\ndist.all_reduce(torch.ones(1))",
        trace=False,
    ),
    "all_reduce with a group": Advised(
        "dist.all_reduce(torch.ones(1), dist.group.WORLD)",
        "dist.all_reduce(x, group=group)",
        "dist.all_reduce(torch.ones(1), group=dist.group.WORLD)",
    ),
    "all_reduce with a word": Advised(
        "dist.all_reduce(torch.ones(1), 'sum')",
        "such as dist.ReduceOp.SUM",
        "dist.all_reduce(torch.ones(1), dist.ReduceOp.SUM)",
    ),
    "broadcast with a group": Advised(
        "dist.broadcast(torch.ones(1), dist.group.WORLD)",
        "dist.broadcast(x, src=0, group=group)",
        "dist.broadcast(torch.ones(1), src=0, group=dist.group.WORLD)",
    ),
    "reduce with a group": Advised(
        "dist.reduce(torch.ones(1), dist.group.WORLD)",
        "dist.reduce(x, dst=0, group=group)",
        "dist.reduce(torch.ones(1), dst=0, group=dist.group.WORLD)",
    ),
    "no root": Advised(
        "dist.broadcast(torch.ones(1))",
        "dist.broadcast(x, src=0)",
        "dist.broadcast(torch.ones(1), src=0)",
    ),
    "send with a group": Advised(
        "dist.send(torch.ones(1), dist.group.WORLD)",
        "dist.send(x, dst=1, group=group)",
        "if rank == 0: dist.send(torch.ones(1), dst=1, group=dist.group.WORLD)\n"
        "else: dist.recv(torch.ones(1), src=0, group=dist.group.WORLD)",
    ),
    "all_gather swapped": Advised(
        "dist.all_gather(torch.ones(1), [torch.ones(1)] * n)",
        "The list comes first",
        "dist.all_gather([torch.ones(1) for _ in range(n)], torch.ones(1))",
    ),
    "all_to_all of tensors": Advised(
        "dist.all_to_all(torch.ones(2), torch.ones(2))",
        "dist.all_to_all_single(output, input)",
        "dist.all_to_all_single(torch.ones(2), torch.ones(2))",
    ),
    "reduce_scatter swapped": Advised(
        "dist.reduce_scatter([torch.ones(1)] * n, torch.ones(1))",
        "The output comes first: dist.reduce_scatter",
        "dist.reduce_scatter(torch.ones(1), [torch.ones(1)] * n)",
    ),
    "gather swapped": Advised(
        "dist.gather([torch.ones(1)] * n if rank == 0 else None, torch.ones(1))"
        " if rank == 0 else dist.barrier()",
        "The tensor comes first, then the list",
        "dist.gather(torch.ones(1), [torch.ones(1) for _ in range(n)] if rank == 0 else None)",
    ),
    "a list": Advised(
        "dist.all_reduce([torch.ones(1), torch.ones(2)])",
        "first join them with torch.cat",
        "dist.all_reduce(torch.cat([torch.ones(1), torch.ones(2)]))",
    ),
    "send swapped": Advised(
        "dist.send(1 - rank, torch.ones(2))",
        "dist.send(tensor, dst)",
        "if rank == 0: dist.send(torch.ones(2), 1)\nelse: dist.recv(torch.ones(2), 0)",
    ),
    "recv swapped": Advised(
        "dist.recv(1 - rank, torch.ones(2))",
        "dist.recv(tensor, src)",
        "if rank == 0: dist.send(torch.ones(2), 1)\nelse: dist.recv(torch.ones(2), 0)",
    ),
    "a number": Advised(
        "dist.all_reduce(3.0)",
        "x = torch.tensor([value])",
        "x = torch.tensor([3.0])\ndist.all_reduce(x)",
    ),
    "gather into swapped": Advised(
        "dist.all_gather_into_tensor(torch.ones(2), torch.ones(4))",
        "an output world_size times as large as the input",
        "dist.all_gather_into_tensor(torch.ones(4), torch.ones(2))",
    ),
    "reduce_scatter_tensor swapped": Advised(
        "dist.reduce_scatter_tensor(torch.ones(4), torch.ones(2))",
        "an input world_size times as large as the output",
        "dist.reduce_scatter_tensor(torch.ones(2), torch.ones(4))",
    ),
    "unequal parts": Advised(
        "dist.scatter(torch.ones(2), [torch.ones(2), torch.ones(3)] if rank == 0 else None)",
        "Pad the shorter ones",
        "dist.scatter(torch.ones(3), [torch.ones(3), torch.ones(3)] if rank == 0 else None)",
    ),
    "too few parts": Advised(
        "dist.scatter(torch.ones(2), [torch.ones(2)] if rank == 0 else None)",
        "one tensor for each rank of the group",
        "dist.scatter(torch.ones(2), [torch.ones(2)] * 2 if rank == 0 else None)",
    ),
    "gather_list everywhere": Advised(
        "dist.gather(torch.ones(1), [torch.ones(1) for _ in range(n)], dst=0)",
        "all other ranks pass None",
        "dist.gather(torch.ones(1), [torch.ones(1) for _ in range(n)] if rank == 0 else None, dst=0)",
    ),
    "gather_list nowhere": Advised(
        "dist.gather(torch.ones(1), dst=0)",
        "The root must pass the list",
        "dist.gather(torch.ones(1), [torch.ones(1) for _ in range(n)] if rank == 0 else None, dst=0)",
    ),
    "root by position": Advised(
        "group = dist.new_group([1, 2])\nif rank: dist.broadcast(torch.ones(1), src=0, group=group)",
        "dist.get_global_rank(group, position)",
        "group = dist.new_group([1, 2])\n"
        "if rank: dist.broadcast(torch.ones(1), src=dist.get_global_rank(group, 0), group=group)",
        size=3,
    ),
    "checkpoint of a different size": Advised(
        "import torch.distributed.checkpoint as dcp, warnings\nwarnings.simplefilter('ignore')\n"
        "dcp.save({'w': torch.ones(2)}, checkpoint_id='PATH')\n"
        "dcp.load({'w': torch.ones(3)}, checkpoint_id='PATH')",
        "The checkpoint's tensor has a different shape",
        "import torch.distributed.checkpoint as dcp, warnings\nwarnings.simplefilter('ignore')\n"
        "dcp.save({'w': torch.ones(2)}, checkpoint_id='PATH')\n"
        "dcp.load({'w': torch.ones(2)}, checkpoint_id='PATH')",
    ),
}

# --- helpers/trace/joins.py, helpers/trace/departure.py, helpers/trace/causes.py ------------------------

LOOP = "for step in range(3):\n    "
MODEL = f"model = {DDP}(torch.nn.Linear(4, 1))\n"
DIAGNOSES: dict[str, Advised] = {
    "rank=0 everywhere": Advised(
        "url = f\"tcp://localhost:{os.environ['MASTER_PORT']}\"\n"
        "dist.init_process_group('gloo', init_method=url, rank=0, world_size=n)",
        "pass rank=rank and world_size=world_size",
        "url = f\"tcp://localhost:{os.environ['MASTER_PORT']}\"\n"
        "dist.init_process_group('gloo', init_method=url, rank=rank, world_size=n)",
        init=False,
    ),
    "rank=0 everywhere, without numbers": Advised(
        "dist.init_process_group('gloo', rank=0, world_size=n)",
        "or leave out both",
        "dist.init_process_group('gloo')",
        init=False,
    ),
    "two jobs at one address": Advised(
        "dist.init_process_group('gloo', init_method='file://PATH', rank=0, world_size=2 + rank)",
        "a port or a file that no other job uses",
        "dist.init_process_group('gloo', init_method=f'file://PATH-{rank}', rank=0, world_size=1)",
        init=False,
    ),
    "too large a world": Advised(
        "dist.init_process_group('gloo', rank=rank, world_size=n + rank)",
        "world_size must be the number of ranks",
        "dist.init_process_group('gloo', rank=rank, world_size=n)",
        init=False,
    ),
    "free ports": Advised(
        "import helpers\nurl = f'tcp://localhost:{helpers.free_port()}'\n"
        "dist.init_process_group('gloo', init_method=url, rank=rank, world_size=n)",
        "Pass the same init_method or store on every rank",
        "url = 'tcp://localhost:' + os.environ['MASTER_PORT']\n"
        "dist.init_process_group('gloo', init_method=url, rank=rank, world_size=n)",
        init=False,
        timeout=4,
    ),
    "deleted file": Advised(
        "import time; time.sleep(rank)\nif os.path.exists('PATH'): os.remove('PATH')\n"
        "dist.init_process_group('gloo', init_method='file://PATH', rank=rank, world_size=n)",
        "must be the same one on all ranks, and new for each job",
        "dist.init_process_group('gloo', init_method='file://PATH', rank=rank, world_size=n)",
        init=False,
        timeout=12,
    ),
    "early return": Advised(
        "for step in range(4):\n"
        "    if rank == 2 and step == 2:\n        dist.destroy_process_group(); return\n"
        "    dist.all_reduce(torch.ones(1))\n"
        "dist.destroy_process_group()",
        "All ranks must leave in the same step",
        "for step in range(4):\n"
        "    flag = torch.tensor([float(rank == 2 and step == 2)])\n"
        "    dist.all_reduce(flag, op=dist.ReduceOp.MAX)\n"
        "    if flag: break\n"
        "    dist.all_reduce(torch.ones(1))\n"
        "dist.destroy_process_group()",
        size=4,
    ),
    "destroyed before a message": Advised(
        "if rank == 0: dist.destroy_process_group()\n"
        "else:\n    import time; time.sleep(1); dist.recv(torch.ones(1), 0)",
        "make the send that answers this call before leaving",
        "if rank == 0: dist.send(torch.ones(1), 1); dist.destroy_process_group()\n"
        "else: dist.recv(torch.ones(1), 0)",
    ),
    "different collectives": Advised(
        "dist.all_reduce(torch.ones(1)) if rank else dist.broadcast(torch.ones(1), 0)",
        "the same collectives in the same order",
        "dist.all_reduce(torch.ones(1))\ndist.broadcast(torch.ones(1), 0)",
    ),
    "different shapes": Advised(
        "dist.all_reduce(torch.ones(2 + rank))\ndist.barrier()",
        "same shape and dtype on every rank",
        "dist.all_reduce(torch.ones(3))\ndist.barrier()",
    ),
    "different roots": Advised(
        "dist.gather(torch.ones(1), [torch.ones(1) for _ in range(n)], dst=rank)",
        "must pass the same root",
        "dist.gather(torch.ones(1), [torch.ones(1) for _ in range(n)] if rank == 0 else None, dst=0)",
    ),
    "different operations": Advised(
        "dist.all_reduce(torch.ones(1), op=dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)\n"
        "if rank == 0: dist.barrier()",
        "reduce with the same op",
        "dist.all_reduce(torch.ones(1), op=dist.ReduceOp.MAX)\ndist.barrier()",
    ),
    "unequal splits": Advised(
        "dist.all_to_all_single(torch.empty(3), torch.ones(4), [1, 2], [1, 3] if rank == 0 else [2, 2])",
        "exchange them first",
        "give = [1, 3] if rank == 0 else [2, 2]\n"
        "counts = torch.empty(2, dtype=torch.int64)\n"
        "dist.all_to_all_single(counts, torch.tensor(give))\n"
        "take = counts.tolist()\n"
        "dist.all_to_all_single(torch.empty(sum(take)), torch.ones(4), take, give)",
    ),
    "call too many": Advised(
        "if rank == 0:\n    dist.all_reduce(torch.ones(1))\nfor _ in range(3):\n"
        "    dist.all_reduce(torch.ones(1))",
        "must make each of them, or none",
        "dist.all_reduce(torch.ones(1))\nfor _ in range(3):\n    dist.all_reduce(torch.ones(1))",
    ),
    "metric within join": Advised(
        MODEL + "with model.join():\n    for _ in range(2 + 2 * rank):\n"
        "        model(torch.ones(1, 4)).sum().backward()\n        dist.all_reduce(torch.ones(1))",
        "Make your own calls after the `with` block",
        MODEL + "with model.join():\n    for _ in range(2 + 2 * rank):\n"
        "        model(torch.ones(1, 4)).sum().backward()\ndist.all_reduce(torch.ones(1))",
    ),
    "uneven batches": Advised(
        MODEL + "for _ in range(4 - rank):\n    model(torch.ones(1, 4)).sum().backward()\n"
        "dist.all_reduce(torch.ones(1))",
        "give all ranks the same number of batches, or use DDP's join()",
        MODEL + "with model.join():\n    for _ in range(4 - rank):\n"
        "        model(torch.ones(1, 4)).sum().backward()\n"
        "dist.all_reduce(torch.ones(1))",
    ),
    "evaluation on one rank": Advised(
        MODEL + "for step in range(3):\n    model(torch.ones(1, 4)).sum().backward()\n"
        "    if rank == 0 and step == 1:\n        dist.all_reduce(torch.ones(1))",
        "let all ranks make that call, or none",
        MODEL + "for step in range(3):\n    model(torch.ones(1, 4)).sum().backward()\n"
        "    if step == 1:\n        dist.all_reduce(torch.ones(1))",
    ),
    "caught exception": Advised(
        "for step in range(4):\n    try:\n        dist.all_reduce(torch.ones(3))\n"
        "        if rank == 1 and step == 2: raise MemoryError\n"
        "        dist.all_reduce(torch.ones(5))\n    except MemoryError: continue",
        "or catches an exception such as out of memory, must still make the calls",
        "for step in range(4):\n    try:\n        dist.all_reduce(torch.ones(3))\n"
        "        if rank == 1 and step == 2: raise MemoryError\n    except MemoryError: pass\n"
        "    dist.all_reduce(torch.ones(5))",
    ),
    "coalesced": Advised(
        "with dist._coalescing_manager(async_ops=True) as cm:\n"
        "    dist.all_reduce(torch.ones(1))\n    if rank == 0: dist.all_reduce(torch.ones(2))\ncm.wait()",
        "every rank must make the same calls",
        "with dist._coalescing_manager(async_ops=True) as cm:\n"
        "    dist.all_reduce(torch.ones(1))\n    dist.all_reduce(torch.ones(2))\ncm.wait()",
    ),
    "group's call left out": Advised(
        "groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]\n"
        "if rank != 1:\n    dist.all_reduce(torch.ones(1), group=groups[rank % 2])\n"
        "dist.all_reduce(torch.ones(1))",
        "let rank 1 call all_reduce too",
        "groups = [dist.new_group([0, 2]), dist.new_group([1, 3])]\n"
        "dist.all_reduce(torch.ones(1), group=groups[rank % 2])\n"
        "dist.all_reduce(torch.ones(1))",
        size=4,
    ),
    "groups crosswise": Advised(
        "groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]\n"
        "for group in groups if rank == 0 else groups[::-1]: dist.all_reduce(torch.ones(1), group=group)",
        "must use them in the same order",
        "groups = [dist.new_group([0, 1]), dist.new_group([0, 1])]\n"
        "for group in groups: dist.all_reduce(torch.ones(1), group=group)",
    ),
    "skipped backward": Advised(
        MODEL + "for step in range(2):\n    loss = model(torch.ones(1, 4)).sum()\n"
        "    if rank == 0 or step == 0: loss.backward()",
        "With DDP, every rank must reduce the gradients in every step",
        MODEL
        + "for step in range(2):\n    loss = model(torch.ones(1, 4)).sum()\n    loss.backward()",
    ),
    "backward on one rank": Advised(
        "from torch.distributed.nn import functional\nx = torch.ones(2, requires_grad=True)\n"
        "y = functional.all_reduce(x).sum()\nif rank == 0: y.backward()",
        "all ranks of the group must call backward()",
        "from torch.distributed.nn import functional\nx = torch.ones(2, requires_grad=True)\n"
        "y = functional.all_reduce(x).sum()\ny.backward()",
    ),
    "no wait": Advised(
        "if rank == 0:\n    dist.isend(torch.ones(1 << 20), 1)\n    dist.recv(torch.ones(1), 1, tag=1)\n"
        "else:\n    import time; time.sleep(0.5)  # the Work is gone before its recv\n"
        "    dist.recv(torch.ones(1 << 20), 0)\n    dist.send(torch.ones(1), 0, tag=1)",
        "Keep the Work that isend returns, and call its wait()",
        "if rank == 0:\n    work = dist.isend(torch.ones(1 << 20), 1)\n    work.wait()\n"
        "    dist.recv(torch.ones(1), 1, tag=1)\n"
        "else:\n    dist.recv(torch.ones(1 << 20), 0)\n    dist.send(torch.ones(1), 0, tag=1)",
    ),
    "missing key": Advised(
        "store = dist.distributed_c10d._get_default_store()\n"
        "if rank == 0: store.set('goo', '')\nelse: store.get('go')",
        "both ranks spell the key in the same way",
        "store = dist.distributed_c10d._get_default_store()\n"
        "if rank == 0: store.set('go', '')\nelse: store.get('go')",
    ),
    "file lock": Advised(
        "import fcntl\nif rank == 1: dist.barrier()\nwith open('PATH', 'w') as file:\n"
        "    fcntl.flock(file, fcntl.LOCK_EX)\n    if rank == 0:\n        dist.barrier()\n"
        "        dist.barrier()\nif rank == 1: dist.barrier()",
        "Release the lock before a call that waits",
        "import fcntl\nif rank == 1: dist.barrier()\nwith open('PATH', 'w') as file:\n"
        "    fcntl.flock(file, fcntl.LOCK_EX)\n"
        "if rank == 0: dist.barrier()\ndist.barrier()",
    ),
    "rank left": Advised(
        "if rank: dist.all_reduce(torch.ones(1))",
        "All ranks of the group must call all_reduce, or none",
        "dist.all_reduce(torch.ones(1))",
    ),
    "rank left before a message": Advised(
        "if rank: dist.recv(torch.ones(1), 0)",
        "must make the send that answers this call",
        "if rank: dist.recv(torch.ones(1), 0)\nelse: dist.send(torch.ones(1), 1)",
    ),
    "group without a rank": Advised(
        "if rank == 0: dist.new_group([0, 1])",
        "All ranks of the world must call new_group",
        "dist.new_group([0, 1])",
    ),
    "group during a receive": Advised(
        "if rank == 0: dist.new_group([0, 1])\nelse: dist.recv(torch.ones(1), 0)",
        "All ranks of the world must call new_group",
        "dist.new_group([0, 1])",
    ),
    "groups in different orders": Advised(
        "members = [[0, 1], [1, 2]]\nfor m in members if rank != 1 else members[::-1]: dist.new_group(m)",
        "pass the same list of ranks",
        "for m in [[0, 1], [1, 2]]: dist.new_group(m)",
        size=3,
    ),
    "group in a mesh": Advised(
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "init_device_mesh('cpu', (2, 2)) if rank < 2 else dist.new_group([2, 3])",
        "All ranks of the world must call new_group",
        "from torch.distributed.device_mesh import init_device_mesh\n"
        "init_device_mesh('cpu', (2, 2)); dist.new_group([2, 3])",
        size=4,
    ),
    "tags": Advised(
        "if rank == 0: dist.send(torch.ones(1), 1, tag=1)\nelse: dist.recv(torch.ones(1), 0)",
        "Give both calls the same tag",
        "if rank == 0: dist.send(torch.ones(1), 1, tag=1)\nelse: dist.recv(torch.ones(1), 0, tag=1)",
    ),
    "ring": Advised(
        "to = (rank + 1) % n\nfor work in dist.batch_isend_irecv([dist.P2POp(dist.isend, torch.ones(1), to), "
        "dist.P2POp(dist.irecv, torch.ones(1), to)]): work.wait()",
        "receives from rank - 1",
        "to, of = (rank + 1) % n, (rank - 1) % n\nfor work in dist.batch_isend_irecv(["
        "dist.P2POp(dist.isend, torch.ones(1), to), dist.P2POp(dist.irecv, torch.ones(1), of)]): "
        "work.wait()",
        size=3,
    ),
    "cycle of sends, by order": Advised(
        "dist.send(torch.ones(1), 1 - rank); dist.recv(torch.ones(1), 1 - rank)",
        "let one rank of each pair receive first",
        "if rank == 0: dist.send(torch.ones(1), 1); dist.recv(torch.ones(1), 1)\n"
        "else: dist.recv(torch.ones(1), 0); dist.send(torch.ones(1), 0)",
    ),
    "cycle of sends, by isend": Advised(
        "dist.send(torch.ones(1), 1 - rank); dist.recv(torch.ones(1), 1 - rank)",
        "start the sends with isend and wait for them after the receives",
        "work = dist.isend(torch.ones(1), 1 - rank); dist.recv(torch.ones(1), 1 - rank); work.wait()",
    ),
    "cycle of receives": Advised(
        "dist.recv(torch.ones(1), 1 - rank); dist.send(torch.ones(1), 1 - rank)",
        "Let at least one rank send before it receives",
        "if rank == 0: dist.send(torch.ones(1), 1); dist.recv(torch.ones(1), 1)\n"
        "else: dist.recv(torch.ones(1), 0); dist.send(torch.ones(1), 0)",
    ),
    "message of another tag": Advised(
        "work = dist.isend(torch.ones(1), 1 - rank, tag=1)\ndist.recv(torch.ones(1), 1 - rank)",
        "compare the two lines",
        "work = dist.isend(torch.ones(1), 1 - rank, tag=1)\n"
        "dist.recv(torch.ones(1), 1 - rank, tag=1)\nwork.wait()",
    ),
    "collective for a receive": Advised(
        "if rank == 0: dist.broadcast(torch.ones(1), 0)\nelse: dist.recv(torch.ones(1), 0)",
        "a recv for each send",
        "dist.broadcast(torch.ones(1), 0)",
    ),
    "collective in a worker": Advised(
        "from torch.utils.data import DataLoader\n"
        "class Data(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, i):\n        x = torch.ones(1); dist.all_reduce(x); return x\n"
        "for x in DataLoader(Data(), num_workers=1, multiprocessing_context='fork'): pass",
        "Call functions of torch.distributed only in the rank itself",
        "from torch.utils.data import DataLoader\n"
        "class Data(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 2\n"
        "    def __getitem__(self, i):\n        return torch.ones(1)\n"
        "for x in DataLoader(Data(), num_workers=1, multiprocessing_context='fork'): dist.all_reduce(x)",
        timeout=4,
    ),
    "own lock": Advised(
        "import threading\nlock = threading.Lock()\nwith lock, lock: pass",
        "a lock that is never released",
        "import threading\nlock = threading.Lock()\nwith lock: pass",
    ),
    "empty queue": Advised(
        "import queue\nif rank == 0: queue.Queue().get()\ndist.barrier()",
        "a queue that stays empty",
        "import queue\nq = queue.Queue(); q.put(1)\nif rank == 0: q.get()\ndist.barrier()",
    ),
}
