"""The zip to upload as a Gradescope autograder: the course, its two scripts, and the grader's secret.

`course gradescope` calls `write_zip`.

    gradescope.zip:  setup.sh  run_autograder  secret  notebooks  sandbox  index_url
                     course/{pyproject.toml, constraints.txt, helpers/, solutions/, notebooks/}
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from helpers.grading.reports.files import ReportError

_SCRIPTS = Path(__file__).parent / "gradescope_files"
_SETTINGS = (
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    "README.md",
    "LICENSE",
    "Makefile",
)
_SUFFIXES = {".py", ".toml", ".html", ".css", ".json", ".sh", ""}
_SAME_TIME = (2020, 1, 1, 0, 0, 0)
"""Of every file in the zip, so that the same course gives the same zip."""


def write_zip(
    target: BinaryIO,
    root: Path,
    secret: str,
    *,
    notebooks: Sequence[str] = (),
    sandbox: str = "auto",
    extra_index_url: str = "",
) -> None:
    """Write the zip to an open file. Raise ReportError if the secret or the address cannot be used.

    secret: from which hidden cases are drawn; in a file of its own that only its owner may read.
    notebooks: names of those that count; where there are none, all that a submission holds.
    sandbox: as for `course grade`; Gradescope's containers have no user namespaces, so "auto" takes
    Landlock there. extra_index_url: a package index in addition to the usual one, for the small CPU build
    of torch.
    """
    if not secret or any(not mark.isprintable() for mark in secret):
        raise ReportError("The secret of a Gradescope zip must be one line that is not empty.")
    if not re.fullmatch(r"[a-z]+", sandbox):
        raise ReportError(f"{sandbox!r} is not a sandbox of `course grade`.")
    if not re.fullmatch(r"(https://[\w.~:/?&=%+-]+)?", extra_index_url):
        raise ReportError(f"{extra_index_url!r} is not the https address of a package index.")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("setup.sh", "run_autograder"):
            _add(archive, name, (_SCRIPTS / name).read_bytes(), 0o755)
        _add(archive, "index_url", extra_index_url.encode("ascii"), 0o644)
        _add(archive, "notebooks", " ".join(notebooks).encode("ascii"), 0o644)
        _add(archive, "sandbox", sandbox.encode("ascii"), 0o644)
        _add(archive, "secret", secret.encode("utf-8"), 0o600)
        for path in _course_files(root):
            _add(archive, f"course/{path.relative_to(root).as_posix()}", _data(path), 0o644)


def _course_files(root: Path) -> Iterator[Path]:
    found = [root / name for name in _SETTINGS]
    found += [path for path in (root / "helpers").rglob("*") if path.suffix in _SUFFIXES]
    found += [path for name in ("solutions", "notebooks") for path in (root / name).glob("*.ipynb")]
    for path in sorted(found):
        if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
            yield path


def _data(path: Path) -> bytes:
    if path.suffix != ".ipynb":
        return path.read_bytes()
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:  # pictures make nine tenths of a solved notebook
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return json.dumps(notebook, indent=1).encode("utf-8")


def _add(archive: zipfile.ZipFile, name: str, data: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, _SAME_TIME)
    entry.create_system = 3  # Unix, whose permissions follow
    entry.external_attr = (0o100000 | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, data)
