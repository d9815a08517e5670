"""Write the learner's bundle: the course without solutions, tests and grader, and a manifest.

`course release OUT` writes the bundle. `course grade --release OUT` compares the checks of this copy with
those of the bundle.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from helpers.checks.mistakes import (
    ANSWERS,
    SEALED,
    answers_path,
    instructor_folder,
    read_mistakes,
    seal_mistakes,
)
from helpers.checks.reference_source import read_reference
from helpers.checks.registry import exercises
from helpers.checks.right_values import SEALED_REFERENCE, needs_reference, seal_reference
from helpers.course.workspace import Workspace
from helpers.grading.disclosure import BundledMistakes, choose_mistakes
from helpers.grading.grade_options import CannotGrade

MANIFEST = "manifest.json"
FORMAT = 1
_FILES = (
    "README.md",
    "LICENSE",
    "docs/engine.md",
    "docs/torch.md",
    "docs/hosts.md",
    "docs/your-own-job.md",
    "docs/ddp-in-twelve-lines.md",
    "docs/symptoms.md",
    "docs/deadlock.webp",
    "Makefile",
    "constraints.txt",
    "environment.yml",
    "pyproject.toml",
)
_NOT_FOR_LEARNERS = ("grading",)
_MAX_BYTES = 4 << 20


class ReleaseError(CannotGrade):
    """A bundle cannot be written or read. The message is one line with the problem and advice."""


def write_bundle(
    workspace: Workspace,
    out: Path,
    *,
    with_solutions: bool = False,
    with_mistakes: bool = True,
    with_own: bool = False,
) -> list[Path]:
    """Write the bundle into the new folder `out`. Return its files.

    Args:
        with_solutions: Whether to include the solved notebooks.
        with_mistakes: Whether to include known mistakes, sealed, so that there is advice on wrong answers.
            Only mistakes that together do not contain a solution are included (`disclosure`).
        with_own: Whether to include the mistakes added by the instructor as well.

    The reference solutions that checks need for their expected values are always included, sealed.

    Raises:
        ReleaseError: The bundle cannot be written.
    """
    if out.exists() and any(out.iterdir() if out.is_dir() else [out]):
        raise ReleaseError(f"{out} already exists: choose a new folder.")
    sums = {}
    try:
        mistakes = choose_mistakes(workspace)
        solved = workspace.solutions.glob("*.ipynb") if with_solutions else ()
        for source in sorted([*bundle_files(workspace), *solved]):
            if _is_answers(source) and not with_mistakes:
                continue
            name = _bundle_path(source).relative_to(workspace.root)
            target = out / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(_bundle_content(source, mistakes, with_own))
            if name == Path("README.md"):
                target.write_text(
                    _learner_readme(source.read_text(encoding="utf-8"), with_solutions),
                    encoding="utf-8",
                )
            sums[name.as_posix()] = sha256_of(target.read_bytes())
        for each, content in _sealed_references(workspace).items():
            (out / each).write_bytes(content)
            sums[each] = sha256_of(content)
        manifest = {"format": FORMAT, "files": sums}
        (out / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise ReleaseError(f"{out} cannot be written: {error.strerror}.") from None
    except ValueError as error:  # a file of mistakes is damaged
        raise ReleaseError(f"{error}.") from None
    return [out / name for name in (*sums, MANIFEST)]


def describe_mistakes(workspace: Workspace) -> str:
    """Return a sentence on the number of known mistakes that a bundle leaves out, and the reason."""
    mistakes = choose_mistakes(workspace)
    total = mistakes.left_out + sum(map(len, mistakes.by_file.values()))
    return (
        f"{mistakes.left_out:,} of {total:,} known mistakes are left out, so that the others do not contain "
        "the solutions: see docs/instructors.md."
    )


def _learner_readme(readme: str, with_solutions: bool) -> str:
    """Return the README without the parts on cloning, tests and teaching, which a bundle does not need."""
    own = readme.partition("\n## For instructors")[0]
    lines = (line for line in own.splitlines() if not line.startswith(("git clone", "make test")))
    has = "has the solutions, in `solutions/`" if with_solutions else "has no solutions"
    note = f"This copy of the course is for learners: it {has}. The license is in LICENSE."
    return "\n".join(lines).rstrip() + f"\n\n{note}\n"


def bundle_files(workspace: Workspace) -> Iterator[Path]:
    """Yield the files that belong in a bundle."""
    yield from (p for name in _FILES if (p := workspace.root / name).is_file())
    yield from workspace.notebooks.glob("*.ipynb")
    package = workspace.root / "helpers"
    for path in package.rglob("*"):
        inner = path.relative_to(package).parts
        if path.is_file() and "__pycache__" not in inner and inner[0] not in _NOT_FOR_LEARNERS:
            yield path


def _is_answers(path: Path) -> bool:
    return path.suffix == ANSWERS


def _bundle_path(path: Path) -> Path:
    """Return a file's path in a bundle."""
    return path.with_suffix(SEALED) if _is_answers(path) else path


def _bundle_content(path: Path, mistakes: BundledMistakes, with_own: bool = False) -> bytes:
    """Return a file's content in a bundle. with_own: whether to append the instructor's mistakes."""
    if not _is_answers(path):
        return path.read_bytes()
    found = list(mistakes.by_file[path])
    own = instructor_folder() / f"{path.stem}.py"
    # parse each file separately, so that one file's content cannot change how the other is parsed
    if with_own and own.is_file():
        found += read_mistakes(own.read_text(encoding="utf-8"), str(own))
    return seal_mistakes(found)


def _sealed_references(workspace: Workspace) -> dict[str, bytes]:
    """Return {file name: sealed reference solution} for the solutions needed for expected values."""
    found = {}
    for exercise in exercises().values():
        path = answers_path(exercise).with_suffix(SEALED_REFERENCE)
        if needs_reference(exercise) and path.is_relative_to(workspace.root):
            reference = read_reference(workspace.solutions, exercise.notebook, exercise.name)
            found[path.relative_to(workspace.root).as_posix()] = seal_reference(reference.source)
    return found


def find_differences(manifest: Path, workspace: Workspace) -> list[str]:
    """Return a line for each file of checks, engine or notebooks that differs from the bundle's file."""
    sums = _read_manifest(manifest)
    here = {
        _bundle_path(p).relative_to(workspace.root).as_posix(): p for p in bundle_files(workspace)
    }
    # Leaving out known mistakes is intended, so it is not a difference.
    references = _sealed_references(workspace)
    has_mistakes = any(name.endswith(SEALED) for name in sums)
    mistakes = choose_mistakes(workspace)
    found = []
    for name in sorted({*sums, *here, *references}):
        if not name.startswith(("helpers/", "notebooks/")):
            continue
        if name.endswith(SEALED) and not has_mistakes:
            continue
        if name in references:
            contents = {sha256_of(references[name])}
        elif name in here:
            contents = {
                sha256_of(_bundle_content(here[name], mistakes, own)) for own in (False, True)
            }
        else:
            contents = set()
        if not contents:
            found.append(f"{name} is in the bundle, but not here")
        elif name not in sums:
            found.append(f"{name} is here, but not in the bundle")
        elif sums[name] not in contents:
            found.append(f"{name} differs from the version handed out")
    return found


def sha256_of(content: bytes) -> str:
    """Return the SHA-256 of a file's content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def _read_manifest(path: Path) -> dict[str, str]:
    path = path / MANIFEST if path.is_dir() else path
    try:
        if os.path.getsize(path) > _MAX_BYTES:
            raise ValueError("too large")
        data: Any = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] != FORMAT:
            raise ValueError("another format")
        return {str(name): str(each) for name, each in data["files"].items()}
    except OSError as error:
        raise ReleaseError(f"{path} cannot be read: {error.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ReleaseError(f"{path} is not a manifest written by `course release`.") from None
