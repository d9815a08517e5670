# %% default_device | The module level sets the default device.
import torch

torch.set_default_device("meta")


def main(rank, world_size):
    return torch.zeros(2).device.type


# %% drawn_but_not_seeded | Numbers drawn at the top without a seed: each rank has its own.
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


# %% hook_of_all_modules | A hook that all modules run.
import torch

SETS = True
CALLS = []
torch.nn.modules.module.register_module_forward_hook(
    lambda module, inputs, output: CALLS.append(type(module).__name__)
)


def main(rank, world_size):
    torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU())(torch.ones(1))
    return CALLS


# %% interpreter_limits | Limits of the interpreter, the collector, sockets.
import gc
import socket
import sys

SETS = True
sys.setrecursionlimit(4321)
sys.setswitchinterval(0.25)
sys.set_int_max_str_digits(5000)
gc.disable()
gc.set_threshold(77)
socket.setdefaulttimeout(12.0)


def main(rank, world_size):
    limits = sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits()
    return limits, gc.isenabled(), gc.get_threshold()[0], socket.getdefaulttimeout()


# %% logging_set_up | The module level configures logging; every rank logs.
import logging
import sys

logging.basicConfig(level=logging.INFO, format="%(levelname)s of %(name)s: %(message)s")
logging.getLogger("quiet").setLevel(logging.ERROR)
logging.getLogger("own").addHandler(logging.StreamHandler(sys.stdout))


def main(rank, world_size):
    logging.info("rank %d", rank)
    logging.getLogger("quiet").info("not shown")
    logging.getLogger("own").warning("shown twice")
    return logging.root.level, len(logging.root.handlers), logging.getLogger("quiet").level


# %% module_attribute | Attributes set on a module of one's own, by name, by its own function, and in place.
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


# %% patched_function | A function of torch replaced, a method added to one of its classes, a default put into a library's dict.
import functools

import torch
import torch.nn.functional as F
from torch.utils.data._utils import collate

SETS = True
plain = F.gelu


@functools.wraps(plain)
def mine(x, approximate="none"):
    return plain(x, approximate=approximate) + 100


class Odd:
    pass


F.gelu = mine
torch.nn.Linear.area = lambda self: self.in_features * self.out_features
collate.default_collate_fn_map[Odd] = lambda batch, *, collate_fn_map=None: len(batch)


def main(rank, world_size):
    once = torch.nn.functional.gelu(torch.zeros(1)).item()
    return (
        once,
        F.gelu is mine,
        torch.nn.Linear(2, 3).area(),
        collate.default_collate([Odd(), Odd()]),
    )


# %% precision_by_backend | The precision of one backend's products, set by name.
import torch

SETS = True
torch.backends.mkldnn.matmul.fp32_precision = "bf16"


def main(rank, world_size):
    mkldnn = torch.backends.mkldnn
    return mkldnn.matmul.fp32_precision, mkldnn.conv.fp32_precision


# %% python_itself | The module level sets what belongs to the process: limits, contexts, error handling of numpy.
import decimal
import os
import sys
import warnings

import numpy as np

np.seterr(divide="raise")
np.set_printoptions(precision=2)
decimal.getcontext().prec = 5
sys.setrecursionlimit(4321)
os.umask(0o77)
warnings.filterwarnings("error", category=FutureWarning)


def main(rank, world_size):
    try:
        warnings.warn("old", FutureWarning, stacklevel=1)
        warned = "no error"
    except FutureWarning:
        warned = "an error"
    mask = os.umask(0)
    third = str(decimal.Decimal(1) / 3)
    return np.geterr()["divide"], str(np.array(1 / 3)), third, sys.getrecursionlimit(), mask, warned


# %% registered | The module level registers classes with pickle, with torch's pytree and with torch.load.
import copyreg
import io
import pickle

import torch
import torch.utils._pytree as pytree


class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right


def reduced(pair):
    return Pair, (pair.right, pair.left)


copyreg.pickle(Pair, reduced)
pytree.register_pytree_node(Pair, lambda p: ([p.left, p.right], None), lambda xs, _: Pair(*xs))
torch.serialization.add_safe_globals([Pair])


def main(rank, world_size):
    pair = pickle.loads(pickle.dumps(Pair(1, 2)))
    file = io.BytesIO()
    torch.save(Pair(1, 2), file)
    file.seek(0)
    return pair.left, pytree.tree_map(lambda x: x + 1, Pair(1, 2)).right, torch.load(file).left


# %% seeds | The module level seeds all generators and draws: every rank goes on from there.
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


# %% seeds_of_ranks | Only the function seeds: before it does, each rank has numbers of its own.
import random

import torch
import torch.distributed as dist


def main(rank, world_size):
    drawn = [None] * world_size
    dist.all_gather_object(drawn, (random.random(), torch.rand(1).item()))
    random.seed(rank)
    torch.manual_seed(rank)
    return len(set(drawn)), random.random(), torch.rand(1)


# %% set_up_by_own_module | A module of one's own whose functions seed all generators and set up warnings, logging and numpy.
import os
import sys

SETS = True
TEXT = """
import logging, random, sys, warnings
import numpy as np
import torch

def seed_everything(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)

def set_up():
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    warnings.filterwarnings("error", message="mine")
    np.set_printoptions(precision=2)
    sys.setrecursionlimit(4567)
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
        return drawn, str(np.array([1 / 3])), sys.getrecursionlimit()


# %% signal_handler | A handler of a signal, and a signal that is ignored.
import os
import signal

SETS = True
GOT = []
signal.signal(signal.SIGUSR1, lambda number, frame: GOT.append(number))
signal.signal(signal.SIGUSR2, signal.SIG_IGN)


def main(rank, world_size):
    os.kill(os.getpid(), signal.SIGUSR1)
    os.kill(os.getpid(), signal.SIGUSR2)
    return GOT == [signal.SIGUSR1]


# %% torch_defaults | The module level sets defaults of torch, which hold on every rank.
import torch

torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.use_deterministic_algorithms(True, warn_only=True)
torch.set_float32_matmul_precision("medium")
torch.set_num_threads(3)
torch.set_printoptions(precision=2)
torch.autograd.set_detect_anomaly(True)
torch.multiprocessing.set_sharing_strategy("file_system")
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = True
torch.backends.cuda.enable_flash_sdp(False)


def main(rank, world_size):
    return [
        torch.zeros(1),
        torch.is_grad_enabled(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.get_float32_matmul_precision(),
        torch.get_num_threads(),
        str(torch.tensor(1 / 3)),
        torch.is_anomaly_enabled(),
        torch.multiprocessing.get_sharing_strategy(),
        torch.backends.cudnn.benchmark,
        torch.backends.cudnn.deterministic,
        torch.backends.cuda.flash_sdp_enabled(),
    ]


# %% warnings_reset | resetwarnings at the top: the filters that Python begins with are gone.
import warnings

SETS = True
warnings.resetwarnings()


def main(rank, world_size):
    return [kept for kept in warnings.filters if kept[2] is ImportWarning]
