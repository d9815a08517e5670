"""Read notebook files from other tools, damaged files, and hostile files."""

from __future__ import annotations

import gzip
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from helpers.answers.build import Answer, Problem
from helpers.answers.notebook import (
    MAX_CELL_CHARS,
    MAX_FILE_BYTES,
    UnreadableNotebook,
    read_notebook,
)
from helpers.answers.reader import read_answers


def code(source: Any, **more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "source": source, **more}


def save(path: Path, *cells: Any, **more: Any) -> Path:
    path = path / "nb.ipynb"
    path.write_text(json.dumps({"cells": list(cells), **more}), encoding="utf-8")
    return path


# --- readable notebooks ---------------------------------------------------------------------------


def test_reads_jupyterlab_notebook(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        {"cell_type": "markdown", "id": "a1", "metadata": {}, "source": "# Title"},
        code(["x = 1\n", "y = 2"], id="b2", execution_count=None, metadata={}, outputs=[]),
        nbformat=4,
        nbformat_minor=5,
        metadata={"kernelspec": {"name": "python3"}},
    )
    notebook = read_notebook(path)
    assert [(c.index, c.source, c.id, c.cell_type) for c in notebook.cells] == [
        (0, "# Title", "a1", "markdown"),
        (1, "x = 1\ny = 2", "b2", "code"),
    ]
    assert [c.code for c in notebook.cells] == ["", "x = 1\ny = 2"]
    assert notebook.repairs == ()


def test_reads_colab_and_vscode_notebooks(tmp_path: Path) -> None:
    colab = {"colab": {"provenance": []}, "kernelspec": {"name": "python3", "display_name": "P"}}
    cell = code(["#@title f\n", "%%capture\n"], metadata={"id": "Xy", "cellView": "form"})
    other = code("f = 1", metadata={"vscode": {"languageId": "python"}})
    path = save(tmp_path, cell, other, nbformat=4, nbformat_minor=0, metadata=colab)
    notebook = read_notebook(path)
    assert (len(notebook.cells), notebook.repairs) == (2, ())


def test_reads_notebook_with_bom_without_metadata(tmp_path: Path) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"cells": [code("x = 1")]}).encode())
    assert read_notebook(path).cells[0].code == "x = 1"


def test_reads_worksheets_of_format_3(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "code", "input": ["x = 1\n", "y = 2"]},
        {"cell_type": "heading", "source": "T"},
    ]
    path = tmp_path / "nb.ipynb"
    path.write_text(json.dumps({"nbformat": 3, "worksheets": [{"cells": cells}, {}, 7]}))
    assert [c.code for c in read_notebook(path).cells] == ["x = 1\ny = 2", ""]


def test_skips_and_reports_unusable_cells(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        7,
        code(None),
        code(["a", 3]),
        {"source": "f = 1"},
        code("x" * (MAX_CELL_CHARS + 1)),
        code("y = 1", id=5),
        {"cell_type": ["code"], "source": "z = 1"},
    )
    notebook = read_notebook(path)
    assert [c.code for c in notebook.cells] == ["", "", "", "f = 1", "", "y = 1", "z = 1"]
    assert notebook.repairs == (
        "cell 1 is not a cell: skipped",
        "cell 2 has no source text: skipped",
        "cell 3 has no source text: skipped",
        "cell 4 has no cell type: treated as code",
        "cell 5 is longer than 1,000,000 characters: skipped",
        "cell 7 has no cell type: treated as code",
    )


# --- unusable files -------------------------------------------------------------------------------

VALID = json.dumps({"cells": [code("x = 1")], "nbformat": 4}).encode()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b" \n\t", "is empty"),
        (VALID[:-1], "is cut off"),
        (VALID[:30], "is cut off"),
        (b'{"cells": [], "x": fal', "is cut off"),
        (b"print('hello')", "is text, but not a notebook"),
        (b"{'cells': []}", "is not valid JSON"),
        (b"[]", "not a notebook"),
        (b"3", "not a notebook"),
        (b'"text"', "not a notebook"),
        (b"null", "not a notebook"),
        (b"{}", "has no cells"),
        (b'{"cells": {}}', "something other than a list of cells"),
        (b'{"cells": "x"}', "something other than a list of cells"),
        (b'{"cells": 1, "worksheets": []}', "something other than a list of cells"),
        (b'{"worksheets": 3}', "has no cells"),
        (b"\xff\xfe" + VALID.decode().encode("utf-16-le"), "is UTF-16 text"),
        (VALID.decode().encode("utf-16-be"), "iconv -f UTF-16 -t UTF-8"),
        (b"\x80" + VALID, "not UTF-8"),
        (VALID.replace(b"x = 1", b"\xe4 = 1"), "save it as UTF-8"),
        (b"\x89PNG\r\n\x1a\n" + b"\0" * 50, "a screenshot has no cells"),
        (b"%PDF-1.7\n%\xe2\xe3", "is a PDF"),
        (b"PK\x03\x04\x14\0", "is a zip archive, not a notebook. Unpack it"),
        (gzip.compress(VALID, mtime=0), "is compressed with gzip. Unpack it"),
        (b"<!DOCTYPE html>\n<html><body>Sign in</body></html>", "is a web page"),
        (b"<p>I could not do it.</p>", "is a web page"),
        (b"\xef\xbb\xbf\n<br/>Nothing", "is a web page"),
        (b"<div class='x'>Nothing</div>", "is a web page"),
        (b"I could not do it <b>at all</b>", "is text, but not a notebook"),
        (b"<!-- saved -->\n<HTML lang='en'>", "is a web page"),
        (b"https://colab.research.google.com/drive/1aB\n", "File > Download > Download .ipynb"),
        (b"[InternetShortcut]\r\nURL=https://example.org/x.ipynb\r\n", "contains a link"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d\nsize 1\n", "git lfs pull"),
        (
            b'{"cells": [\n<<<<<<< HEAD\n1\n=======\n2\n>>>>>>> b\n]}',
            "git merge conflict (line 2)",
        ),
        (b"import torch\n\ndef f(rank):\n    return rank\n", "is a Python script"),
        (b"# %%\nx = 1\n", "is a Python script"),
        (b"\0" * 400, "contains only zeros"),
        (VALID[:20] + b"\0" * 5 + VALID[25:], "contains zero bytes (the first is byte 20)"),
        (VALID + b"\nbye", "has text after the end of the notebook (line 2)"),
        (VALID + VALID, "if it is a second notebook, save it as a file of its own"),
        (b"[" * 200_000, "nested"),
        (b'{"cells":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested"),
        (b'{"a":' * 100_000, "nested"),
        (b'{"cells": ' + b"9" * 10_000 + b"}", "is not valid JSON"),
        (b'{"cells": [' + b"1," * 6_000 + b"1]}", "6,001 cells"),
        (b" " * MAX_FILE_BYTES + b"{}", "larger than 20 MB"),
    ],
)
def test_unreadable_file_message_fits_one_line(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_bytes(content)
    with pytest.raises(UnreadableNotebook) as caught:
        read_notebook(path)
    assert says in str(caught.value)
    assert str(caught.value).startswith("nb.ipynb ")
    assert "\n" not in str(caught.value)


def test_rejects_non_regular_files(tmp_path: Path) -> None:
    target = save(tmp_path, code("x = 1"))
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "fifo")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "socket"))
    wrong = {
        tmp_path: "is a folder, not a notebook: pass the path of the .ipynb file inside it",
        tmp_path / "missing": "does not exist",
        tmp_path / "link": "is a symbolic link",
        tmp_path / "circle": "is a symbolic link",
        tmp_path / "fifo": "not a regular file",
        tmp_path / "socket": "cannot be opened",
        Path("/dev/zero"): "not a regular file",
        target / "inside": "cannot be opened",
        tmp_path / ("x" * 400): "cannot be opened",
        tmp_path / "a\0b": "not a file name",
    }
    with listener:
        for path, says in wrong.items():
            with pytest.raises(UnreadableNotebook, match=says):
                read_notebook(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_reports_file_without_read_permission(tmp_path: Path) -> None:
    path = save(tmp_path, code("x = 1"))
    path.chmod(0)
    with pytest.raises(UnreadableNotebook, match="may not be read"):
        read_notebook(path)


def test_filename_newline_keeps_one_line_message(tmp_path: Path) -> None:
    with pytest.raises(UnreadableNotebook) as caught:
        read_notebook(tmp_path / "a\nb")
    assert str(caught.value).startswith("a?b does not exist")


# --- the capped child -----------------------------------------------------------------------------


def test_reads_answers_in_child_process(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        {"cell_type": "markdown", "source": "def f(): return 'prose'"},
        code("%matplotlib inline\nimport math"),
        code("def f():\n    return math.pi\n"),
        code("def g():\n    raise NotImplementedError('Exercise 1.1')"),
        code("def broken("),
        {"source": "é = '\\ud800'"},
    )
    found = read_answers(path, ["f", "g", "h", "broken"])
    answer = found["f"]
    assert isinstance(answer, Answer)
    assert answer.source == "import math\ndef f():\n    return math.pi\n"
    assert answer.place(3) == (2, 2)
    assert answer.notes == (
        "cell 6 has no cell type: treated as code",
        "cell 5 cannot be parsed (line 1): skipped",
    )
    problems = {name: p.kind for name, p in found.items() if isinstance(p, Problem)}
    assert problems == {"g": "not_attempted", "h": "not_defined", "broken": "syntax_error"}


@pytest.mark.parametrize(
    ("kind", "named"), [("markdown", "a Markdown cell"), ("raw", "a raw cell")]
)
def test_reports_non_code_cell_with_answer(tmp_path: Path, kind: str, named: str) -> None:
    hidden = {"cell_type": kind, "metadata": {}, "source": ["def f():\n", "    return 1"]}
    found = read_answers(save(tmp_path, code("import math"), hidden), ["f", "g"])
    assert isinstance(found["f"], Problem) and isinstance(found["g"], Problem)
    assert (
        f"cell 2, which is {named}" in found["f"].message
        and "press Esc and then Y" in found["f"].message
    )
    assert found["g"].message == "no cell defines `g`."


@pytest.mark.parametrize(
    ("version", "is_newer"), [("3.99.1", True), ("3.8.2", False), ("x" * 999, False), (3, False)]
)
def test_reports_newer_python_from_file_metadata(
    tmp_path: Path, version: object, is_newer: bool
) -> None:
    data = {
        "cells": [code("def f():\n    return <newer>")],
        "metadata": {"language_info": {"name": "python", "version": version}},
        "nbformat": 4,
    }
    path = tmp_path / "nb.ipynb"
    path.write_text(json.dumps(data))
    found = read_answers(path, ["f"])["f"]
    assert isinstance(found, Problem)
    assert found.kind == ("newer_syntax" if is_newer else "syntax_error")
    assert ("was written with Python 3.99" in found.message) is is_newer
    # the line is wrong for an older version; without a version, both may be the cause
    here = f"The course is graded with Python {sys.version_info[0]}.{sys.version_info[1]}: write it"
    assert (here.casefold() in found.message.casefold()) is (version != "3.8.2")


def test_child_reports_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(UnreadableNotebook, match=r"nb\.ipynb does not exist"):
        read_answers(tmp_path / "nb.ipynb", ["f"])


def test_working_folder_never_shadows_python_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(3)")
    (tmp_path / "ast.py").write_text("raise SystemExit(3)")
    save(tmp_path, code("def f(): return 1"))
    monkeypatch.chdir(tmp_path)
    assert isinstance(read_answers("nb.ipynb", ["f"])["f"], Answer)


HOSTILE = {
    "deep unary": "x = " + "-" * 200_000 + "1",
    "deep brackets": "x = " + "(" * 200_000,
    "deep attributes": "x = a" + ".b" * 200_000,
    "deep sums": "x = " + "+".join(["1"] * 200_000),
    "deep else": "".join("if x: pass\nelif x: pass\n" for _ in range(50_000)),
    "one elif chain": "if x: pass\n" + "elif x: pass\n" * 50_000,
    "deep lambdas": "x = " + "lambda: " * 50_000 + "1",
    "deep strings": "x = f'" + '{f"' * 1_000,
    "many shell lines": "!ls\n" * 400 + "y = 1\n" * 5_000,
    "open string": "x = '''" + "a\n" * 300_000,
    "NUL": "x = 1\0",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("title", HOSTILE)
def test_hostile_cell_does_not_affect_caller(tmp_path: Path, title: str) -> None:
    hostile = HOSTILE[title] + "\ndef g(): return x\n"
    path = save(tmp_path, code(hostile), code("def f(): return 1"))
    try:
        found = read_answers(path, ["f", "g"], timeout_s=30)
    except UnreadableNotebook as error:
        assert "could not be read" in str(error) or "more memory" in str(error)
        return
    assert isinstance(found["f"], Answer)
    assert isinstance(found["g"], (Answer, Problem))


def test_deadline_ends_child_process(tmp_path: Path) -> None:
    slow = "\n".join(f"a{i} = a{i - 1}" for i in range(1, 40_000)) + "\ndef f(): return a39999"
    path = save(tmp_path, code("a0 = 1"), code(slow))
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with pytest.raises(UnreadableNotebook, match=r"could not be read within 0\.3 s"):
        read_answers(path, ["f"], timeout_s=0.3)
    assert {child.pid for child in psutil.Process().children(recursive=True)} <= before


@pytest.mark.extended
def test_deadline_or_memory_cap_ends_reading(tmp_path: Path) -> None:
    path = save(tmp_path, *[code("x = [1, 2]\n" * 80_000)] * 19, code("def f(): return x"))
    with pytest.raises(UnreadableNotebook, match="could not be read|more memory"):
        read_answers(path, ["f"], timeout_s=2)
