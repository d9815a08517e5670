"""Progress survives crashes, two kernels at once and damaged files, and never breaks a check."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.course import progress
from helpers.course.progress import (
    Progress,
    ProgressFormatError,
    QuizAnswers,
    Score,
    decode,
    encode,
)

DEADLINE_S = 60


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "work" / ".progress.json"
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(path))
    return path


def test_keeps_best_and_last_attempts(file: Path) -> None:
    assert progress.record_score("swap", "wrong", 0, 2) == ""
    assert progress.record_score("swap", "passed", 2, 2) == ""
    assert progress.record_score("swap", "crashed", 0, 2) == ""
    attempts = progress.read_progress().exercises["swap"]
    assert attempts.tries == 3
    assert (attempts.best.outcome, attempts.best.points) == ("passed", 2.0)
    assert (attempts.last.outcome, attempts.last.out_of) == ("crashed", 2.0)
    assert attempts.last.when.endswith("Z") and attempts.last.when >= attempts.best.when


def test_first_of_equal_scores_is_best() -> None:
    first, second = Score("wrong", 0, 2, "a"), Score("crashed", 0, 2, "b")
    done = Progress().with_score("swap", first).with_score("swap", second)
    assert done.exercises["swap"].best is first


def test_keeps_hints_and_quiz_answers(file: Path) -> None:
    progress.record_hint("swap", 2)
    progress.record_hint("swap", 1)  # another kernel has an older state
    for choice, correct in ((3, False), (1, True), (0, False)):
        progress.record_quiz("two-sends", choice, correct)
    done = progress.read_progress()
    assert done.hints == {"swap": 2}
    answers = done.quizzes["two-sends"]
    assert replace(answers, when="") == QuizAnswers(3, 3, 0, True, "")


def test_reading_progress_creates_no_file(file: Path) -> None:
    assert progress.read_progress() == Progress()
    assert not file.parent.exists()


def test_progress_file_defaults_to_learner_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REAL_RANKS_PROGRESS", raising=False)
    path = progress.progress_file()
    assert path.name == ".progress.json" and path.parent.name == "work"
    assert (path.parents[1] / "pyproject.toml").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff\x00\xfe",
        b'{"version": 2}',
        b'{"version": 1}',
        b'{"version": 1, "exercises": [], "hints": {}, "quizzes": {}}',
        b'{"version": 1, "exercises": {"a": 1}, "hints": {}, "quizzes": {}}',
        b'{"version": 1, "exercises": {}, "hints": {"a": -1}, "quizzes": {}}',
        b'{"version": 1, "exercises": {}, "hints": {"a": true}, "quizzes": {}}',
        b"[" * 100_000,
        b" " * (progress.MAX_BYTES + 1),
    ],
)
def test_moves_damaged_file_aside_with_note(file: Path, content: bytes) -> None:
    file.parent.mkdir()
    for count, use in enumerate((read_note, record_one), start=1):
        file.write_bytes(content)
        note = use()
        kept = file.with_name(f".progress.corrupt-{count}.json")
        assert kept.name in note and kept.read_bytes() == content
    assert progress.read_progress().exercises["swap"].tries == 1


def record_one() -> str:
    return progress.record_score("swap", "passed", 1, 1)


def read_note() -> str:
    return progress.read_progress().note


@pytest.mark.parametrize("use", [record_one, read_note])
def test_folder_at_file_path_gives_note(file: Path, use: Callable[[], str]) -> None:
    file.mkdir(parents=True)
    assert str(file) in use()


def test_unwritable_folder_gives_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REAL_RANKS_PROGRESS", "/proc/nowhere/.progress.json")
    assert "could not be saved in /proc/nowhere" in record_one()
    assert progress.read_progress() == Progress()


def test_unwritable_but_readable_file_is_read(file: Path) -> None:
    record_one()
    lock = file.with_name(f"{file.name}.lock")
    lock.unlink()
    lock.mkdir()  # this represents a folder in which no lock can be made
    assert "could not be saved" in record_one()
    assert progress.read_progress().exercises["swap"].tries == 1


def test_unreleased_lock_gives_note(file: Path) -> None:
    record_one()
    with file.with_name(f"{file.name}.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "could not be saved" in record_one()
    assert record_one() == ""
    assert progress.read_progress().exercises["swap"].tries == 2


def python(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program])


@pytest.mark.extended
def test_concurrent_kernels_lose_no_score(file: Path) -> None:
    writers = [
        python(
            "from helpers.course.progress import record_score\n"
            f"for i in range(40): assert record_score('e{number}', 'passed', 1, 1) == ''\n"
            "for i in range(40): assert record_score('shared', 'passed', 1, 1) == ''\n"
        )
        for number in range(3)
    ]
    assert [writer.wait(DEADLINE_S) for writer in writers] == [0, 0, 0]
    tries = {name: done.tries for name, done in progress.read_progress().exercises.items()}
    assert tries == {"e0": 40, "e1": 40, "e2": 40, "shared": 120}


def test_killed_writer_leaves_valid_file(file: Path) -> None:
    record_one()
    for _ in range(5):
        writer = python(
            "from helpers.course.progress import record_score\nprint('on', flush=True)\n"
            "while True: record_score('other', 'wrong', 0, 1)"
        )
        try:
            before, deadline = other_tries(), time.monotonic() + DEADLINE_S
            while other_tries() < before + 3:  # wait until it is in the middle of writing
                assert writer.poll() is None and time.monotonic() < deadline
        finally:
            os.kill(writer.pid, signal.SIGKILL)
            writer.wait(DEADLINE_S)
        assert record_one() == ""
    assert progress.read_progress().exercises["swap"].tries == 6


def other_tries() -> int:
    done = progress.read_progress()
    assert not done.note
    return done.exercises["other"].tries if "other" in done.exercises else 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(st.text(max_size=40))
def test_decode_refuses_invalid_text(text: str) -> None:
    with pytest.raises(ProgressFormatError):
        decode(text)


@pytest.mark.extended
@given(JSON, JSON, JSON)
def test_decode_rejects_malformed_progress(exercises: object, hints: object, quiz: object) -> None:
    content = {"version": 1, "exercises": exercises, "hints": hints, "quizzes": {"q": quiz}}
    try:
        decode(json.dumps(content))
    except ProgressFormatError:
        pass
    else:
        raise AssertionError("a quiz has five fields, which none of these has")


SCORES = st.builds(
    Score, st.text(max_size=9), st.floats(0, 9), st.floats(0, 9), st.text(max_size=9)
)


@pytest.mark.extended
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), SCORES)), st.integers(0, 9))
def test_encode_and_decode_are_inverse(scores: list[tuple[str, Score]], level: int) -> None:
    done = Progress().with_hint("a", level).with_answer("q", level, False, "now")
    for exercise, score in scores:
        done = done.with_score(exercise, score)
    assert decode(encode(done)) == done
