# %% deterministic_algorithms | use_deterministic_algorithms and the flags of the backends.
import torch


def main(rank, world_size):
    torch.use_deterministic_algorithms(True)
    torch.backends.mkldnn.deterministic = True
    torch.set_float32_matmul_precision("high")
    on = torch.are_deterministic_algorithms_enabled()
    return on, torch.backends.cudnn.is_available(), torch.get_float32_matmul_precision()


# %% dropout_unseeded | Dropout without a seed drops different elements on each rank.
import torch
import torch.distributed as dist


def main(rank, world_size):
    y = torch.nn.functional.dropout(torch.ones(64), p=0.5)
    every = [torch.empty(64) for _ in range(world_size)]
    dist.all_gather(every, y)
    return torch.equal(every[0], every[1])


# %% generator_state | The state of the generator is saved and restored.
import torch


def main(rank, world_size):
    torch.manual_seed(rank)
    state = torch.get_rng_state()
    first = torch.rand(3)
    torch.set_rng_state(state)
    with torch.random.fork_rng():
        torch.rand(100)
    return torch.equal(first, torch.rand(3))


# %% hash_of_text | hash() of a text differs between processes under torchrun.
import torch.distributed as dist

LIKE = "torchrun"
DIFFERS = {
    "untraced": ([1, 1], "an interpreter draws its hash seed as it starts; forked ranks share one"),
    "launch": ([1, 1], "an interpreter draws its hash seed as it starts; forked ranks share one"),
    "ranks": ([1, 1], "an interpreter draws its hash seed as it starts; forked ranks share one"),
    "script": ([1, 1], "an interpreter draws its hash seed as it starts; forked ranks share one"),
}


def main(rank, world_size):
    seen = [None] * world_size
    dist.all_gather_object(seen, hash("the same text"))
    return len(set(seen))


# %% initial_seeds | torch's initial seed differs from rank to rank.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    seeds = [None] * world_size
    dist.all_gather_object(seeds, torch.initial_seed())
    return len(set(seeds))


# %% numpy_unseeded | Ranks without a seed draw different numbers from numpy.
import numpy as np
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    drawn = [None] * world_size
    dist.all_gather_object(drawn, (np.random.rand(), np.random.default_rng().random()))
    return [len({d[i] for d in drawn}) for i in range(2)]


# %% python_unseeded | Ranks draw different numbers from random, secrets, uuid and os.urandom.
import os
import random
import secrets
import uuid

import torch.distributed as dist


def main(rank, world_size):
    mine = (random.random(), secrets.token_hex(8), str(uuid.uuid4()), os.urandom(8))
    drawn = [None] * world_size
    dist.all_gather_object(drawn, mine)
    return [len(set(column)) for column in zip(*drawn, strict=True)]


# %% seed_by_rank | Seeds that depend on the rank, in all three libraries.
import random

import numpy as np
import torch


def main(rank, world_size):
    torch.manual_seed(rank)
    np.random.seed(rank)
    random.seed(rank)
    return torch.rand(2), np.random.rand(2), random.random()


# %% seed_from_rank_zero | Rank 0 draws a seed and broadcasts it, so all ranks draw the same numbers.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    seed = torch.randint(0, 2**31, (1,))
    dist.broadcast(seed, src=0)
    torch.manual_seed(seed.item())
    drawn = [None] * world_size
    dist.all_gather_object(drawn, torch.rand(1).item())
    return len(set(drawn))


# %% seeded_torch | manual_seed: the same numbers everywhere.
import torch


def main(rank, world_size):
    torch.manual_seed(1234)
    return torch.rand(3), torch.randn(2), torch.randperm(6), torch.randint(0, 100, (4,))


# %% set_seed | The usual set_seed of a project, with its lines on cudnn.
import os
import random

import numpy as np
import torch


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    os.environ["PYTHONHASHSEED"] = str(seed)


def main(rank, world_size):
    set_seed(42)
    return torch.rand(1), random.random(), np.random.rand()


# %% torch_unseeded | Ranks without a seed draw different numbers from torch.
import torch
import torch.distributed as dist

WORLD_SIZE = 3


def main(rank, world_size):
    drawn = [None] * world_size
    dist.all_gather_object(drawn, torch.rand(1).item())
    return {"all differ": len(set(drawn)) == world_size}
