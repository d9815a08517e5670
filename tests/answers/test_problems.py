"""Test each kind of problem that prevents an answer, and that its message helps."""

from __future__ import annotations

import textwrap

import pytest

from helpers.answers.build import Answer, Problem, build_answer
from helpers.answers.data import NO_ATTEMPT


def cells(text: str) -> list[str]:
    return [part.strip("\n") for part in textwrap.dedent(text).split("\n---\n")]


def problem(text: str, name: str = "f") -> Problem:
    found = build_answer(cells(text), name)
    assert isinstance(found, Problem), found.source
    assert "\n" not in found.message
    return found


def is_answer(text: str, name: str = "f") -> bool:
    return isinstance(build_answer(cells(text), name), Answer)


# --- not attempted --------------------------------------------------------------------------------

STUB = 'raise NotImplementedError("Exercise 5.3: write it")'
STATIC = "    @staticmethod\n    def"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x = 1",
        "# def f(): pass",
        f"def f():\n    {STUB}",
        f'def f():\n    """Doc."""\n    {STUB}',
        f"async def f():\n    {STUB}",
        f"@print\ndef f():\n    {STUB}",
        f"def f():\n    given = 1\n    {STUB}\n    return given",
        f"def f():\n    for i in range(3):\n        {STUB}\n    return i",
        f"def f():\n    def hook():\n        {STUB}\n    return hook",
        f"class f:\n    def __init__(self):\n        self.x = 1\n    def g(self):\n        {STUB}",
        f"class f:\n{STATIC} a():\n        {STUB}\n{STATIC} b():\n        {STUB}",
        f"class f(B):\n{STATIC} a(): return 1\n{STATIC} b():\n        {STUB}",
        "def f(): return 1\ndel f",
    ],
)
def test_reports_stub_or_absence_as_unattempted(text: str) -> None:
    assert problem(text).kind in NO_ATTEMPT


def test_message_locates_stub() -> None:
    text = f"x = 1\n---\n@print\ndef f():\n    {STUB}"
    assert "cell 2, line 3" in problem(text).message


@pytest.mark.parametrize(
    "text",
    [
        f"def f():\n    return 1\n    {STUB}",
        "def f():\n    raise NotImplementedError",
        "def f():\n    raise NotImplementedError('only for even sizes')",
        "class f:\n    def g(self):\n        raise NotImplementedError",
        f"def f(x):\n    if x < 0:\n        {STUB}\n    return x",
    ],
)
def test_accepts_conditional_not_implemented_error(text: str) -> None:
    assert is_answer(text)


def test_partly_written_class_counts_as_attempt() -> None:
    methods = ("a(): return 1", f"b():\n        {STUB}")
    for order in (methods, methods[::-1]):
        assert is_answer("class f:" + "".join(f"\n{STATIC} {each}" for each in order))


def test_reports_misspelt_answer_and_cell() -> None:
    found = problem("x = 1\n---\ndef my_slce(x):\n    return x", "my_slice")
    assert found.message == (
        "no cell defines `my_slice`. Did you mean `my_slce` (cell 2)? Rename it to `my_slice`."
    )
    assert "Did you mean `My_Slice`" in problem("class My_Slice:\n    pass", "my_slice").message
    assert (
        problem("def other(x):\n    return x", "my_slice").message == "no cell defines `my_slice`."
    )


def test_other_exercise_name_is_no_misspelling() -> None:
    found = build_answer(
        ["def ring_all_gather(): pass"], "ring_all_reduce", others=["ring_all_gather"]
    )
    assert isinstance(found, Problem) and "Did you mean" not in found.message


# --- syntax errors --------------------------------------------------------------------------------


def test_reports_syntax_error_of_answer_cell() -> None:
    found = problem("x = 1\n---\nimport math\ndef f():\n    return 1 +\n")
    assert found.kind == "syntax_error"
    assert "cell 2, line 3" in found.message


def test_syntax_error_outranks_earlier_stub() -> None:
    assert problem(f"def f():\n    {STUB}\n---\ndef f(:\n    pass").kind == "syntax_error"


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffdef f():\n    return 1",
        "x = 1\n\u200bdef f():\n    return 1",
        "\u2060class f:\n    pass",
        "def\u200b f():\n    return 1",
        "def f\u200b():\n    return 1",
        "\u00addef \u200bf():\n    return 1",
    ],
)
@pytest.mark.parametrize("before", ["", f"def f():\n    {STUB}\n---\n"])
def test_reports_invisible_character_as_cause(before: str, text: str) -> None:
    found = problem(before + text)
    assert found.kind == "syntax_error" and "type that line again" in found.message
    assert f"cell {2 if before else 1}" in found.message


def test_reports_syntax_error_of_assigned_answer() -> None:
    assert problem("f = lambda x: (").kind == "syntax_error"


def test_broken_call_cell_leaves_answer_undefined() -> None:
    assert problem("x = f(").kind == "not_defined"


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("def f():\n    return await g()", 2),
        ("if True:\n    def f(): pass\n    return 1", 3),
        ("def f():\n    x = 1\n    global x", 3),
        ("def f():\n    break", 2),
    ],
)
def test_reports_line_of_compiler_error(body: str, line: int) -> None:
    found = problem(f"import math\n---\n{body}")
    assert found.kind == "syntax_error"
    assert f"cell 2, line {line}" in found.message


def test_reports_extreme_nesting_without_crash() -> None:
    for deep in (
        "-" * 100_000 + "1",
        "(" * 5_000 + ")" * 5_000,
        "a" + ".b" * 100_000,
        "[" * 90 + "]" * 90 + "\n" + "+".join(["1"] * 20_000),
        "\n".join(" " * i + "if 1:" for i in range(90)) + "\n" + " " * 90 + "pass",
    ):
        found = build_answer([f"x = {deep}", f"def f():\n    return {deep}"], "f")
        assert isinstance(found, (Answer, Problem))
    assert problem("def f():\n    return " + "-" * 100_000 + "1").kind == "syntax_error"


# --- unresolved -----------------------------------------------------------------------------------

HEAD = "from helpers import launch, check, span\nimport torch, numpy as np, subprocess\n---\n"


@pytest.mark.parametrize(
    "made_by",
    [
        "x = launch(print).values[0]",
        "run = launch(print)\nx = run.values[0]",
        "run = launch(print)\ny = run.values\nx = y[0]",
        "def go(): return launch(print)\nx = go().values",
        "def deep(): return launch(print)\ndef go(): return deep()\nx = go()",
        "go = lambda: launch(print)\nx = go()",
        "x = check('f').points",
        "x = [launch(print) for _ in range(3)]",
        "x = []\nx.append(launch(print))",
        "x = {}\nx['a'] = launch(print)",
        "x = []\nfor n in (2, 4):\n    x.append(launch(print, n))",
        "if launch(print):\n    x = 1",
        "import helpers\nx = helpers.launch(print)",
        "import helpers as h\nx = h.launch(print)",
        "from helpers import launch as go\nx = go(print)",
        "from helpers.ranks.launcher import launch as go\nx = go(print)",
        "x = input('n? ')",
        "x = open('data.txt').read()",
        "with open('data.txt') as file:\n    x = file.read()",
        "from pathlib import Path\nx = Path('a').read_text()",
        "x = torch.load('weights.pt')",
        "x = np.loadtxt('a.csv')",
        "import json\nx = json.load(print)",
        "x = subprocess.run(['ls'])",
        "x = !ls",
        "x = %timeit -o print()",
        "x = get_ipython().user_ns",
        "import asyncio\nx = await asyncio.sleep(0)",
        "if __name__ == '__main__':\n    x = 1",
        "x, y = 1, launch(print)",
        "x: int = launch(print)",
        "x = 1\nx += launch(print).seconds",
        "(x := launch(print))",
        "del_me = 1\nx = lambda n=launch(print): n",
    ],
)
def test_reports_variable_with_external_value(made_by: str) -> None:
    found = problem(f"{HEAD}{made_by}\n---\ndef f():\n    return x")
    assert found.kind == "unresolved"
    assert "`x`" in found.message
    assert "cell 2" in found.message
    assert "`f` uses `x`" in found.message


def test_reports_call_chain_to_external_value() -> None:
    text = (
        HEAD
        + "run = launch(print)\n---\nbest = run.values\n---\nx = best[0]\n---\ndef f(): return x"
    )
    assert problem(text).message == (
        "`f` uses `x`, whose value comes (through `best`, `run`) from outside the cells: cell 2 "
        "(line 1) calls `launch`. A check does not repeat that. Write the value "
        "into the function, or pass it as an argument."
    )


def test_reports_external_value_used_indirectly() -> None:
    made = f"{HEAD}x = launch(print)\n---\n"
    assert "`h` uses `x`" in problem(made + "def h(): return x\ndef f(): return h()").message
    assert "`f` uses `x`" in problem(made + "def f(n=x): return n").message
    assert (
        "`f` uses `x`"
        in problem(made + "import functools\nf = functools.partial(print, x)").message
    )
    assert "`f`" in problem(HEAD + "def f(n=launch(print)): return n").message


@pytest.mark.parametrize(
    "test",
    [
        "try:\n    get_ipython()\n    x = True\nexcept NameError:\n    x = False",
        "try:\n    shell = get_ipython().__class__.__name__\nexcept:\n    shell = ''\nx = shell",
        "def in_notebook():\n    try:\n        return bool(get_ipython())\n"
        "    except (ImportError, NameError):\n        return False\nx = in_notebook()",
    ],
)
def test_accepts_guarded_kernel_check(test: str) -> None:
    assert is_answer(f"{test}\n---\ndef f():\n    return x")


def test_reports_unguarded_kernel_check() -> None:
    test = "try:\n    x = get_ipython().user_ns\nexcept ValueError:\n    x = 0"
    assert problem(f"{test}\n---\ndef f():\n    return x").kind == "unresolved"


@pytest.mark.parametrize("name", ["_", "__", "_12", "Out", "In"])
def test_ipython_history_variables_are_unresolved(name: str) -> None:
    found = problem(f"def f():\n    return {name}")
    assert (found.kind, f"`{name}`" in found.message) == ("unresolved", True)
    assert is_answer(f"{name} = 1\n---\ndef f(): return {name}")
    assert is_answer(f"def f():\n    for {name} in []: pass\n    return {name}")


def test_rejects_answer_defined_outside_cells() -> None:
    assert problem(HEAD + "f = launch(print)").kind == "unresolved"
    assert "imported in cell 1" in problem("from solutions import f").message
    assert problem("import f").kind == "unresolved"
    assert "`%%ranks`" in problem("%%ranks 2\ndef f(): return 1").message
    assert problem("if __name__ == '__main__':\n    def f(): return 1").kind == "unresolved"


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    with span('work'):\n        return 1",
        "@span('work')\ndef f(): return 1",
        "def f(run: launch): return 1",
        "def f(): return launch(print)",
        "def f(): return open('x').read()",
        "def go(): return launch(print)\n---\ndef f(): return go",
        "x = launch(print)\n---\nx = 1\n---\ndef f(): return x",
        "x = 1\n---\ny = x\n---\nx = launch(print)\n---\ndef f(): return y",
        "def load(p): return p\n---\nx = load(1)\n---\ndef f(): return x",
        "def open(p): return p\n---\nx = open(1)\n---\ndef f(): return x",
        "from sklearn.datasets import load_digits\nx = load_digits()\n---\ndef f(): return x",
        "x = torch.ones(4)\nx.requires_grad_()\n---\ndef f(): return x",
    ],
)
def test_accepts_code_independent_of_kernel(text: str) -> None:
    assert is_answer(HEAD + text)


# --- too large ------------------------------------------------------------------------------------


def test_rejects_too_large_answer() -> None:
    data = "x = [" + "1234567, " * 30_000 + "]"
    found = problem(f"{data}\n---\ndef f(): return x")
    assert found.kind == "too_large"
    assert "200,000" in found.message
    assert is_answer(f"{data}\n---\ndef f(): return 1")


def test_problems_include_notes() -> None:
    assert problem("def broken(:\n---\nx = 1").notes == (
        "cell 1 cannot be parsed (line 1): skipped",
    )
