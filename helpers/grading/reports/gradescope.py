"""Build the zip for Gradescope's autograder, and the results.json of a submission.

`course gradescope` calls `write_zip`. In Gradescope's container, run_autograder calls this module:

    python -m helpers.grading.reports.gradescope OUT RESULTS [NOTEBOOK ...]
    python -m helpers.grading.reports.gradescope --nothing-in SUBMISSION RESULTS

See "Output format" in Gradescope's "Autograder Specifications". Text intended only for the instructor is in a
test with visibility "hidden", which Gradescope never shows to learners.

    gradescope.zip:  setup.sh  run_autograder  secret  notebooks  policy.toml
                     course/{pyproject.toml, constraints.txt, helpers/, solutions/, notebooks/}
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from helpers.grading.cache import write_atomically
from helpers.grading.grade_options import CannotGrade
from helpers.grading.points.counted import is_bonus
from helpers.grading.points.policy import DEFAULT_POLICY, FILE, Policy, read_policy
from helpers.grading.record import ExerciseRecord, Record, Status, read_records
from helpers.grading.reports.class_page import NEEDS_ATTENTION, places_to_look
from helpers.grading.reports.outcomes import Kind, exercise_text, is_fault, kind_of
from helpers.grading.reports.standing import course_of
from helpers.grading.reports.text import clip_text, finite_or_zero, line, numbered_title
from helpers.grading.submissions import NoSubmissions, find_submissions

_SCRIPTS = Path(__file__).parent / "gradescope_files"
_PROJECT_FILES = (
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
    "README.md",
    "LICENSE",
    "Makefile",
)
_SUFFIXES = {".py", ".toml", ".html", ".css", ".js", ".json", ".sh", ".md", ""}
# Minimum length of a secret. A shorter secret could be guessed by trial, because the course computes the
# cases of any secret.
_MIN_SECRET_CHARS = 12
_NO_FILE = "There is nothing to grade: the submission contains no notebook (.ipynb)."


def gradescope_results(
    records: Sequence[Record], notebooks: Sequence[str] = (), policy: Policy = DEFAULT_POLICY
) -> dict[str, Any]:
    """Return the results of one submission, which may contain several notebooks.

    An exercise that could not be graded here counts in full until a person has checked it, because Gradescope
    has no empty score, and no learner may lose points for a fault. If a notebook has several copies, the best
    copy counts.

    Args:
        notebooks: The notebooks that count; by default, all notebooks in the submission.
        policy: The weights. Gradescope handles deadlines and late days.
    """
    course = course_of([replace(record, learner="") for record in records], "", notebooks, policy)
    counted = [each for standing in course.standings for each in standing.records]
    spare = [each for standing in course.standings for each in standing.spare]
    unreadable = [each for each in spare if each.status is Status.UNREADABLE]
    tests = [_test_entry(each) for record in counted for each in record.exercises]
    looks = [f"{where}: {what}: {why}" for what, _, where, why in places_to_look(course)]
    if looks:
        tests.append(
            {
                "name": NEEDS_ATTENTION,
                "output": "\n".join(looks),
                "output_format": "text",
                "visibility": "hidden",
            }
        )
    return {
        "score": round(sum(test.get("score", 0.0) for test in tests), 2),
        "execution_time": round(
            sum(max(0.0, finite_or_zero(record.seconds)) for record in records)
        ),
        "output": "\n\n".join(map(_file_text, [*counted, *unreadable])) or _NO_FILE,
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": tests,
    }


def results_json(
    records: Sequence[Record], notebooks: Sequence[str] = (), policy: Policy = DEFAULT_POLICY
) -> bytes:
    """Return `gradescope_results` as the content of results.json."""
    found = gradescope_results(records, notebooks, policy)
    return json.dumps(found, indent=1, allow_nan=False).encode("ascii")


def _test_entry(exercise: ExerciseRecord) -> dict[str, Any]:
    out_of = finite_or_zero(exercise.out_of)
    bonus = " (bonus)" if is_bonus(exercise) else ""
    test: dict[str, Any] = {
        "name": numbered_title(exercise) + (" (not graded here)" if is_fault(exercise) else bonus),
        "score": out_of if is_fault(exercise) else round(finite_or_zero(exercise.points), 2),
        "max_score": out_of,
        "output": exercise_text(exercise),
        "output_format": "text",
        "visibility": "visible",
    }
    if exercise.number:
        test["number"] = line(exercise.number, 12)
    if not is_fault(exercise):
        test["status"] = "passed" if kind_of(exercise.outcome) is Kind.PASSED else "failed"
    return test


def _file_text(record: Record) -> str:
    head = line(record.notebook or record.file)
    if record.status is Status.UNREADABLE:
        return f"{head}: cannot be read, so nothing in it was graded. {clip_text(record.message)}"
    lines = [f"{head}: graded.", *filter(None, [clip_text(record.message)])]
    lines += [f"Note: {clip_text(note, 400)}" for note in record.notes[:20]]
    return "\n".join([*lines, f"Answers ran in this sandbox: {line(record.protection.level)}."])


# --- the zip ----------------------------------------------------------------------------------------


def write_zip(
    target: BinaryIO,
    root: Path,
    secret: str,
    notebooks: Sequence[str] = (),
    policy: Path | None = None,
) -> None:
    """Write the zip to an open file.

    Args:
        secret: The secret that determines the hidden cases. It is stored in a separate file that is readable
            only by its owner.
        notebooks: The notebooks that count; by default, all notebooks in a submission.
        policy: A policy file, of which only the weights count.

    Raises:
        CannotGrade: The secret or the policy cannot be used.
    """
    if policy is not None:
        read_policy(policy)
    if len(secret) < _MIN_SECRET_CHARS or not secret.isprintable():
        raise CannotGrade(
            f"The secret of a Gradescope zip must be one line of at least {_MIN_SECRET_CHARS} characters: a "
            "learner who guesses it can draw the hidden cases."
        )
    with zipfile.ZipFile(target, "w") as archive:
        for name in ("setup.sh", "run_autograder"):
            _add_entry(archive, name, (_SCRIPTS / name).read_bytes(), 0o755)
        _add_entry(archive, "notebooks", " ".join(notebooks).encode("ascii"))
        if policy is not None:
            _add_entry(archive, FILE, policy.read_bytes())
        _add_entry(archive, "secret", secret.encode("utf-8"), 0o600)
        found = [root / name for name in _PROJECT_FILES]
        found += (each for each in (root / "helpers").rglob("*") if each.suffix in _SUFFIXES)
        found += (x for name in ("solutions", "notebooks") for x in (root / name).glob("*.ipynb"))
        for path in sorted(found):
            if path.is_file() and not path.is_symlink() and "__pycache__" not in path.parts:
                _add_entry(archive, f"course/{path.relative_to(root).as_posix()}", _content(path))


def _content(path: Path) -> bytes:
    if path.suffix != ".ipynb":
        return path.read_bytes()
    notebook = json.loads(path.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:  # pictures make up nine tenths of a solved notebook
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return json.dumps(notebook, indent=1).encode("utf-8")


def _add_entry(archive: zipfile.ZipFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = zipfile.ZipInfo(name)  # dated 1980, so that the same course yields the same zip
    entry.create_system = 3  # Unix, so that the permissions count
    entry.external_attr = (0o100000 | mode) << 16
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED)


def main(out: Path, results: Path, notebooks: Sequence[str] = ()) -> None:
    """Read the records written by `course grade` below `out`, and write the results file."""
    policy = read_policy(out / FILE) if (out / FILE).exists() else DEFAULT_POLICY
    write_atomically(results, results_json(read_records(out), notebooks, policy))


def write_nothing_handed_in(submission: Path, results: Path) -> int:
    """Write results without points if `course grade` finds nothing to grade. Return an exit code.

    The code is 1 if there is something to grade, because then the failure has a different cause.
    """
    try:
        find_submissions(submission)
    except NoSubmissions:
        write_atomically(results, results_json([]))
        return 0
    return 1


if __name__ == "__main__":
    if sys.argv[1] == "--nothing-in":
        sys.exit(write_nothing_handed_in(Path(sys.argv[2]), Path(sys.argv[3])))
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
