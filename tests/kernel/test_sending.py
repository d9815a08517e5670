"""Definitions of a notebook's cells reach the ranks as in a script, or are refused with an explanation."""

from __future__ import annotations

import re

import pytest

from tests.kernel.session import Kernel

SLOW = dict.fromkeys(
    ("a switch of torch.backends", "compiled functions and modules"), pytest.mark.extended
)
SENT = {
    "a switch of torch.backends": """
def f(rank, n):
    torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark = True, False
    return torch.backends.cudnn.deterministic, torch.backends.mkldnn.is_available() in (True, False)
""",
    "modules that do not exist, under names of their own": """
import torch.backends.cudnn as cudnn
import torch.nn.functional as F
aten, matmul = torch.ops.aten, torch.backends.cuda.matmul
add, of_tensors = torch.ops.aten.add, torch.ops.aten.add.Tensor
def f(rank, n):
    cudnn.benchmark, matmul.allow_tf32 = True, False
    one = torch.ones(1)
    assert aten.add(one, 1) == add(one, 1) == of_tensors(one, one) == F.relu(one + 1)
    return torch.classes.__name__, torch.special.expit(one).shape, torch.version.__version__
""",
    "packages whose submodules the code names": """
import numpy as np, logging, concurrent.futures, matplotlib, os.path
def f(rank, n):
    np.random.seed(0)
    logging.getLogger("mine").setLevel(logging.INFO)
    return np.random.rand(), os.path.join("a", "b"), matplotlib.__version__, concurrent.futures.__name__
""",
    "a module made by hand": """
import sys, types
made = types.ModuleType("made"); sys.modules["made"] = made
exec("class A: pass\\ndef g(): return 42, A()", made.__dict__)
def f(rank, n):
    return made.g()[0]
""",
    "compiled functions and modules": """
from functools import partial
@torch.compile(backend="eager", fullgraph=True)
def twice(x): return 2 * x
@torch.compile(backend=lambda graph, inputs: graph.forward)
def thrice(x): return 3 * x
inductor = torch.compile(lambda x: x, mode="default", dynamic=True)
module = torch.compile(torch.nn.Linear(2, 2), backend="eager")
@torch.compiler.disable
def never(x): return x
def f(rank, n):
    assert type(module).__name__ == "OptimizedModule" and inductor._torchdynamo_orig_callable
    assert never._torchdynamo_disable
    return twice(torch.ones(1)).item() + thrice(torch.ones(1)).item(), module(torch.ones(2)).shape
""",
    "scripted functions and modules": """
import inspect
f0 = "def half(x: torch.Tensor):\\n    return x / 2"
open("half_of_it.py", "w").write("import torch\\n@torch.jit.script\\n" + f0)
import sys; sys.path.insert(0, ".")
from half_of_it import half
traced = torch.jit.trace(torch.nn.Linear(2, 2), torch.ones(2))
def f(rank, n):
    return half(torch.ones(1)), traced(torch.ones(2)).shape
""",
    "caches of functools, with locks and weak references inside": """
import functools
@functools.cache
def fib(k): return k if k < 2 else fib(k - 1) + fib(k - 2)
@functools.lru_cache(maxsize=3, typed=True)
def bounded(x): return x
@functools.singledispatch
def kind(x): return "any"
@kind.register
def _(x: int): return "int"
class C:
    @functools.cached_property
    def slow(self): return 9
    @functools.lru_cache
    def cached(self, k): return k
fib(5)
def f(rank, n):
    assert fib.cache_info().currsize == 0 and bounded.cache_parameters() == {"maxsize": 3, "typed": True}
    return fib(20), bounded(1), kind(1), kind("a"), C().slow, C().cached(3)
""",
    "locks and values of threads, of which a script has its own": """
import threading, queue
lock, again, local, waiting = threading.Lock(), threading.RLock(), threading.local(), queue.Queue()
local.x = 3
class Registry:
    _lock = threading.Lock()
lock.acquire()
def f(rank, n):
    with lock, again, Registry._lock:
        waiting.put(local.x)
    return waiting.get()
""",
    "pools and context variables, of which a script has its own": """
import contextvars, logging, sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
threads = ThreadPoolExecutor(3, thread_name_prefix="mine")
processes = ProcessPoolExecutor(1)
plain, given = contextvars.ContextVar("plain"), contextvars.ContextVar("given", default=1)
changed = contextvars.ContextVar("changed", default=1)
changed.set([2])
def square(x): return x * x
threads.submit(square, 1).result()
out = sys.stderr
def f(rank, n):
    name = threads.submit(lambda: __import__("threading").current_thread().name).result()
    assert name.startswith("mine") and threads._max_workers == 3 and out is sys.stderr
    assert processes.submit(square, 3).result() == 9
    try:
        plain.get()
    except LookupError:
        return given.get(), changed.get(), changed.name
    raise AssertionError("plain has a value")
""",
    "callables of every kind": """
import functools, contextlib, operator
class Trainer:
    def __init__(self): self.lr = 1
    def run(self, rank, n, *more): return rank + self.lr
    def __call__(self, rank, n): return self.run(rank, n)
def logged(fn):
    @functools.wraps(fn)
    def inner(*args, **kwargs): return fn(*args, **kwargs)
    return inner
@logged
def whole(rank, n): return rank
@torch.no_grad()
def without(rank, n): return torch.ones(1).requires_grad
@contextlib.contextmanager
def three(): yield 3
def within(rank, n):
    with three() as x: return x
for each in (Trainer(), whole, without, within, functools.partial(Trainer().run), functools.cache(whole)):
    launch(each, 2)
f = Trainer().run
""",
    "types of every kind": """
import typing, enum, dataclasses, collections
T, P, Id = typing.TypeVar("T"), typing.ParamSpec("P"), typing.NewType("Id", int)
class Box(typing.Generic[T]):
    def __init__(self, value: T): self.value = value
class Meta(type): pass
class Made(metaclass=Meta): pass
class Point(typing.NamedTuple): x: int
class Shape(typing.TypedDict): x: int
class Has(typing.Protocol):
    def go(self) -> int: ...
Alias = typing.Callable[P, T] | None
def f(rank: int, n: "Alias") -> dict[str, Box[int]]:
    x: Id = Id(3)
    return x, Box(1).value, Made.__name__, Point(1), Shape(x=1), Has.__name__, str(Alias)
""",
    "values of every kind": """
import random, re, pathlib, datetime, itertools, collections, logging
import numpy as np
log, text, place = logging.getLogger("mine"), re.compile("a+"), pathlib.Path("a")
of_torch, of_numpy, of_python = torch.Generator().manual_seed(1), np.random.default_rng(1), random.Random(1)
net = torch.nn.Linear(2, 1); net.register_forward_hook(lambda m, i, o: 2 * o)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
class Rows(torch.utils.data.Dataset):
    def __len__(self): return 4
    def __getitem__(self, i): return i
rows = torch.utils.data.DataLoader(Rows(), batch_size=2)
odd = [torch.eye(2).to_sparse(), torch.ones(1, device="meta"), torch.ones(1, requires_grad=True) * 2]
def f(rank, n):
    net(torch.ones(2)).sum().backward(); optimizer.step()
    torch.rand(1, generator=of_torch), of_numpy.random(), of_python.random()
    return len(list(rows)), odd[0].to_dense(), odd[1].shape, log.name, text.match("aa").group(), place.name
""",
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("what", [pytest.param(what, marks=SLOW.get(what, ())) for what in SENT])
def test_sends_every_object_usable_in_scripts(kernel: Kernel, what: str) -> None:
    cell = kernel.run(f"{SENT[what]}\nlaunch(f, 2)")
    assert not cell.error, cell.message


def test_shares_manager_objects_with_ranks(kernel: Kernel) -> None:
    cell = """
import multiprocessing
with multiprocessing.Manager() as manager:
    table, names = manager.dict(), manager.list()
    def f(rank, n):
        table[rank] = rank * 10
        names.append("name")
        dist.barrier()
        return len(names)
    values = launch(f, 2).values
    print(values, sorted(table.items()))"""
    assert kernel.value(cell) == "[2, 2] [(0, 0), (1, 10)]\n"


REFUSED = {
    "an open file": (
        "out = open('x.txt', 'w')",
        "out",
        "an open file .*Open it inside the function",
    ),
    "a file in an object": (
        "class Log:\n    def __init__(self): self.out = open('x.txt', 'w')\nlog = {'a': [Log()]}",
        "log",
        r"log\['a'\]\[0\].out is an open file",
    ),
    "a socket": ("import socket\ns = socket.socket()", "s", "an open socket"),
    "a generator": ("rows = (i for i in [1])", "rows", "a generator .*Send a list"),
    "a coroutine": ("async def go(): pass\nwork = go()", "work", r"a coroutine .*asyncio.run"),
    "a thread": ("import threading\nt = threading.Thread(target=print)", "t", "Start it inside"),
    "a generator that has begun": (
        "def rows():\n    yield 1\n    yield 2\nr = rows(); next(r)",
        "r",
        "a generator .*create it inside your function",
    ),
    "a queue for results": (
        "import multiprocessing as mp\nq = mp.Queue()",
        "q",
        r"Return values from the function instead: they are in launch\(...\).values\[rank\]",
    ),
    "shared memory": (
        "import multiprocessing as mp\ncount = mp.Value('i', 0)",
        "count",
        r"after x\.share_memory_\(\), each change of x is seen",
    ),
    "a loop that has begun": (
        "from torch.utils.data import DataLoader\nrows = iter(DataLoader([1, 2]))",
        "rows",
        r"write iter\(loader\) inside the function",
    ),
    "a weak reference of an own kind": (
        "import weakref\nclass A: pass\nclass Ref(weakref.ref): pass\na = A(); w = Ref(a)",
        "w",
        "Send the object itself",
    ),
    "a loop over batches that has begun": (
        "from torch.utils.data import DataLoader\nrows = enumerate(DataLoader([1, 2]))",
        "rows",
        r"an iterator in rows is an iterator over a DataLoader .*write iter\(loader\)",
    ),
    "a file that a hook uses": (
        "net = torch.nn.Sequential(torch.nn.Linear(1, 1)); out = open('x.txt', 'w')\n"
        "net[0].weight.register_hook(lambda gradient: print(gradient, file=out))",
        "net",
        "out is an open file",
    ),
    "a file that an optimizer's hook uses": (
        "steps = torch.optim.SGD(torch.nn.Linear(1, 1).parameters()); out = open('x.txt', 'w')\n"
        "steps.register_step_post_hook(lambda *args: print(args, file=out))",
        "steps",
        "out is an open file",
    ),
    "a node of a graph": (
        "node = (torch.ones(1, requires_grad=True) * 2).grad_fn",
        "node",
        "a node of a graph .*Compute the tensor in the function",
    ),
    "a group": (
        "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
        "group = dist.new_group([0]); dist.destroy_process_group()",
        "group",
        r"a process group.*with dist\.new_group\(\)",
    ),
    "a scaler in the middle of a step": (
        "scaler = torch.amp.GradScaler('cpu'); p = torch.nn.Parameter(torch.ones(1))\n"
        "steps = torch.optim.SGD([p]); scaler.scale(p.sum()).backward(); scaler.unscale_(steps)",
        "scaler",
        r"at the end after scaler\.update\(\)",
    ),
    "the notebook": ("shell = get_ipython()", "shell", "ranks have no notebook"),
    "a database": ("import sqlite3\nd = sqlite3.connect(':memory:')", "d", "an open database"),
}


@pytest.mark.extended
@pytest.mark.parametrize("what", REFUSED)
def test_unsendable_variable_error_suggests_remedy(kernel: Kernel, what: str) -> None:
    source, name, says = REFUSED[what]
    cell = kernel.run(f"{source}\ndef f(rank, n):\n    x = rank\n    return {name}\nlaunch(f, 2)")
    assert cell.error == "CannotSend"
    assert re.search(f"{name} cannot be sent to the ranks: .*{says}", cell.message), cell.message
    assert re.search(rf"used by f at cell \[\d+\], line \d+: return {name}", cell.message)
    if "file" not in what and what != "a socket":
        assert "socket" not in cell.message and "open file" not in cell.message


LINKED = {
    "a hook of an argument": (
        """
m = torch.nn.Linear(1, 1, bias=False)
m.weight.register_post_accumulate_grad_hook(lambda p: dist.all_reduce(p.grad))
def f(rank, n, m):
    m(torch.full((1, 1), rank + 1.0)).sum().backward()
    return m.weight.grad.item()
launch(f, 2, args=(m,))""",
        "3.0",
    ),
    "two views as arguments": (
        """
buffer = torch.zeros(3)
def f(rank, n, left, right):
    left.fill_(5)
    return right.tolist(), buffer.tolist()
launch(f, 2, args=(buffer[:2], buffer[1:]))""",
        "([5.0, 0.0], [5.0, 5.0, 0.0])",
    ),
    "two views as arguments of each rank": (
        """
def g(rank, n, left, right):
    left.fill_(5)
    return right.tolist()
one, two = torch.zeros(3), torch.zeros(3)
launch(g, 2, per_rank=[(one[:2], one[1:]), (two[:2], two[1:])])""",
        "[5.0, 0.0]",
    ),
    "an optimizer of each rank": (
        """
net = torch.nn.Linear(1, 1, bias=False); net.weight.data.fill_(1.0)
optimizer = torch.optim.SGD(net.parameters(), 0.5)
def f(rank, n, model, optimizer):
    model(torch.ones(1, 1)).sum().backward(); optimizer.step()
    return net.weight.item(), model is net
launch(f, 2, args=(net,), per_rank=[(optimizer,)] * 2)""",
        "(0.5, True)",
    ),
    "arrays of numpy that are arguments of each rank": (
        """
import numpy as np
rows = np.zeros(4); tensor = torch.from_numpy(rows)
def f(rank, n, mine):
    mine[:] = 1
    dist.all_reduce(tensor)
    return rows.tolist()
launch(f, 2, per_rank=[(rows[:2],), (rows[2:],)])""",
        "[1.0, 1.0, 1.0, 1.0]",
    ),
    "an array of memory that the notebook shares": (
        """
shared = torch.zeros(2).share_memory_(); seen = shared.numpy()
def f(rank, n):
    shared[rank] = 1; dist.barrier()
    return seen.tolist(), shared.is_shared()
run = launch(f, 2)
assert seen.tolist() == [1, 1]
run""",
        "([1.0, 1.0], True)",
    ),
    "an object of a function and its argument": (
        """
box = []
def f(rank, n, mine, own):
    mine.append(own)
    return own is mine, len(box)
launch(f, 2, args=(box,), per_rank=[(box,), (box,)])""",
        "(True, 1)",
    ),
}


@pytest.mark.parametrize("source, value", LINKED.values(), ids=LINKED)
def test_keeps_links_between_arguments(kernel: Kernel, source: str, value: str) -> None:
    shown = kernel.value(source)
    assert f"rank 0 → {value}\nrank 1 → {value}\n" in shown


def test_keeps_links_between_sent_names(kernel: Kernel) -> None:
    kernel.value(
        """
import numpy as np
net = torch.nn.Linear(1, 1, bias=False); bucket = torch.zeros(1)
net.weight.grad = bucket.view(1, 1)
handle = net.weight.register_hook(lambda gradient: gradient * 10)
optimizer = torch.optim.SGD(net.parameters(), 0.1); rows = np.zeros(2); tensor = torch.from_numpy(rows)"""
    )
    shown = kernel.value(
        """%%ranks 2 --send net,bucket,handle,optimizer,rows,tensor
net(torch.full((1, 1), rank + 1.0)).sum().backward()
dist.all_reduce(bucket); tensor.add_(1); handle.remove()
net.weight.grad.item(), rows.tolist(), len(net.weight._backward_hooks), (
    optimizer.param_groups[0]["params"][0] is net.weight)"""
    )
    assert shown.count("(30.0, [1.0, 1.0], 0, True)") == 2


def test_new_hooks_keep_existing_hooks(kernel: Kernel) -> None:
    kernel.value(
        "net = torch.nn.Linear(1, 1, bias=False); net.weight.data.fill_(1.0)\n"
        "for k in range(50): net.register_forward_hook(lambda module, args, out: out + 1)"
    )
    shown = kernel.value(
        "%%ranks 2 --send net\n"
        "for k in range(50): net.register_forward_hook(lambda module, args, out: out + 1)\n"
        "net(torch.ones(1, 1)).item(), len(net._forward_hooks)"
    )
    assert shown.count("(101.0, 100)") == 2


def test_sends_loader_with_started_workers(kernel: Kernel) -> None:
    shown = kernel.value(
        """
loader = torch.utils.data.DataLoader(
    list(range(4)), 2, num_workers=1, persistent_workers=True, multiprocessing_context="fork")
assert len(list(loader)) == 2
def f(rank, n):
    return [batch.tolist() for batch in loader], loader.num_workers
run = launch(f, 2)
loader._iterator._shutdown_workers(); loader._iterator = None
run"""
    )
    assert shown.count("([[0, 1], [2, 3]], 1)") == 2


def test_notes_globally_registered_hooks(kernel: Kernel) -> None:
    cell = kernel.run(
        """
from torch.optim.optimizer import register_optimizer_step_post_hook
handle = register_optimizer_step_post_hook(lambda *args: None)
others = torch.nn.modules.module.register_module_forward_pre_hook(lambda *args: None)
print(launch(lambda rank, n: None, 2).notes)
handle.remove(); others.remove()"""
    )
    assert "register_module_forward_pre_hook(), register_optimizer_step_post_hook()" in cell.text


def test_error_mentions_graph_of_notebook(kernel: Kernel) -> None:
    kernel.value("w = torch.ones(2, requires_grad=True); y = w * 3; y.retain_grad()")
    same = (
        "launch(lambda rank, n: (y.tolist(), y.is_leaf, y.retains_grad, (y * 2).sum().item()), 2)"
    )
    assert kernel.value(same).count("([3.0, 3.0], False, True, 12.0)") == 2
    cell = kernel.run("launch(lambda rank, n: (y + w).sum().backward(), 2)")
    assert "y was computed in the notebook" in cell.message and "after .detach()" in cell.message
    cell = kernel.run("%%ranks 2 --send y\ny.sum().backward()")
    assert "y was computed in the notebook" in cell.message
    nested = "parts = [y.view(2, 1)]\nlaunch(lambda rank, n: parts[0].sum().backward(), 2)"
    assert "A tensor of shape (2, 1) was computed" in kernel.run(nested).message


def test_runs_no_code_of_tensor_subclasses(kernel: Kernel) -> None:
    shown = kernel.value(
        """
class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        if "hook" in str(function) or "view_as" in str(function): print("called", function)
        return super().__torch_function__(function, types, args, kwargs or {})
with torch._C.DisableTorchFunctionSubclass():
    loud = torch.ones(2).as_subclass(Loud).requires_grad_()
    handle = loud.register_hook(lambda gradient: gradient * 2)
def f(rank, n):
    with torch.enable_grad():
        loud.sum().backward()
    return loud.grad.as_subclass(torch.Tensor).tolist(), type(loud).__name__, loud.is_leaf
with torch.inference_mode():
    run = launch(f, 1)
run"""
    )
    assert "([2.0, 2.0], 'Loud', True)" in shown and "called" not in shown


MAIN = """
import copy, dataclasses, enum, functools, io, multiprocessing, pickle, sys, inspect
@dataclasses.dataclass
class Setting:
    lr: float = 0.1
class Color(enum.Enum):
    RED = 1
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
class Mine(ValueError): pass
@functools.cache
def double(x): return 2 * x
def square(x): return x * x
count = 0
def more():
    global count
    count += 1
"""


def test_ranks_pickle_definitions_of_cells(kernel: Kernel) -> None:
    shown = kernel.value(
        MAIN
        + """
def f(rank, n):
    for thing in (Setting(), Color.RED, Net(), Mine("a"), double, square, Net):
        again = pickle.loads(pickle.dumps(thing))
        copy.deepcopy(thing)
        out = [None] * n
        dist.all_gather_object(out, thing)
        assert type(out[1 - rank]) is type(again) is type(thing)
    file = io.BytesIO()
    torch.save(Net(), file)
    queue = multiprocessing.get_context("fork").Queue()
    queue.put(Setting())
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(square, [1, 2, 3]), queue.get(timeout=9).lr
launch(f, 2)"""
    )
    assert shown.count("([1, 4, 9], 0.1)") == 2


def test_rank_pickles_class_of_argument(kernel: Kernel) -> None:
    shown = kernel.value(
        MAIN
        + "launch(lambda rank, n, net: len(__import__('pickle').dumps(net)) > 0, 2, args=(Net(),))"
    )
    assert shown.count("True") == 2


def test_functions_share_globals_of_rank_main(kernel: Kernel) -> None:
    shown = kernel.value(
        MAIN
        + """
def f(rank, n):
    more(); more()
    main = sys.modules["__main__"]
    return count, main.count, globals()["count"], main.__dict__ is globals(), "rank" in globals()
launch(f, 2)"""
    )
    assert shown.count("(2, 2, 2, True, False)") == 2
    assert kernel.value("count") == "0\n"


def test_sent_functions_leave_rank_variables_unchanged(kernel: Kernel) -> None:
    kernel.value("%%ranks 2\nfactor = 10 + rank")
    kernel.value("factor = 3\nclass K: pass\ndef by_factor(x): return x * factor, K")
    shown = kernel.value("%%ranks 2 --send by_factor\nby_factor(2)[0], factor")
    assert shown == "rank 0 → (6, 10)\nrank 1 → (6, 11)\n"
    shown = kernel.value(
        "%%ranks 2\nimport pickle\nlen(pickle.dumps([by_factor, by_factor(1)[1]])) > 0"
    )
    assert shown.count("True") == 2


def test_ranks_show_source_lines_of_cells(kernel: Kernel) -> None:
    kernel.value("import inspect, traceback, warnings\ndef helper():\n    warnings.warn('careful')")
    shown = kernel.value(
        "def f(rank, n):\n    helper()\n    try:\n        1 / 0  # a remark\n    except ZeroDivisionError:"
        "\n        traceback.print_exc()\n    print(inspect.getsource(helper))\nlaunch(f, 1)"
    )
    assert "1 / 0  # a remark" in shown and "def helper():" in shown
    assert "], line 3: UserWarning: careful" in shown and "cell [" in shown
    assert "/456" not in shown.split("UserWarning")[0].splitlines()[-1]
    shown = kernel.value("%%ranks 1\nimport warnings\nwarnings.warn('here too')")
    assert "], line 3: UserWarning: here too" in shown


def test_sent_functions_read_later_values(kernel: Kernel) -> None:
    kernel.value(
        "data = [1]\ndef f(): return data[0]\nclass Reads:\n    def g(self): return data[0]"
    )
    assert "rank 0 → (1, 1)" in kernel.value("%%ranks 2 --send data,f,Reads\nf(), Reads().g()")
    kernel.value("data = [5]")
    assert "rank 0 → (5, 5)" in kernel.value("%%ranks 2 --send data\nf(), Reads().g()")


@pytest.mark.extended
def test_reports_changed_module_file_once(kernel: Kernel) -> None:
    write = "open('of_mine.py', 'w').write('x = {0}'); os.utime('of_mine.py', (1, {0}))"
    kernel.value(write.format(1))
    kernel.value("import of_mine")
    uses = "launch(lambda rank, n: of_mine.x, 2)"
    unchanged = kernel.value("%%ranks 2\nimport of_mine\n1") + kernel.value(uses)
    assert "has changed" not in unchanged
    kernel.value(write.format(2))
    live = kernel.value("%%ranks 2\nof_mine.x")
    assert "rank 0 → 1" in live and "of_mine.py has changed. These ranks keep" in live
    new = kernel.value(uses)
    assert "rank 0 → 2" in new and "importlib.reload(of_mine)" in new
    assert "has changed" not in kernel.value("%%ranks 2\nof_mine.x") + kernel.value(uses)
