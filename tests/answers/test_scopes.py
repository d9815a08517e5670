"""Compare the names found in functions with those of Python's `symtable`, on code by other authors.

`symtable` reads whole sources and does not know the order in which statements run, so the reader of
answers walks the tree itself. Where both have a result, it must be the same.
"""

from __future__ import annotations

import ast
import symtable
import sysconfig
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.answers.scopes import bound_in_function

STDLIB = Path(sysconfig.get_path("stdlib"))
CHOSEN = [
    "asyncio",
    "collections",
    "concurrent/futures",
    "email",
    "json",
    "unittest",
    "test/test_scope.py",
]
CHOSEN += ["test/test_named_expressions.py", "test/test_patma.py", "typing.py", "dataclasses.py"]

ODD = """
def f(a, /, b, *c, d=1, **e):
    global g, h
    for i, (j, *k) in []: pass
    with open(a) as l, open(b) as m.n: pass
    import o.p, q as r
    from s import t as u
    try: pass
    except (v := ValueError) as w: pass
    match a:
        case {"x": x, **y} | [x, *y]: pass
        case str() as z: pass
    [aa for bb in a if (dd := bb)]
    lambda ee: (ff := ee)
    class gg(hh := object): ii = 1
    def jj(kk=(ll := 1)):
        nonlocal l
        l = mm = 1
    @(nn := jj)
    def oo(): pass
    pp: int
    qq: int = 1
    rr += 1
    del ss
    g = 1
"""


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield node


def tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from tables(child)


def key(name: str, line: int) -> str:
    return f"{name}, line {line}"


def compare(source: str, file: str) -> int:
    """Compare every function that is unique by name and line with symtable; return how many there are."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree, whole = ast.parse(source), symtable.symtable(source, file, "exec")
    theirs = {key(t.get_name(), t.get_lineno()): t for t in tables(whole)}
    often = Counter(key(t.get_name(), t.get_lineno()) for t in tables(whole))
    count = 0
    for node in functions(tree):
        where = key(getattr(node, "name", "lambda"), node.lineno)
        if often[where] != 1:
            continue
        count += 1
        symbols = [
            s for s in theirs[where].get_symbols() if not s.get_name().startswith(("_", "."))
        ]
        local = {s.get_name() for s in symbols if s.is_local()}
        declared = {s.get_name() for s in symbols if s.is_declared_global()}
        ours = [{n for n in names if not n.startswith("_")} for names in bound_in_function(node)]
        assert ours == [local, declared], f"{file}: {where}"
    return count


def test_finds_every_binding_form() -> None:
    assert compare(ODD, "odd") == 4


@pytest.mark.sample(6)
@pytest.mark.parametrize("chosen", CHOSEN)
def test_finds_same_names_as_symtable(chosen: str) -> None:
    root = STDLIB / chosen
    if not root.exists():
        pytest.skip(f"this Python came without {chosen}")
    files = [root] if root.is_file() else sorted(root.glob("*.py"))
    assert sum(compare(file.read_text(), str(file)) for file in files) > 30
