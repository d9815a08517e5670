"""Test the statements of an answer's source, their order, and that it behaves as in the kernel.

Most tests run the cells from top to bottom, as a kernel does, and the answer's source by itself,
and compare the function's results.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import functools
import inspect
import textwrap
import typing
from types import ModuleType
from typing import Any

import pytest

from helpers.answers.build import Answer, build_answer, normalize
from helpers.answers.listing import may_bind, parse_cell


def cells(text: str) -> list[str]:
    """Split a text into cells at lines of dashes."""
    return [part.strip("\n") for part in textwrap.dedent(text).split("\n---\n")]


def built(text: str, name: str = "f") -> Answer:
    answer = build_answer(cells(text), name)
    assert isinstance(answer, Answer), answer
    return answer


def run(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(source, "<answer>", "exec"), namespace)
    return namespace


def same(text: str, *args: Any) -> Answer:
    """Assert that the answer called f returns the same as in a kernel that has run all the cells."""
    kernel = run("\n".join(cells(text)))
    answer = built(text)
    assert run(answer.source)["f"](*args) == kernel["f"](*args)
    return answer


CLOSURES = {
    "constant": ("K = 3\n---\ndef f():\n    return K", ()),
    "chain of constants": ("A = 1\nB = A + 1\n---\nC = B * 2\n---\ndef f():\n    return C", ()),
    "two functions, each calling the other": (
        """
        def even(n):
            return n == 0 or f(n - 1)
        ---
        def f(n):
            return n != 0 and even(n - 1)
        """,
        (7,),
    ),
    "helper below": ("def f():\n    return h()\n---\ndef h():\n    return 1", ()),
    "default argument": ("K = 3\n---\ndef f(n=K):\n    return n\n---\nK = 4", ()),
    "keyword default": ("K = 3\n---\ndef f(*, n=K):\n    return n", ()),
    "decorator": (
        """
        import functools
        def twice(g):
            @functools.wraps(g)
            def wrapper():
                return 2 * g()
            return wrapper
        ---
        @twice
        def f():
            return 4
        """,
        (),
    ),
    "decorator defined twice: the first was in force": (
        """
        def mark(g): return lambda: ("first", g())
        ---
        @mark
        def f(): return 1
        ---
        def mark(g): return lambda: ("second", g())
        """,
        (),
    ),
    "helper of a decorator, changed afterwards": (
        """
        def label(): return "old"
        def mark(g):
            text = label()
            return lambda: (text, label(), g())
        ---
        @mark
        def f(): return 1
        ---
        def label(): return "new"
        """,
        (),
    ),
    "redefined by itself": (
        "def f(): return 1\n---\ndef double(g): return lambda: 2 * g()\n---\nf = double(f)",
        (),
    ),
    "augmented": ("n = 1\n---\nn += 5\n---\ndef f(): return n", ()),
    "augmented list": ("xs = [1]\n---\nxs += [2]\nys = xs\n---\ndef f(): return ys", ()),
    "last definition": ("def f(): return 1\n---\ndef f(): return 2", ()),
    "last helper, defined after the function": (
        "def h(): return 1\n---\ndef f(): return h()\n---\ndef h(): return 2",
        (),
    ),
    "value computed by an early version": (
        "def h(): return 1\nx = h()\n---\ndef h(): return 2\ndef f(): return x, h()",
        (),
    ),
    "append": ("xs = []\n---\nxs.append(1)\n---\ndef f(): return xs", ()),
    "item": (
        "table = {}\n---\ntable['x'] = 1\ntable['y'] = table['x'] + 1\ndef f(): return table",
        (),
    ),
    "filled in a loop": ("xs = []\nfor i in range(3):\n    xs.append(i)\ndef f(): return xs", ()),
    "deleted item": ("t = {'a': 1, 'b': 2}\ndel t['a']\n---\ndef f(): return t", ()),
    "method patched later": (
        """
        class C:
            def value(self): return 1
        ---
        def other(self): return 2
        C.value = other
        ---
        def f(): return C().value()
        """,
        (),
    ),
    "setattr": ("class C: pass\n---\nsetattr(C, 'n', 5)\n---\ndef f(): return C.n", ()),
    "delattr": ("class C: n = 5\n---\ndelattr(C, 'n')\n---\ndef f(): return hasattr(C, 'n')", ()),
    "patched after being inherited from": (
        "class A: n = 1\n---\nclass B(A): pass\n---\nA.n = 2\n---\ndef f(): return B.n",
        (),
    ),
    "patch of an earlier class of the same name": (
        "class C: pass\nC.n = 1\n---\nclass C: pass\n---\ndef f(): return hasattr(C, 'n')",
        (),
    ),
    "registered by a decorator": (
        """
        import functools
        @functools.singledispatch
        def kind(x): return "any"
        ---
        @kind.register
        def _(x: int): return "int"
        ---
        kind.register(str, lambda x: "text")
        def f(): return kind(1), kind("a"), kind(1.0)
        """,
        (),
    ),
    "tuple": ("a, (b, *c) = 1, (2, 3, 4)\n---\ndef f(): return b, c", ()),
    "walrus": ("if (n := 5) > 3: pass\n---\ndef f(): return n", ()),
    "walrus in a comprehension": ("[last := i for i in range(4)]\n---\ndef f(): return last", ()),
    "loop variable": ("for i in range(4):\n    pass\n---\ndef f(): return i", ()),
    "with": (
        "import io\nwith io.StringIO('x') as s:\n    t = s.read()\n---\ndef f(): return t",
        (),
    ),
    "either branch": (
        "import sys\nif sys.maxsize > 0:\n    n = 1\nelse:\n    n = 2\ndef f(): return n",
        (),
    ),
    "changed in a branch": ("n = 1\n---\nif n == 1:\n    n = 7\n---\ndef f(): return n", ()),
    "branch not taken": ("n = 1\n---\nif n == 2:\n    n = 7\n---\ndef f(): return n", ()),
    "conditional definition": (
        "import sys\nif sys.maxsize > 0:\n    def f(): return 'big'\n"
        "else:\n    def f(): return 'small'",
        (),
    ),
    "import with a substitute": (
        "try:\n    import no_such_module as m\nexcept ImportError:\n"
        "    m = None\ndef f(): return m",
        (),
    ),
    "only while type checking": (
        """
        from typing import TYPE_CHECKING
        if TYPE_CHECKING:
            from nowhere import Thing
        ---
        def f(x: "Thing" = 1): return x
        """,
        (),
    ),
    "star import": ("from math import *\n---\ndef f(): return floor(pi)", ()),
    "star import that something overrides": (
        "from math import *\n---\npi = 3\n---\ndef f(): return pi",
        (),
    ),
    "submodules imported apart": (
        "import os\nimport xml.dom.minidom\n---\n"
        "import xml\n---\ndef f(): return xml.dom.minidom.Node.TEXT_NODE",
        (),
    ),
    "future annotations": (
        "from __future__ import annotations\n---\ndef f(x: NotThere = 1): return f.__annotations__",
        (),
    ),
    "global counter": (
        "counter = 10\n---\ndef f():\n    global counter\n    counter += 1\n    return counter",
        (),
    ),
    "global set by the function itself": (
        "def f():\n    global made\n    made = 3\n    return made",
        (),
    ),
    "dataclass": (
        """
        from dataclasses import dataclass, field
        SIZE = 4
        ---
        @dataclass
        class Box:
            size: int = SIZE
            items: list = field(default_factory=list)
        ---
        def f(): return Box().size
        """,
        (),
    ),
    "type alias": ("Pair = tuple[int, int]\n---\ndef f(x: Pair = (1, 2)) -> Pair: return x", ()),
    "annotated assignment": ("n: int\nn: int = 4\n---\ndef f(): return n", ()),
    "in an f-string": ("width = 6\nname = 'x'\n---\ndef f(): return f'{name:>{width}}'", ()),
    "match": (
        """
        LIMIT = 3
        class P:
            __match_args__ = ("x",)
            def __init__(self, x): self.x = x
        class Names: top = 9
        ---
        def f(v):
            match v:
                case P(y) if y > LIMIT: return "big", y
                case Names.top: return "top"
                case [first, *rest]: return first, rest
                case {"k": k, **others}: return k, others
                case other: return other
        """,
        ([1, 2, 3],),
    ),
    "lambda with a default": ("K = 2\n---\nf = lambda x, k=K: x * k\n---\nK = 100", (4,)),
    "partial": (
        "import functools\ndef g(a, b): return a - b\n---\nf = functools.partial(g, 10)",
        (4,),
    ),
    "lambda called at once": (
        "table = {1: 2, 2: 1}\norder = sorted([1, 2], key=lambda i: table[i])\n---\n"
        "table = None\ndef f(): return order",
        (),
    ),
    "class bodies see names as they go": (
        "x = 1\n---\nclass C:\n    x = x + 1\n    y = x\n---\ndef f(): return C.x, C.y",
        (),
    ),
    "metaclass and base": (
        "class M(type): tag = 1\n---\n"
        "class B: n = 2\n---\nclass C(B, metaclass=M): pass\ndef f(): return C.tag, C.n",
        (),
    ),
    "in a nested function": (
        "K = 5\n---\ndef f():\n    def inner():\n        return K\n    return inner()",
        (),
    ),
    "nested comprehension": (
        "rows = [[1, 2], [3]]\n---\ndef f(): return [x for row in rows for x in row]",
        (),
    ),
    "exception class": (
        "class Bad(Exception): pass\n---\n"
        "def f():\n    try:\n        raise Bad()\n    except Bad as e:\n        return str(type(e))",
        (),
    ),
    "async function": (
        "import asyncio\nasync def g(): return 1\n---\ndef f(): return asyncio.run(g())",
        (),
    ),
    "two statements on a line": ("a = 1; b = 'é'; c = 3  # why\n---\ndef f(): return b, c", ()),
    "deleted and made again": ("n = 1\ndel n\n---\nn = 2\n---\ndef f(): return n", ()),
}


@pytest.mark.parametrize("title", CLOSURES)
def test_answer_matches_kernel_behavior(title: str) -> None:
    text, args = CLOSURES[title]
    same(text, *args)


def test_answer_includes_class_dependencies() -> None:
    answer = built(
        """
        SIZE = 2
        ---
        class Model:
            def run(self): return SIZE
        ---
        def extra(self): return self.run() + 1
        Model.extra = extra
        """,
        "Model",
    )
    assert run(answer.source)["Model"]().extra() == 3


# --- omitted statements ---------------------------------------------------------------------------


def test_answer_excludes_unneeded_statements() -> None:
    answer = built(
        """
        import torch, math
        from helpers import launch, check
        ---
        print("hello")
        run = launch(None)
        unrelated = open("/etc/passwd").read()
        assert False
        math.floor(2.5)
        ---
        def f():
            return math.pi
        ---
        check(f)
        f()
        """
    )
    assert answer.source == "import math\ndef f():\n    return math.pi\n"
    assert answer.notes == ()


@pytest.mark.parametrize(
    "body",
    [
        "def f(big): return big",
        "def f():\n    big = 1\n    return big",
        "def f():\n    for big in [1]: pass\n    return big",
        "def f(): return [big for big in [1]]",
        "def f(): return {big: 1 for big in [1] for _ in [big]}",
        "def f():\n    import math as big\n    return big",
        "def f():\n    with open('x') as big: return big",
        "def f():\n    try: pass\n    except OSError as big: return big",
        "def f():\n    def big(): pass\n    return big",
        "def f(x):\n    match x:\n        case [big, *_]: return big",
        "def f(x):\n    match x:\n        case {**big}: return big",
        "def f(x):\n    if (big := x): return big",
        "def f(x):\n    return [big := y for y in x], big",
        "def f():\n    big = 0\n    def g():\n        nonlocal big\n        big += 1\n    return g",
        "f = lambda big: big",
        "def f(*big, **others): return big",
        "def f(x): return x.big",
        "def f(g): return g(big=1)",
        "class f:\n    big = 1\n    other = big",
        "def f(): return 'big'",
    ],
)
def test_local_name_excludes_same_named_global(body: str) -> None:
    assert "unwanted" not in built(f"big = 'unwanted'\n---\n{body}").source


def test_methods_ignore_class_body_names() -> None:
    answer = built("n = 'global'\n---\nclass f:\n    n = 'own'\n    def get(self): return n")
    assert run(answer.source)["f"]().get() == "global"


def test_comprehension_reads_first_iterable_from_outside() -> None:
    same("x = [1, 2]\n---\ndef f(): return [y for y in x]")
    answer = built("x = [1, 2]\n---\nclass f:\n    x = [3]\n    y = [x for x in x]")
    assert run(answer.source)["f"].y == [3]


def test_imports_keep_only_needed_names() -> None:
    answer = built("from helpers import check as c, span\n---\ndef f():\n    with span(): pass")
    assert answer.source.startswith("from helpers import span\ndef f")


def test_keeps_import_restoring_rebound_name() -> None:
    same(
        """
        import math
        from math import floor
        ---
        floor, math = (lambda x: -x), 3
        low = floor(2.5) + math
        ---
        import math
        from math import floor
        ---
        def f(): return low, floor(2.5), math.pi
        """
    )


@pytest.mark.parametrize("module", [argparse, dataclasses, functools, inspect, typing])
def test_text_search_finds_every_binding(module: ModuleType) -> None:
    """Find each top-level name of a real module in the text of the statement that binds it."""
    compared = 0
    for statement in parse_cell(inspect.getsource(module), 0):
        names = statement.names
        for name in names.binds | names.may_bind | names.stores | names.registers | names.pokes:
            assert may_bind(name, statement.text), (name, statement.text)
            compared += 1
    assert compared > 20


def test_omits_main_guard_block() -> None:
    answer = built("n = 1\n---\nif __name__ == '__main__':\n    n = 2\n---\ndef f(): return n")
    assert run(answer.source)["f"]() == 1


def test_omits_demonstration_call_of_class() -> None:
    answer = built("class f:\n    def show(): print('shown')\n---\nf.show()")
    assert answer.source.count("show()") == 1


def test_omits_module_method_calls() -> None:
    answer = built("import random\nrandom.seed(0)\n---\ndef f(): return random.random()")
    assert "seed" not in answer.source


def test_answer_includes_names_in_string_annotations() -> None:
    answer = built("class Chunk: pass\n---\ndef f(x: 'list[Chunk]') -> 'Chunk | None': return x")
    assert "class Chunk" in answer.source


def test_ignores_unusable_string_annotations() -> None:
    text = (
        "from helpers import launch\nrun = launch(None)\n---\n"
        "def f(x: 'run', y: 'two words'): return x"
    )
    assert "launch" not in built(text).source


# --- order and repairs ----------------------------------------------------------------------------


def test_moves_needed_definition_before_use() -> None:
    answer = built(
        """
        SIZES = table(K)
        def f(): return SIZES
        ---
        def table(n): return [row(i) for i in range(n)]
        ---
        def row(i): return i * i
        K = 3
        """
    )
    assert run(answer.source)["f"]() == [0, 1, 4]
    assert any("`K` (cell 3) is needed earlier, in cell 1" in note for note in answer.notes)


def test_moving_definitions_preserves_valid_order() -> None:
    same(
        """
        def helper(): return CONST
        ---
        alias = helper
        ---
        CONST = [alias]
        ---
        def f(): return len(alias())
        """
    )


def test_applies_early_patch_after_its_class() -> None:
    answer = built(
        "def g(self): return 1\nC.g = g\n---\nclass C: pass\n---\ndef f(): return C().g()"
    )
    assert run(answer.source)["f"]() == 1


def test_notes_mention_chosen_definition_and_helpers() -> None:
    answer = built(
        "def f(): return 1\n---\ndef f(): return 2\n---\n"
        "def f(): return h()\n---\ndef h(): return 3"
    )
    assert "`f` is defined 3 times: the last one is taken (cell 3)" in answer.notes
    assert "helper `h` is defined below the function that uses it (cell 4)" in answer.notes
    assert run(answer.source)["f"]() == 3


def test_reports_unneeded_broken_cell() -> None:
    answer = built("def f(): return 1\n---\nx = 1\ny = (\nz = = 2")
    assert answer.notes == ("cell 2 cannot be parsed (line 3): skipped",) or answer.notes == (
        "cell 2 cannot be parsed (line 2): skipped",
    )


def test_reports_skipped_top_level_await() -> None:
    answer = built("import asyncio\nawait asyncio.sleep(0)\n---\ndef f(): return 1")
    assert answer.notes == ("cell 1, line 2: a check does not run a top-level `await`",)


def test_reports_unbound_name() -> None:
    assert built("def f(): return chnk(1)").notes == (
        "no cell defines `chnk`, which `f` uses (cell 1)",
    )
    assert built("def f(): return len([]), __name__").notes == ()
    assert built("from math import *\n---\ndef f(): return floor(2.5)").notes == ()


@pytest.mark.parametrize(
    "future",
    [
        "from __future__ import annotations\n",
        "from __future__ import annotations\n---\n",
        "from __future__ import (\n    division,\n    annotations,\n)\n---\n",
    ],
)
def test_unevaluated_annotation_permits_any_name(future: str) -> None:
    body = "def f(x: Bar, *y: a.B) -> list[Bar]:\n    z: Bar = 1\n    return z"
    assert built(future + body).notes == ()
    assert run(built(future + body).source)["f"](0) == 1
    assert "no cell defines `Bar`, which `f` uses (cell 1)" in built(body).notes
    # the annotation of a local variable is never evaluated
    assert built("def f():\n    z: Bar = 1\n    return z").notes == ()
    # names that exist are still included, for code that reads annotations
    assert "class Bar" in built(f"{future}class Bar: pass\n---\n{body}").source
    assert "no cell defines `Bar`" in built(f"{future}def f(x: Bar): return Bar").notes[0]


def test_reports_deleted_helper() -> None:
    answer = built("def h(): return 1\ndef f(): return h()\n---\nx = 1\ndel x, h")
    assert answer.notes == ("cell 2 deletes `h`, which the answer uses",)
    with pytest.raises(NameError):
        run(answer.source)["f"]()


def test_copied_stub_keeps_earlier_answer() -> None:
    stub = 'def f():\n    """Doc."""\n    raise NotImplementedError("Exercise 1.1: write it")'
    answer = built(f"def f(): return 1\n---\n{stub}")
    assert run(answer.source)["f"]() == 1
    assert answer.notes == ("`f` in cell 2 is still the stub, so the version in cell 1 is used",)


# --- form -----------------------------------------------------------------------------------------


def test_maps_lines_to_their_cells() -> None:
    answer = built(
        """
        import math
        K = 3; L = (4,
                    5)
        ---

        # a comment
        @staticmethod
        def f(x):
            return math.pi * K * L[0]
        """
    )
    lines = answer.source.split("\n")
    place = {line.strip(): answer.place(number + 1) for number, line in enumerate(lines)}
    assert place["K = 3"] == (0, 2)
    assert place["5)"] == (0, 3)
    assert place["@staticmethod"] == (1, 2)  # `cells` removes empty lines at the top of a cell
    assert place["return math.pi * K * L[0]"] == (1, 4)
    assert answer.place(0) is None
    assert answer.place(1000) is None


def test_future_imports_come_first_and_once() -> None:
    text = (
        "x = 1\n---\nfrom __future__ import annotations\n---\n"
        "from __future__ import annotations\ndef f(): return x"
    )
    source = built(text).source
    assert source.startswith("from __future__ import annotations\n")
    assert source.count("__future__") == 1


def test_includes_repeated_import_once() -> None:
    assert (
        built("import math\n---\nimport math\n---\ndef f(): return math.pi").source.count("import")
        == 1
    )


def test_normalize_ignores_only_comments_and_layout() -> None:
    plain = built("def f(x):\n    return x+1")
    dressed = built('# note\ndef f( x ):\n    """Doc."""\n    return (x + 1)  # why')
    other = built("def f(x):\n    return x + 2")
    assert normalize(plain) == normalize(dressed) != normalize(other)
    only_doc = built('def f(x):\n    "doc"')
    assert ast.parse(normalize(only_doc))


def test_splits_lines_at_crlf_and_formfeeds() -> None:
    answer = build_answer(["x = 1\r\ny = 2\r\n", "def f():\r\n    return y\r\n"], "f")
    assert isinstance(answer, Answer)
    assert run(answer.source)["f"]() == 2
    answer = build_answer(["\x0cx = '\u2028'\ny = 2", "def f():\n    return x, y"], "f")
    assert isinstance(answer, Answer)
    assert run(answer.source)["f"]() == ("\u2028", 2)


def test_compares_names_after_unicode_normalization() -> None:
    # The name contains the ligature fi
    answer = build_answer(["\ufb01ne = 1", "def f(): return fine"], "f")
    assert isinstance(answer, Answer)
    assert run(answer.source)["f"]() == 1
