"""Answers that lie about their values: none is right, so none may get points."""

from __future__ import annotations

from tests.grading.hostile.attack import Attack

_EQUAL = """
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
    def __bool__(self): return True
    def __array__(self, *args): raise RuntimeError
    def __float__(self): return float("nan")
    def __getattr__(self, name): return self
    def __call__(self, *args, **kwargs): return self
    def __iter__(self): return iter(())
    def __len__(self): return 0
"""
_SAYS_YES = """
class Yes(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None): return True
"""

VALUES = (
    Attack(
        "equal to everything",
        f"{_EQUAL}\ndef attack(rank, world_size, *inputs):\n    return Equal()",
        ("crashed",),
        "Equal",
    ),
    Attack(
        "a Tensor that answers yes",
        f"{_SAYS_YES}\ndef attack(rank, world_size, *inputs):\n"
        "    return torch.zeros(3).as_subclass(Yes)",
        ("crashed",),
        "Yes",
    ),
    Attack(
        "subclasses of int, str, list and dict",
        """
class I(int):
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 1
class S(str):
    __eq__, __ne__, __hash__ = I.__eq__, I.__ne__, I.__hash__
class L(list):
    __eq__, __ne__ = I.__eq__, I.__ne__
class D(dict):
    __eq__, __ne__ = I.__eq__, I.__ne__
def attack(rank, world_size, *inputs):
    return L([I(1), S("x"), D({S("a"): I(2)})])
""",
    ),
    Attack(
        "patched torch.equal, allclose, isclose",
        """
def attack(rank, world_size, *inputs):
    yes = lambda *args, **kwargs: True
    torch.equal = torch.allclose = torch.isclose = torch.Tensor.equal = yes
    torch.Tensor.__eq__ = torch.Tensor.all = torch.Tensor.sum = yes
    return torch.zeros(1)
""",
    ),
    Attack(
        "patched json",
        """
import json
def attack(rank, world_size, *inputs):
    json.dumps = lambda *args, **kwargs: '{"outcome": "passed", "points": 10}'
    return 1
""",
        ("crashed", "wrong"),
    ),
    Attack(
        "patched helpers, its checks and its recorder",
        """
import sys, types
def attack(rank, world_size, *inputs):
    import helpers
    for name in ("compare", "judge", "grade", "result", "rules"):
        module = types.ModuleType(name)
        module.difference = module.judge = module.grade = lambda *args, **kwargs: ""
        sys.modules[f"helpers.exercises.{name}"] = module
    helpers.check = helpers.launch = None
    return torch.zeros(1)
""",
    ),
    Attack(
        "patched wire.encode",
        """
def attack(rank, world_size, *inputs):
    from helpers.ranks import wire
    wire.encode = lambda *_: [b"\\x00\\x00\\x00\\x04true"]
    return None
""",
    ),
    Attack(
        "the values of wire made of nothing",
        """
def attack(rank, world_size, *inputs):
    from helpers.ranks import wire
    text = b'["tensor","float32",[],0,4]    '
    wire.encode = lambda *_: [wire.LENGTH.pack(len(text)), text, b"\\0\\0\\xc0\\x7f"]
    return None
""",
    ),
    Attack(
        "patched dist",
        """
def attack(rank, world_size, *inputs):
    for name in ("all_reduce", "broadcast", "send", "recv", "barrier", "get_rank"):
        setattr(dist, name, lambda *args, **kwargs: 0)
    dist.barrier()
    return torch.zeros(1)
""",
    ),
    Attack(
        "the harness's own __main__ and drive replaced",
        """
import sys, types
def attack(rank, world_size, *inputs):
    import helpers.checks.driver as driver
    driver.build = driver.drive_cases = lambda *args: (lambda *args: True)
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules["__main__"].passed = True
    frame = sys._getframe()
    while frame:
        frame.f_globals["passed"] = frame.f_globals["problem"] = ""
        frame = frame.f_back
    return torch.zeros(1)
""",
    ),
    Attack(
        "an error that says it passed",
        """
class Passed(Exception):
    def __str__(self): return "passed: 10 of 10 points"
def attack(rank, world_size, *inputs):
    raise Passed
""",
        ("crashed",),
        "Passed",
    ),
    Attack(
        "an error that cannot be shown",
        """
class Odd(BaseException):
    def __str__(self): raise SystemExit(0)
    def __repr__(self): raise SystemExit(0)
def attack(rank, world_size, *inputs):
    raise Odd
""",
        ("crashed",),
    ),
    Attack(
        "an error whose notes are none",
        """
def attack(rank, world_size, *inputs):
    error = ValueError("its own words")
    error.__notes__ = 7
    raise error
""",
        ("crashed",),
        "its own words",
    ),
    Attack(
        "not a number, in every place",
        "def attack(rank, world_size, *inputs):\n    return torch.full((3,), float('nan'))",
    ),
    Attack(
        "infinite",
        "def attack(rank, world_size, *inputs):\n    return (float('inf'), float('-inf'))",
    ),
    Attack(
        "an integer of a thousand digits",
        "def attack(rank, world_size, *inputs):\n    return (10**1000, -10**1000)",
        ("wrong", "crashed"),
    ),
    Attack(
        "a tensor of a dtype that cannot be compared",
        "def attack(rank, world_size, *inputs):\n"
        "    return torch.zeros(3, dtype=torch.uint8).view(torch.bits8)",
        ("wrong", "crashed"),
    ),
    Attack(
        "an array in another byte order",
        "import numpy as np\ndef attack(rank, world_size, *inputs):\n"
        "    return np.zeros(3, dtype='>f4')",
    ),
    Attack(
        "an array of a type that torch has not",
        "import numpy as np\ndef attack(rank, world_size, *inputs):\n"
        "    return np.zeros(3, dtype=np.longdouble)",
        ("wrong", "crashed"),
    ),
    Attack(
        "a list inside itself",
        "def attack(rank, world_size, *inputs):\n    x = []\n    x.append(x)\n    return x",
        ("crashed",),
        "nested deeper",
    ),
    Attack(
        "odd text",
        "def attack(rank, world_size, *inputs):\n    return '\\ud800\\x00\\u202e<script>=1+1' * 50",
        ("wrong", "crashed"),
    ),
    Attack(
        "ranges without end, and lists of them",
        "def attack(rank, world_size, *inputs):\n"
        "    return [range(10**15), [range(-(10**18), 10**18)] * 50]",
    ),
    Attack(
        "millions of rows without elements",
        "def attack(rank, world_size, *inputs):\n    return torch.zeros(1 << 26, 0)",
    ),
    Attack(
        "numbers that have one hash",
        "def attack(rank, world_size, *inputs):\n"
        "    return set(map(HASHED, range(3000))), {HASHED(k): 0 for k in range(3000)}\n"
        "HASHED = lambda k: k * ((1 << 61) - 1)",
        ("wrong", "crashed"),
    ),
    Attack(
        "a number of a million digits",
        "def attack(rank, world_size, *inputs):\n    return 16 ** 1_000_000",
        ("wrong", "crashed"),
    ),
    Attack(
        "a megabyte of text on one line, and of marks that reorder it",
        "def attack(rank, world_size, *inputs):\n    return ['x' * (1 << 20), '\\u202e' * (1 << 20)]",
    ),
    Attack(
        "a dict of many keys",
        "def attack(rank, world_size, *inputs):\n    return {str(k): [k] for k in range(5_000)}",
    ),
)
