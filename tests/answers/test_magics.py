"""Remove IPython's syntax from cells without changing anything else."""

from __future__ import annotations

import ast

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from helpers.answers.magics import strip_magics

PYTHON = [
    "a = (b\n% c)",
    "a = b \\\n% c",
    'text = """\n%time x\n!ls\n"""',
    "text = '''\n%%bash\n'''",
    "text = 'a\\\n%b'",
    "x = '(' # (\ny = 1",
    "d = {\n'a': 1,\n}\n",
    "x = [1, # ]\n2]",
    "r'\\\\'\nx = 1",
    "x = \"'''\"\ny = 1",
    "if a:\n\n    b = 1\n",
    "x = a != b\ny = a % b",
    "x = f(a=b)\nd[k] = 1",
    "@a\ndef f(): pass",
]


@pytest.mark.parametrize("source", PYTHON)
def test_leaves_plain_python_unchanged(source: str) -> None:
    ast.parse(source)
    assert strip_magics(source) == source
    assert strip_magics(source + "\n%magic") == source + "\npass"


@pytest.mark.parametrize(
    ("source", "becomes"),
    [
        ("%matplotlib inline\nx = 1", "pass\nx = 1"),
        ("!pip install x\nx = 1", "pass\nx = 1"),
        ("!!ls", "pass"),
        ("if a:\n    %cd ..\n    !ls\n", "if a:\n    pass\n    pass\n"),
        ("!echo \\\n  'two (\nx = 1", "pass\n\nx = 1"),
        ("!echo \"it's (\nx = 1", "pass\nx = 1"),
        ("x = !ls", "x = get_ipython()"),
        ("a, b = !ls *.py", "a, b = get_ipython()"),
        ("x = %timeit -o f()", "x = get_ipython()"),
        ("x=%who_ls", "x= get_ipython()"),
        ("print?", "pass"),
        ("a.b??", "pass"),
        ("?print", "pass"),
        ("%time?", "pass"),
        ("%time x = 1", "x = 1"),
        ("%time", "pass"),
        ("%timeit x = 1", "pass"),
        ("/f 1", "pass"),
        (",f a b", "pass"),
        ("%%time\nx = 1", "\nx = 1"),
        ("\n\n%%capture out\nx = 1", "\n\n\nx = 1"),
        ("%%time\n%%capture\nx = 1\n!ls", "\n\nx = 1\npass"),
        ("%%timeit -n 3\nx = 1", "\nx = 1"),
        ("%%ranks 4\nx = 1", ""),
        ("%%bash\nls (", ""),
        ("#@title A file\n\n%%writefile a.txt\nls (", ""),
        ("#@title An answer\n%%after f\nx = 1", "#@title An answer\npass\nx = 1"),
        ("%%writefile a.py\nx = 1", ""),
        ("%%time\n%%ranks 2\nx = 1", ""),
        ("%%", ""),
        ("# first\n%%time\nx = 1", "# first\npass\nx = 1"),
        ("%%time?\nx = 1", "\nx = 1"),
        ("  x = 1\n  %ls\n", "x = 1\npass\n"),
        ("pip install torch", "pass"),
        ("cd ..", "pass"),
        ("f(x\n%a", "f(x\n%a"),
        ("", ""),
        ("\\", "\\"),
        ("%", "pass"),
        ("!a\\", "pass"),
    ],
)
def test_replaces_magics_and_shell_lines(source: str, becomes: str) -> None:
    assert strip_magics(source) == becomes


@pytest.mark.parametrize(
    "source", [*PYTHON, "%matplotlib inline\nx = 1", "x = !ls\ny = 2", "%%ranks 2\nz = 1"]
)
def test_stripped_ipython_cells_parse_as_python(source: str) -> None:
    for cell in (source, source + "\n!ls\n%who\nprint?\n"):
        ast.parse(TransformerManager().transform_cell(cell))
        ast.parse(strip_magics(cell))


def test_stripping_keeps_line_numbers() -> None:
    source = "%a\n\n!b \\\n c\nx = '''\n%\n'''\n%time y = 1\n"
    for cell in (
        source,
        "%%time\n" + source,
        "get_ipython().run_cell_magic('time', '', 'x = 1\\n')",
    ):
        stripped = strip_magics(cell)
        assert ast.parse(stripped).body
    assert strip_magics(source).count("\n") == source.count("\n")
    assert strip_magics("%%time\n" + source).count("\n") == source.count("\n") + 1


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    "piece",
    [
        "!ls\n",
        '"""',
        "'",
        '"""\\"',
        "(\n",
        "x = (\n%a\n",
        "\\",
        "#",
        '"\\\n',
        "!ls \\\n",
        "a.",
        "a,",
        " ",
        "% \n",
    ],
)
def test_stripping_magics_takes_linear_time(piece: str) -> None:
    # Quadratic time on a megabyte would exceed the test's time limit by far.
    strip_magics(piece * (1_000_000 // len(piece)) + "?")
