"""The learner's bundle contains all files for learners, no solutions, and checksums that reveal changes."""

from __future__ import annotations

import bz2
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from helpers.checks.mistakes import read_answers_at, select_mistakes
from helpers.checks.reference_source import read_reference
from helpers.checks.registry import exercises
from helpers.checks.right_values import needs_reference
from helpers.course.workspace import find_workspace
from helpers.grading.disclosure import choose_mistakes
from helpers.grading.release import (
    MANIFEST,
    ReleaseError,
    describe_mistakes,
    find_differences,
    sha256_of,
    write_bundle,
)
from tests.teaching.programs import PAGE, with_figures


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("release") / "course"
    write_bundle(find_workspace(), out)
    return out


def test_bundle_contains_no_solutions(bundle: Path) -> None:
    names = [path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()]
    assert "notebooks/02_blocking_p2p.ipynb" in names
    assert not [n for n in names if n.startswith(("solutions/", "tests/", "helpers/grading/"))]
    assert not [path for path in bundle.rglob("*.ipynb") if "BEGIN SOLUTION" in path.read_text()]


def test_bundle_seals_or_omits_known_mistakes(bundle: Path, tmp_path: Path) -> None:
    here = {p.stem for p in find_workspace().root.glob("helpers/exercises/*/*.answers")}
    assert {p.stem for p in bundle.glob("helpers/exercises/*/*.sealed")} == here
    assert not [*bundle.rglob("*.answers")]
    without = tmp_path / "without"
    write_bundle(find_workspace(), without, with_mistakes=False)
    assert not [*without.rglob("*.sealed")]
    assert find_differences(without, find_workspace()) == []


def test_bundle_seals_needed_references(bundle: Path, tmp_path: Path) -> None:
    needed = {e.name for e in exercises().values() if needs_reference(e)}
    files = [*bundle.glob("helpers/exercises/*/*.reference")]
    assert {path.stem for path in files} == needed
    assert not any(b"dist." in path.read_bytes() for path in files)


@pytest.mark.extended
def test_check_works_without_solutions(bundle: Path, tmp_path: Path) -> None:
    """Only the reference solution knows the right values of 8.1."""
    answer = read_reference(find_workspace().solutions, "08_synchronous_sgd", "average_gradients")
    program = (
        f"import sys; sys.path.insert(0, {str(bundle)!r}); "
        "sys.meta_path = [f for f in sys.meta_path if 'ditable' not in repr(f)]; "
        "from helpers.checks import check_answer, registry; "
        "from helpers.answers.build import build_answer; "
        "exercise = registry.get('average_gradients'); source = sys.stdin.read(); "
        "kept = check_answer.grade(exercise, build_answer([source], exercise.name), str); "
        "wrong = source.replace('dist.get_world_size()', '1'); assert wrong != source; "
        "lost = check_answer.grade(exercise, build_answer([wrong], exercise.name), str, every_case=False); "
        "print(check_answer.__file__, kept.outcome.value, lost.outcome.value)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=bundle,
        # Another test compares the files of the bundle with its manifest.
        env={
            **os.environ,
            "PYTHONPATH": str(bundle),
            "PYTHONPYCACHEPREFIX": str(tmp_path),
        },
        input=answer.source,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert found.stdout.split() == [
        str(bundle / "helpers" / "checks" / "check_answer.py"),
        "passed",
        "wrong",
    ], found.stderr


def _lines(source: str) -> set[str]:
    lines = (line.strip() for line in source.splitlines())
    return {line for line in lines if line and not line.startswith("#")}


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(each)


def test_bundle_omits_lines_of_most_solutions(bundle: Path) -> None:
    """Learners can decompress each sealed file, and open each of their notebooks."""
    opened: dict[str, set[str]] = {}
    for path in bundle.glob("helpers/exercises/*/*"):
        if path.suffix in {".sealed", ".reference"}:
            texts = _texts_in(json.loads(bz2.decompress(path.read_bytes())))
            opened.setdefault(path.stem, set()).update(*map(_lines, texts))
    anywhere = set().union(*opened.values())
    given = set[str]()
    for path in (bundle / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            given |= _lines("".join(cell["source"])) if cell["cell_type"] == "code" else set()
    open_by_own_file, open_by_any = [], []
    for exercise in (each for each in exercises().values() if each.notebook):
        program = read_reference(find_workspace().solutions, exercise.notebook, exercise.name)
        lines = _lines("\n".join(program.lines[slice(*program.own_range)]))
        secret = lines - given
        if secret <= opened.get(exercise.name, set()):
            open_by_own_file.append(exercise.name)
        if secret <= anywhere:
            open_by_any.append(exercise.name)
    assert len(open_by_own_file) <= len(exercises()) / 4, open_by_own_file
    chosen = choose_mistakes(find_workspace())
    assert len(open_by_any) <= len(chosen.laid_open), set(open_by_any) - {*chosen.laid_open}


def test_docs_match_figures_of_bundle() -> None:
    workspace = find_workspace()
    chosen = choose_mistakes(workspace)
    text = PAGE.read_text(encoding="utf-8")
    assert with_figures(text) == text, "run: python -m tests.teaching.programs"
    total = chosen.left_out + sum(map(len, chosen.by_file.values()))
    assert f"{chosen.left_out:,} of the {total:,} known mistakes" in " ".join(text.split())
    assert f"{chosen.left_out:,} of {total:,}" in describe_mistakes(workspace)


def test_each_exercise_keeps_known_mistakes() -> None:
    chosen = choose_mistakes(find_workspace())
    known = {path for path in chosen.by_file if select_mistakes(read_answers_at(path))}
    empty = {path.stem for path in known if not chosen.by_file[path]}
    # all of its mistakes contain the solution of 21.1, which they call
    assert empty == {"quantize_with_memory"}
    assert all(each.source or each.seen for path in known for each in chosen.by_file[path])


def test_readme_mentions_only_bundled_files(bundle: Path) -> None:
    readme = (bundle / "README.md").read_text()
    assert "make lab" in readme
    assert not [w for w in ("make test", "tests/", "solutions/", "course grade") if w in readme]
    linked = re.findall(r"\]\((?!https?:)([^)]+)\)", readme)
    assert linked and all((bundle / name).is_file() for name in linked)


def test_manifest_lists_checksum_of_every_file(bundle: Path) -> None:
    sums = json.loads((bundle / MANIFEST).read_text())["files"]
    files = {p.relative_to(bundle).as_posix() for p in bundle.rglob("*") if p.is_file()}
    assert set(sums) == files - {MANIFEST}
    assert all(sha256_of((bundle / name).read_bytes()) == each for name, each in sums.items())


@pytest.mark.extended
def test_reports_changed_check_files(bundle: Path, tmp_path: Path) -> None:
    assert find_differences(bundle, find_workspace()) == []
    manifest = json.loads((bundle / MANIFEST).read_text())
    manifest["files"]["helpers/checks/judge.py"] = "0" * 64
    del manifest["files"]["helpers/checks/check_answer.py"]
    other = tmp_path / MANIFEST
    other.write_text(json.dumps(manifest))
    assert find_differences(other, find_workspace()) == [
        "helpers/checks/check_answer.py is here, but not in the bundle",
        "helpers/checks/judge.py differs from the version handed out",
    ]


@pytest.mark.extended
def test_learner_can_work_in_bundle(bundle: Path, tmp_path: Path) -> None:
    """The bundle's `course` checks a notebook, and reports that it has no grader."""
    env = {**os.environ, "PYTHONPATH": str(bundle)}
    # this environment's copy of the course must not fill gaps in the bundle
    program = (
        "import sys; sys.meta_path = [f for f in sys.meta_path if 'ditable' not in repr(f)]; "
        "from helpers.course.cli import main; main()"
    )
    course = [sys.executable, "-c", program]
    options = {"cwd": bundle, "env": env, "capture_output": True, "text": True, "timeout": 100}
    notebook = bundle / "notebooks" / "02_blocking_p2p.ipynb"
    checked = subprocess.run([*course, "check", str(notebook)], **options)
    assert checked.returncode == 1, checked.stderr
    assert "0 of 5 exercises passed, 5 not attempted" in checked.stdout
    for words in (
        ["grade", "."],
        ["gradescope", "a.zip", "--secret", "a long secret"],
        ["mistakes", "."],
    ):
        out = ["--out", str(tmp_path)] if words[0] == "grade" else []
        graded = subprocess.run([*course, *words, *out], **options)
        assert "this copy is a learner's" in graded.stderr, words


@pytest.mark.parametrize("content", ["", "[]", '{"format": 2}', '{"format": 1, "files": 3}'])
def test_invalid_manifest_error_fits_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(ReleaseError, match="is not a manifest"):
        find_differences(tmp_path, find_workspace())


def test_refuses_existing_bundle_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    with pytest.raises(ReleaseError, match="choose a new folder"):
        write_bundle(find_workspace(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.extended
def test_bundle_readme_states_inclusion_of_solutions(tmp_path: Path) -> None:
    workspace = find_workspace()
    write_bundle(workspace, tmp_path / "without")
    write_bundle(workspace, tmp_path / "with", with_solutions=True)
    assert not (tmp_path / "without" / "solutions").exists()
    assert len(list((tmp_path / "with" / "solutions").iterdir())) == 24
    assert "it has no solutions." in (tmp_path / "without" / "README.md").read_text()
    assert "it has the solutions, in `solutions/`." in (tmp_path / "with" / "README.md").read_text()
    assert not find_differences(tmp_path / "with", workspace)
