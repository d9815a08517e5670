"""Read a notebook file that may be damaged, hostile, or saved by a different tool.

`read_notebook` is called inside the capped child of `reader.read_answers`. The JSON is not validated, because
grading needs only the cells' sources. So stripped metadata, missing ids and old formats do not matter.
"""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.answers.file_kinds import EARLIER_VERSION_ADVICE, describe_kind

MAX_FILE_BYTES = 20_000_000
MAX_CELL_CHARS = 1_000_000
MAX_CELLS = 5_000


class UnreadableNotebook(Exception):
    """No cells can be read from the file. The message is one line with the problem and its remedy."""


@dataclass(frozen=True)
class Cell:
    """One cell. index: its position in the file, from 0. id: "" if the file has no id for it."""

    index: int
    source: str
    id: str
    cell_type: str

    @property
    def code(self) -> str:
        """The source of a code cell, "" for other cells."""
        return self.source if self.cell_type == "code" else ""


@dataclass(frozen=True)
class Notebook:
    """A notebook's cells in order.

    Args:
        repairs: Errors in the file that were ignored.
        python_version: The version of the kernel that saved the file, or () if the file does not contain it.
    """

    cells: tuple[Cell, ...]
    repairs: tuple[str, ...] = ()
    python_version: tuple[int, ...] = ()


def read_notebook(path: str | os.PathLike[str]) -> Notebook:
    """Read the notebook at `path`. Raise UnreadableNotebook, and no other exception, if that fails.

    For a file from another person, use `read_answers`, because hostile JSON can take a lot of memory.
    """
    name = printable_name(path)
    content = read_bytes(path)
    data = _parse(content, _decode(content, name), name)
    cells = _cells(data, name)
    if len(cells) > MAX_CELLS:
        raise UnreadableNotebook(
            f"{name} has {len(cells):,} cells, more than the {MAX_CELLS:,} allowed: "
            "is it the notebook of this course?"
        )
    repairs: list[str] = []
    read = tuple(_make_cell(index, raw, repairs) for index, raw in enumerate(cells))
    return Notebook(read, tuple(repairs), _python_version(data))


def printable_name(path: str | os.PathLike[str]) -> str:
    """Return the file's name in a form that fits a one-line message."""
    name = Path(os.fsdecode(path)).name
    return "".join(c if c.isprintable() else "?" for c in name)[:100]


# --- bytes ----------------------------------------------------------------------------------------


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file of limited size. Raise UnreadableNotebook for other files."""
    name = printable_name(path)
    # With O_NONBLOCK, opening a fifo does not wait for a writer. O_NOFOLLOW rejects links, because a
    # submission must not be a link to one of the grader's files.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError as error:
        raise UnreadableNotebook(_open_message(error, name)) from None
    except ValueError:
        raise UnreadableNotebook(
            f"{name} is not a file name: it contains a NUL character."
        ) from None
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise UnreadableNotebook(f"{name} {_describe_folder(descriptor)}")
        if not stat.S_ISREG(mode):
            raise UnreadableNotebook(
                f"{name} is not a regular file, but a pipe or device: pass the path of the "
                f"notebook."
            )
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UnreadableNotebook(_open_message(error, name)) from None
    finally:
        os.close(descriptor)
    if len(content) > MAX_FILE_BYTES:
        raise UnreadableNotebook(
            f"{name} is larger than {MAX_FILE_BYTES // 1_000_000} MB: clear its outputs, remove "
            f"cells that do not belong to your answers, and save it."
        )
    return content


def _describe_folder(descriptor: int) -> str:
    """Describe a folder that was submitted instead of a notebook, based on its direct contents."""
    names = os.listdir(descriptor)
    if any(name.lower().endswith(".ipynb") for name in names):
        return "is a folder, not a notebook: pass the path of the .ipynb file inside it."
    what = "is a folder without a .ipynb file" if names else "is an empty folder"
    return f"{what}. Hand in the .ipynb file."


def _open_message(error: OSError, name: str) -> str:
    if error.errno == errno.ENOENT:
        return f"{name} does not exist: check the path."
    if error.errno in (errno.ELOOP, errno.EMLINK):
        return f"{name} is a symbolic link: hand in the notebook itself, not a link to it."
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"{name} may not be read: check the file's permissions."
    return f"{name} cannot be opened: {error.strerror}."


def _decode(content: bytes, name: str) -> str:
    try:
        if content.strip():
            return content.decode("utf-8-sig")  # some editors on Windows write a byte order mark
    except UnicodeDecodeError as error:
        says = describe_kind(content) or (
            f"is not UTF-8 text (byte {error.start:,}). If it is a notebook, open it in a text editor, and "
            "save it as UTF-8. Otherwise hand in the .ipynb file."
        )
    else:
        says = describe_kind(content)
    raise UnreadableNotebook(f"{name} {says}")


# --- JSON -----------------------------------------------------------------------------------------


def _parse(content: bytes, text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UnreadableNotebook(
            f"{name} {describe_kind(content) or _json_message(error, text)}"
        ) from None
    except (RecursionError, MemoryError):
        raise UnreadableNotebook(
            f"{name} is JSON, but too large or too deeply nested for a notebook."
        ) from None
    except ValueError as error:  # a number with thousands of digits
        raise UnreadableNotebook(f"{name} is not valid JSON: {str(error)[:80]}.") from None


def _json_message(error: json.JSONDecodeError, text: str) -> str:
    if error.msg == "Extra data":
        return (
            f"has text after the end of the notebook (line {error.lineno}). Delete that text; if it is a "
            "second notebook, save it as a file of its own, and hand in both."
        )
    if text.lstrip()[:1] not in ("{", "[") and '"cells"' not in text:
        return "is text, but not a notebook, which begins with `{`. Hand in the .ipynb file."
    # the usual cause is an interrupted download, which needs a different remedy
    rest = text[error.pos :].strip()
    if not rest or rest.isalnum() or error.msg.startswith("Unterminated"):
        return (
            f"is cut off (line {error.lineno}: {error.msg}). Download or save it again. If that is not "
            f"possible, {EARLIER_VERSION_ADVICE.lower()}"
        )
    return (
        f"is not valid JSON (line {error.lineno}: {error.msg}), so it is damaged, or not a notebook. Repair "
        f"that line in a text editor. If that is not possible, {EARLIER_VERSION_ADVICE.lower()}"
    )


def _cells(content: Any, name: str) -> list[Any]:
    if not isinstance(content, dict):
        raise UnreadableNotebook(
            f"{name} is JSON, but not a notebook: its top level is not an object."
        )
    if "cells" not in content and isinstance(content.get("worksheets"), list):
        return list(_worksheet_cells(content["worksheets"]))
    # in a hostile file, nothing is certain to have the type that nbformat defines
    cells = content.get("cells")
    if not isinstance(cells, list):
        what = "has no cells" if cells is None else "has something other than a list of cells"
        raise UnreadableNotebook(
            f"{name} is JSON, but not a notebook: it {what}. Hand in the .ipynb file."
        )
    return cells


def _python_version(data: Any) -> tuple[int, ...]:
    """Return the version of Python stored in a notebook, or ()."""
    info: Any = data
    for key in ("metadata", "language_info", "version"):
        info = info.get(key) if isinstance(info, dict) else None
    found = re.match(r"(\d{1,2})\.(\d{1,3})", info) if isinstance(info, str) else None
    return (int(found[1]), int(found[2])) if found else ()


def _worksheet_cells(worksheets: list[Any]) -> Iterator[Any]:
    """Yield the cells of nbformat 3, in which code is stored under a different key."""
    for sheet in worksheets:
        cells = sheet.get("cells") if isinstance(sheet, dict) else None
        for cell in cells if isinstance(cells, list) else []:
            if isinstance(cell, dict) and "source" not in cell:
                cell["source"] = cell.get("input")
            yield cell


# --- cells ----------------------------------------------------------------------------------------


def _make_cell(index: int, raw: Any, repairs: list[str]) -> Cell:
    """Return a cell for any JSON value at a cell's position."""
    # an unusable cell becomes an empty one, so that messages use the author's cell numbers
    number = f"cell {index + 1}"
    if not isinstance(raw, dict):
        repairs.append(f"{number} is not a cell: skipped")
        return Cell(index, "", "", "raw")
    kind = raw.get("cell_type")
    if not isinstance(kind, str):
        repairs.append(f"{number} has no cell type: treated as code")
        kind = "code"
    source = _cell_source(raw.get("source"))
    if source is None:
        repairs.append(f"{number} has no source text: skipped")
        source = ""
    if len(source) > MAX_CELL_CHARS:
        repairs.append(f"{number} is longer than {MAX_CELL_CHARS:,} characters: skipped")
        source = ""
    name = raw.get("id")
    return Cell(index, source, name if isinstance(name, str) else "", kind)


def _cell_source(raw: Any) -> str | None:
    """Return a cell's text, which is stored as a string or as a list of lines, or None if it is missing."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, list) and all(isinstance(line, str) for line in raw):
        return "".join(raw)
    return None
