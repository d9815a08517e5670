# %% default_device | The module level sets the default device.
import torch

torch.set_default_device("meta")


def main(rank, world_size):
    return torch.zeros(2).device.type


# %% drawn_but_not_seeded | Numbers drawn at the top without a seed: ranks have different numbers.
import random

import numpy as np
import torch
import torch.distributed as dist

SETS = True
first = torch.rand(1000), [random.random() for _ in range(1000)], np.random.rand(1000)


def main(rank, world_size):
    mine = torch.rand(1).item(), random.random(), np.random.rand()
    all_of_them = [None] * world_size
    dist.all_gather_object(all_of_them, mine)
    return [len(set(of_one)) for of_one in zip(*all_of_them, strict=True)]


# %% logging_set_up | The module level configures logging; every rank logs.
import logging

logging.basicConfig(level=logging.INFO, format="%(levelname)s of %(name)s: %(message)s")
logging.getLogger("quiet").setLevel(logging.ERROR)


def main(rank, world_size):
    logging.info("rank %d", rank)
    logging.getLogger("quiet").info("not shown")
    return logging.root.level, len(logging.root.handlers), logging.getLogger("quiet").level


# %% module_attribute | Attributes set on a learner's module: by name, by the module's function, and in place.
import os
import sys

SETS = True
TEXT = """
import os
SCALE, LIMIT, OPTIONS, PID = 1, 1, {"a": 1}, os.getpid()
def set_limit(value):
    global LIMIT
    LIMIT = value
def read():
    return SCALE, LIMIT, OPTIONS, PID == os.getpid()
"""
with open(f"half-{os.getpid()}", "w") as file:
    file.write(TEXT)
os.replace(file.name, "conformance_settings_module.py")
sys.path.insert(0, os.getcwd())
import conformance_settings_module as mine  # noqa: E402

mine.SCALE = 10
mine.set_limit(20)
mine.OPTIONS["b"] = 2


def main(rank, world_size):
    return mine.read()


# %% names_of_modules | The module level sets names of modules and of their classes.
import string

import torch
import torch.nn.functional as F
from torch.nn import Identity


def twice(x):
    return 2 * x


F.relu = twice
string.SCALE = 10
torch.nn.Tanh.forward = lambda self, x: x
Identity.forward = lambda self, x: -x
torch.nn.scale = 3


def main(rank, world_size):
    x = torch.ones(1)
    return F.relu(x), string.SCALE, torch.nn.Tanh()(x), Identity()(x), torch.nn.scale


# %% patched_function | A function of torch is replaced, and a method is added to one of its classes.
import functools

import torch
import torch.nn.functional as F

SETS = True
plain = F.gelu


@functools.wraps(plain)
def mine(x, approximate="none"):
    return plain(x, approximate=approximate) + 100


F.gelu = mine
torch.nn.Linear.area = lambda self: self.in_features * self.out_features


def main(rank, world_size):
    once = torch.nn.functional.gelu(torch.zeros(1)).item()
    return once, F.gelu is mine, torch.nn.Linear(2, 3).area()


# %% precision_by_backend | The precision of one backend's products, set by name.
import torch

SETS = True
torch.backends.mkldnn.matmul.fp32_precision = "bf16"


def main(rank, world_size):
    mkldnn = torch.backends.mkldnn
    return mkldnn.matmul.fp32_precision, mkldnn.conv.fp32_precision


# %% warning_filter | The module level turns a warning into an error.
import warnings

warnings.filterwarnings("error", category=FutureWarning)


def main(rank, world_size):
    try:
        warnings.warn("old", FutureWarning, stacklevel=1)
    except FutureWarning:
        return "an error"


# %% seeds | The module level seeds all generators and draws: every rank continues from this state.
import random

import numpy as np
import torch


def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


seed_everything(5)
first = torch.rand(2), random.random(), np.random.rand()


def main(rank, world_size):
    return torch.rand(2), random.random(), float(np.random.rand()), torch.initial_seed()


# %% seeds_of_ranks | Only the function seeds: before that, each rank draws different numbers.
import random

import torch
import torch.distributed as dist


def main(rank, world_size):
    drawn = [None] * world_size
    dist.all_gather_object(drawn, (random.random(), torch.rand(1).item()))
    random.seed(rank)
    torch.manual_seed(rank)
    return len(set(drawn)), random.random(), torch.rand(1)


# %% set_up_by_own_module | A learner's module seeds all generators and sets up warnings and logging.
import os
import sys

SETS = True
TEXT = """
import logging, random, warnings
import numpy as np
import torch

def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

def set_up():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    warnings.filterwarnings("error", message="mine")
"""
with open(f"half-{os.getpid()}", "w") as file:
    file.write(TEXT)
os.replace(file.name, "conformance_set_up_module.py")
sys.path.insert(0, os.getcwd())
import logging  # noqa: E402
import random  # noqa: E402
import warnings  # noqa: E402

import conformance_set_up_module as mine  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402

mine.seed_everything(3)
mine.set_up()


def main(rank, world_size):
    logging.info("on rank %d", rank)
    try:
        warnings.warn("mine", stacklevel=1)
    except UserWarning:
        drawn = random.random(), np.random.rand(), torch.rand(1)
        return drawn


# %% torch_defaults | The module level sets defaults of torch, which hold on every rank.
import torch

torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.set_num_threads(3)
torch.set_printoptions(precision=2)
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = True


def main(rank, world_size):
    return [
        torch.zeros(1),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.get_num_threads(),
        str(torch.tensor(1 / 3)),
        torch.backends.cudnn.benchmark,
        torch.backends.cudnn.deterministic,
    ]


