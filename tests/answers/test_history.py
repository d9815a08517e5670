"""Find answers in a kernel's history, with a real IPython shell that runs the cells."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from helpers.answers.build import Answer, Problem, build_answer
from helpers.answers.data import NO_ATTEMPT
from helpers.answers.history import answer_from_history


class Kernel:
    """A separate IPython shell with its history."""

    def __init__(self, home: Path) -> None:
        config = Config()
        config.HistoryManager.hist_file = ":memory:"
        config.InteractiveShell.ipython_dir = str(home)
        self.shell = InteractiveShell(config=config)

    def run(self, *cells: str) -> None:
        for cell in cells:
            self.shell.run_cell(cell, store_history=True)

    def get(self, name: str) -> Any:
        return self.shell.user_ns[name]

    @property
    def typed(self) -> list[str]:
        return list(self.shell.history_manager.input_hist_raw)

    @property
    def transformed(self) -> list[str]:
        return list(self.shell.user_ns["In"])

    def answer(self, target: object, name: str = "") -> Any:
        """Run the answer built for `target`, and return the object called `name`."""
        found = answer_from_history(target, self.typed)
        assert isinstance(found, Answer), found
        assert found == answer_from_history(target, self.typed, self.shell.user_ns)
        namespace: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(found.source, "<answer>", "exec"), namespace)
        return namespace[name or found.name]


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kernel]:
    # A shell replaces this object with its own
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    kernel = Kernel(tmp_path)
    yield kernel
    kernel.shell.history_manager.end_session()
    kernel.shell.restore_sys_module_state()


def test_last_run_definition_wins(kernel: Kernel) -> None:
    kernel.run("def h(): return 1", "def f(): return h()", "def h(): return 2", "f()")
    assert kernel.answer(kernel.get("f"))() == 2 == kernel.get("f")()
    kernel.run("def h(): return 1")
    assert kernel.answer("f")() == 1 == kernel.get("f")()


def test_rerunning_cell_adds_no_repair(kernel: Kernel) -> None:
    kernel.run("def f(): return 1", "def f(): return 1", "def f( return 2", "def f(): return 3")
    found = answer_from_history(kernel.get("f"), kernel.typed)
    assert isinstance(found, Answer)
    assert (found.notes, found.origins[0].cell) == ((), 4)


def test_last_run_stub_replaces_answer(kernel: Kernel) -> None:
    kernel.run("def f(): return 1", "def f():\n    raise NotImplementedError('Exercise 1.1')")
    found = answer_from_history(kernel.get("f"), kernel.typed)
    assert isinstance(found, Problem)
    assert found.kind in NO_ATTEMPT
    assert "cell [2], line 2" in found.message


def test_finds_sources_of_all_callable_kinds(kernel: Kernel) -> None:
    kernel.run(
        "import functools, contextlib",
        "class C:\n    n = 1",
        "C.n = 2",
        "double = lambda x: 2 * x",
        "less = functools.partial(lambda a, b: a - b, 10)",
        "def twice(g):\n    @functools.wraps(g)\n    def w(): return 2 * g()\n    return w",
        "@twice\ndef f(): return 3",
        "def plain(g):\n    return lambda: -g()",
        "@plain\ndef g(): return 4",
        "@functools.cache\ndef h(): return 5",
        "@contextlib.contextmanager\ndef m(): yield 6",
    )
    assert kernel.answer(kernel.get("C")).n == 2
    assert kernel.answer(kernel.get("double"))(4) == 8
    assert kernel.answer(kernel.get("f"))() == 6
    assert kernel.answer(kernel.get("g"))() == -4
    assert kernel.answer(kernel.get("h"))() == 5
    with kernel.answer(kernel.get("m"))() as value:
        assert value == 6
    found = answer_from_history(kernel.get("less"), kernel.typed, kernel.shell.user_ns)
    assert isinstance(found, Answer) and found.name == "less"


def test_alias_resolves_to_definition(kernel: Kernel) -> None:
    kernel.run("def f(): return 1", "mine = f")
    assert kernel.answer(kernel.get("mine"), "f")() == 1


def test_reports_object_imported_from_file(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "mysolution.py").write_text("def f(): return 1\nclass C: pass\n")
    kernel.run(
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})",
        "import mysolution",
        "def f():\n    raise NotImplementedError('Exercise 1.1')",
    )
    for target in (kernel.get("mysolution").f, kernel.get("mysolution").C):
        found = answer_from_history(target, kernel.typed)
        assert isinstance(found, Problem)
        assert (found.kind, "`mysolution`" in found.message) == ("unresolved", True)
    kernel.run("from mysolution import f")
    found = answer_from_history(kernel.get("f"), kernel.typed)
    assert isinstance(found, Problem)
    assert found.kind == "unresolved"


def test_reports_function_from_run_file(kernel: Kernel, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("def f(): return 1\n")
    kernel.run(f"%run {tmp_path / 'script.py'}")
    found = answer_from_history(kernel.get("f"), kernel.typed)
    assert isinstance(found, Problem)
    assert found.kind == "unresolved"


@pytest.mark.parametrize("text", ["def f(): return 1\n", "class f:\n    def g(self): pass\n"])
def test_reports_cell_name_rebound_by_run(kernel: Kernel, tmp_path: Path, text: str) -> None:
    (tmp_path / "script.py").write_text(text)
    kernel.run("def f(): return 2", f"%run {tmp_path / 'script.py'}")
    found = answer_from_history(kernel.get("f"), kernel.typed)
    assert isinstance(found, Problem)
    assert "was not defined in a cell" in found.message


@pytest.mark.parametrize("target", [3, None, [], functools.partial(print), len, print, object()])
def test_reports_non_answer_objects(target: object) -> None:
    found = answer_from_history(target, ["", "x = 1"])
    assert isinstance(found, Problem)
    assert found.kind == "unresolved"


def test_name_missing_from_history_is_unattempted() -> None:
    found = answer_from_history("f", ["", "x = 1"])
    assert isinstance(found, Problem)
    assert found.kind in NO_ATTEMPT


def test_message_names_external_variable_and_cell(kernel: Kernel) -> None:
    kernel.run("x = input", "y = open(__file__) if 0 else 1", "def f(): return y")
    found = answer_from_history(kernel.get("f"), kernel.typed)
    assert isinstance(found, Problem)
    assert "`y`" in found.message and "cell [2]" in found.message


def test_strips_typed_and_stored_magics(kernel: Kernel) -> None:
    kernel.run(
        "%%time\nK = 4",
        "%time L = 5\nfiles = !echo one",
        "%config InteractiveShell.ast_node_interactivity\ndef f():\n    return K % 3, L",
        "f?",
        "!true",
    )
    assert kernel.answer(kernel.get("f"))() == (1, 5) == kernel.get("f")()
    for history in (kernel.typed, kernel.transformed):
        found = answer_from_history("f", history)
        assert isinstance(found, Answer)
        assert "K = 4" in found.source and "L = 5" in found.source
        files = answer_from_history("g", [*history, "def g(): return files"])
        assert isinstance(files, Problem) and files.kind == "unresolved"


def test_history_and_notebook_build_same_answer() -> None:
    cells = ["import math", "K = 2", "def h(): return K", "def f(): return math.pi * h()"]
    from_file, from_kernel = build_answer(cells, "f"), answer_from_history("f", cells)
    assert isinstance(from_file, Answer) and isinstance(from_kernel, Answer)
    assert (from_file.source, from_file.origins) == (from_kernel.source, from_kernel.origins)


def test_skips_parsing_of_unneeded_cells() -> None:
    history = ["def f(): return 1", "x = " + "-" * 200_000 + "1"]
    assert isinstance(answer_from_history("f", history), Answer)
