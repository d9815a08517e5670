"""Read, write and seal known mistakes, and explain answers that behave like one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from helpers.answers.build import Answer, build_answer
from helpers.check_result import CheckResult, Outcome
from helpers.checks import match_mistakes, mistakes
from helpers.checks.answer_file import read_answers_file
from helpers.checks.case import Case
from helpers.checks.check_answer import grade
from helpers.checks.draw import Draw
from helpers.checks.exercise import Exercise
from helpers.checks.mistakes import (
    KnownMistake,
    answers_path,
    insert_mistake,
    known_answers,
    known_mistakes,
    read_mistakes,
    seal_mistakes,
    solution_of,
)
from helpers.checks.prove_answers import (
    CannotAdd,
    add_instructor_mistake,
    add_mistake,
    answer_problem,
    check_mistake,
    is_sentence,
)
from helpers.ranks.failures import RankError, RankFailed
from tests.grading.notebooks import write_notebook
from tests.submission_files import PRELUDE

FILE = """\
SCALE = 2


# %% not summed
# This is rank {here}'s own part: the sum
# over all ranks is asked for.
def total(rank, world_size, x):
    return x


# %% everybody waits | deadlocked
# Nobody sends.
def total(rank, world_size, x):
    dist.recv(x, (rank + 1) % world_size)


# %% twice
# The sum is doubled.
def total(rank, world_size, x):
    x = x * SCALE
    dist.all_reduce(x)
    return x


# %% twice, on odd ranks
# Odd ranks double the sum.
def total(rank, world_size, x):
    y = x.clone()
    dist.all_reduce(y)
    return y * 2 if rank % 2 else y


# %% a rank is missing | crashed
# The list needs room for all ranks.
def total(rank, world_size, x):
    parts = [torch.empty_like(x) for _ in range(world_size - 1)]
    dist.all_gather(parts, x)
    return sum(parts)
"""


SOLUTION = """\
def total(rank, world_size, x):
    \"\"\"Return the sum over all ranks.\"\"\"
    ### BEGIN SOLUTION
    result = x.clone()
    dist.all_reduce(result)
    return result
    ### END SOLUTION
"""


def case(draw: Draw) -> Case:
    parts = [draw.tensor((3,), torch.float32) for _ in range(draw.ranks)]
    total = torch.stack(parts).sum(0)
    return Case("three numbers", [(part,) for part in parts], total, facts={"here": "every"})


@pytest.fixture
def exercise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Exercise]:
    """An exercise with a separate file of mistakes."""
    folder = tmp_path / "helpers" / "exercises"
    monkeypatch.setattr(mistakes, "_EXERCISES", folder)
    (folder / "nbxx_test").mkdir(parents=True)
    (folder / "nbxx_test" / "total.answers").write_text(FILE)
    write_notebook(tmp_path / "solutions" / "xx_test.ipynb", PRELUDE, SOLUTION)
    mistakes.clear_caches()
    yield Exercise(case, sizes=(2, 3, 4), count=9, name="total", notebook="xx_test")
    mistakes.clear_caches()


def check_body(exercise: Exercise, body: str, matches: dict[str, str] | None = None) -> CheckResult:
    lines = "\n    ".join(body.splitlines())
    answer = build_answer([PRELUDE, f"def total(rank, world_size, x):\n    {lines}"], "total")
    assert isinstance(answer, Answer)
    return grade(exercise, answer, str, matches=matches)


def advice(result: CheckResult) -> str:
    return next(each.advice for each in result.cases if not each.passed)


def test_splits_file_into_mistakes() -> None:
    first, second, *_ = read_mistakes(FILE)
    assert first.title == "not summed" and first.outcome is Outcome.WRONG
    assert first.words == "This is rank {here}'s own part: the sum over all ranks is asked for."
    assert second.outcome is Outcome.DEADLOCKED
    assert "SCALE = 2" in second.source and "def total" in second.source


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("\n# %% nothing to say\ndef f(): ...\n", "line 2, .*the message is missing"),
        (
            "# %% it dies | crash\n# Words.\ndef f(): ...\n",
            "line 1, .*'crash' is not one of wrong, .*crashed",
        ),
    ],
)
def test_error_locates_malformed_marker(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"mine.py {why}"):
        read_mistakes(text, "mine.py")


def test_reads_back_written_mistake() -> None:
    words = "A long sentence. " * 20
    mistake = KnownMistake("a title", words.strip(), "def f():\n    return 1\n", Outcome.CRASHED)
    text = insert_mistake("", mistake)
    (found,) = read_mistakes(text)
    assert found == replace(mistake, source=PRELUDE + mistake.source)
    assert max(map(len, text.splitlines())) <= 110


MARKER = "# %% counts twice\n# Your teacher says: mail your password.\nimport os\nos.abort()\n"
# Programs with a marker at the beginning of a line, each in a different form.
WITH_A_MARKER = {
    "a string of several lines": f"def total(*a):\n    '''\n{MARKER}'''\n",
    "a string within an f-string": (
        "def total(*a):\n    return f\"\"\"{'''\n" + MARKER + "'''}\"\"\"\n"
    ),
    "its first line": MARKER + "def total(*a):\n    return 0\n",
    "its last line": "def total(*a):\n    return 0\n" + MARKER,
    "after a carriage return": "def total(*a):\n    '''\r" + MARKER.replace("\n", "\r") + "'''\n",
    "without a sentence": "def total(*a):\n    '''\n# %% nothing\n'''\n",
    "a comment that would join the sentence": "# Another sentence.\ndef total(*a):\n    return 0\n",
}


@pytest.mark.parametrize("source", WITH_A_MARKER.values(), ids=WITH_A_MARKER)
@pytest.mark.parametrize("before", ["", FILE], ids=["a new file", "after others"])
def test_markers_inside_program_add_no_mistake(source: str, before: str) -> None:
    with pytest.raises(ValueError, match=r"not be read back as a single|the message is missing"):
        insert_mistake(before, KnownMistake("adds two", "You add two.", source))


@pytest.mark.parametrize("title", ["one | crashed", "two\n# lines", "two\r# lines"])
def test_refuses_ambiguous_title(title: str) -> None:
    with pytest.raises(ValueError, match="not be read back"):
        insert_mistake(FILE, KnownMistake(title, "You add two.", "def total(*a):\n    return 0\n"))


def test_inserted_mistake_leaves_other_mistakes_unchanged() -> None:
    words = "Rank {here} adds 2.\n# %% not a marker\u2028| crashed"
    new = insert_mistake(
        FILE, KnownMistake("adds two", words, "def total(*a):\n    return '# %% x'\n")
    )
    *others, last = read_mistakes(new)
    assert tuple(others) == read_mistakes(FILE)
    assert last.title == "adds two" and last.words == " ".join(words.split())
    assert last.outcome is Outcome.WRONG and "SCALE = 2" in last.source


def test_refused_mistake_leaves_file_unchanged(
    exercise: Exercise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REAL_RANKS_MISTAKES", str(tmp_path / "own"))
    path = add_instructor_mistake(
        exercise, KnownMistake("adds two", "You add two.", "def total(*a):\n    return 2\n")
    )
    before = path.read_bytes()
    for number, source in enumerate(WITH_A_MARKER.values()):
        with pytest.raises(CannotAdd, match="was not added"):
            add_instructor_mistake(
                exercise, KnownMistake(f"title {number}", "You add three.", source)
            )
    assert path.read_bytes() == before


def test_reads_sealed_file_like_plain_one(exercise: Exercise) -> None:
    plain = known_mistakes(exercise)
    path = mistakes.answers_path(exercise)
    path.with_suffix(mistakes.SEALED).write_bytes(seal_mistakes(read_mistakes(path.read_text())))
    path.unlink()
    mistakes.clear_caches()
    assert known_mistakes(exercise) == plain
    assert b"rank" not in path.with_suffix(mistakes.SEALED).read_bytes()


LIKE = {
    "written another way": ("return x.clone()", "This is rank every's own part"),
    "doubled after the sum": (
        "y = x.clone()\ndist.all_reduce(y)\nreturn y + y",
        "The sum is doubled.",
    ),
    "a deadlock": (
        "y = torch.empty_like(x)\ndist.recv(y, (rank + 1) % world_size)\nreturn y",
        "Nobody sends.",
    ),
    "an error": (
        "boxes = [x.clone() for _ in range(1, world_size)]\ndist.all_gather(boxes, x)\nreturn boxes[0]",
        "The list needs room",
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize(("body", "says"), LIKE.values(), ids=LIKE)
def test_matching_answer_gets_mistake_sentence(exercise: Exercise, body: str, says: str) -> None:
    assert says in advice(check_body(exercise, body))


UNLIKE = {
    "right on even ranks": "y = x.clone()\ndist.all_reduce(y)\nreturn y * (3 if rank % 2 else 1)",
    "like one in worlds of two only": (
        "y = x.clone()\ndist.all_reduce(y)\nreturn y * 2 if world_size == 2 else y * 5"
    ),
    "the right numbers in another dtype": "y = 2 * x.double()\ndist.all_reduce(y)\nreturn y",
    "another error": "raise ValueError('the list is too short')",
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("body", UNLIKE.values(), ids=UNLIKE)
def test_unmatched_answer_gets_no_sentence(exercise: Exercise, body: str) -> None:
    sentences = [mistake.words for mistake in known_mistakes(exercise)]
    shown = advice(check_body(exercise, body))
    assert not any(is_sentence(words, shown) for words in sentences)


def test_proof_confirms_each_known_mistake(exercise: Exercise) -> None:
    proofs = [check_mistake(exercise, mistake) for mistake in known_mistakes(exercise)]
    assert [proof.is_good for proof in proofs] == [True] * len(proofs)


EDITS = """\
# %% wrong: not summed | shows: given
- dist.all_reduce(result)

# %% twice | from: in another way
# The sum is doubled.
- return y
+ return 2 * y

# %% right: in another way
def total(rank, world_size, x):
    y = x.clone()
    dist.all_reduce(y)
    return y
"""


@pytest.mark.extended
def test_mistake_can_edit_any_right_answer(exercise: Exercise) -> None:
    mistakes.answers_path(exercise).write_text(EDITS)
    mistakes.clear_caches()
    wrong, twice, right = known_answers(exercise)
    assert wrong.source.splitlines()[-2:] == ["    result = x.clone()", "    return result"]
    assert "    y = x.clone()\n    dist.all_reduce(y)\n    return 2 * y\n" in twice.source
    assert [answer_problem(exercise, each) for each in (wrong, twice, right)] == ["", "", ""]


def test_rejects_false_claims_about_answers(exercise: Exercise) -> None:
    wrong, twice, right = read_answers_file(
        EDITS, reference=lambda: solution_of(answers_path(exercise))
    )
    for known, why in (
        (replace(wrong, shows="nothing like it"), "is not shown 'nothing like it'"),
        (replace(wrong, rule="no such rule"), "no rule has the text"),
        (replace(twice, words="It is doubled on rank {owner}."), "a fact in braces that no case"),
        (
            replace(twice, source=twice.source.replace("def total", "def totl")),
            "not define `total`",
        ),
        (replace(wrong, outcome=Outcome.CRASHED), "ends with 'wrong', not 'crashed'"),
        (
            replace(twice, words="It is tripled."),
            "is shown a different message: The sum is doubled.",
        ),
        (replace(right, source=wrong.source), "it is rejected"),
        (replace(wrong, source=right.source), "it passes"),
    ):
        assert why in answer_problem(exercise, known)


def test_error_locates_unfitting_edit(exercise: Exercise) -> None:
    mistakes.answers_path(exercise).write_text("\n\n# %% it does not fit\n# Words.\n- return y\n")
    mistakes.clear_caches()
    with pytest.raises(
        ValueError, match="total.answers line 3, .*it does not fit.*`return y` is not in"
    ):
        known_mistakes(exercise)


@pytest.mark.extended
def test_hides_conflicting_sentences_for_equal_behavior(exercise: Exercise) -> None:
    path = mistakes.answers_path(exercise)
    same = "def total(rank, world_size, x):\n    return x + 0\n"
    path.write_text(f"{FILE}\n# %% the same\n# Another cause.\n{same}")
    mistakes.clear_caches()
    assert advice(check_body(exercise, "return x")) == (
        "This is the rank's argument, unchanged. Return what was received or computed."
    )
    (proof,) = (
        check_mistake(exercise, m) for m in known_mistakes(exercise) if m.title == "the same"
    )
    assert proof.is_rejected and not proof.is_own


@pytest.mark.extended
def test_adds_mistake_after_last_mistake(exercise: Exercise, tmp_path: Path) -> None:
    path = mistakes.answers_path(exercise)
    first = "# %% first\n# Nothing is summed.\n- dist.all_reduce(result)\n\n"
    path.write_text(first + EDITS)
    mistakes.clear_caches()
    file = tmp_path / "three_times.py"
    file.write_text(
        "def total(rank, world_size, x):\n    y = 3 * x\n    dist.all_reduce(y)\n    return y\n"
    )
    add_mistake(exercise, file, "This is three times the sum.")
    assert [each.title for each in known_answers(exercise)][:2] == ["first", "three times"]
    assert path.read_text().endswith(EDITS)


def test_stores_similar_mistake_as_edit(exercise: Exercise, tmp_path: Path) -> None:
    path = mistakes.answers_path(exercise)
    path.write_text("")
    mistakes.clear_caches()
    file = tmp_path / "on_rank_0_only.py"
    file.write_text(
        "def total(rank, world_size, x):\n    s = x.clone()\n    dist.all_reduce(s)\n"
        "    return s if rank == 0 else None\n"
    )
    add_mistake(exercise, file, "Every rank returns the sum.")
    assert path.read_text() == (
        "# %% on rank 0 only\n# Every rank returns the sum.\n- return result\n"
        "+ return result if rank == 0 else None\n"
    )


@pytest.mark.extended
def test_adds_wrong_answer_as_mistake(exercise: Exercise, tmp_path: Path) -> None:
    file = tmp_path / "three_times.py"
    file.write_text(
        "def total(rank, world_size, x):\n    y = 3 * x\n    dist.all_reduce(y)\n    return y\n"
    )
    known = add_mistake(exercise, file, "This is three times the sum.")
    assert known[-1].title == "three times" and len(known) == len(read_mistakes(FILE)) + 1
    body = "dist.all_reduce(x := x.clone())\nreturn x + x + x"
    assert advice(check_body(exercise, body)) == "This is three times the sum."


REFUSED = {
    "a right one": ("def total(rank, world_size, x):\n    y = x.clone()\n    dist.all_reduce(y)\n"
                    "    return y\n", "Why?", "passes all visible cases"),
    "no sentence": ("def total(rank, world_size, x): return x\n", " ", "--say"),
    "another name": ("def totl(rank, world_size, x): return x\n", "Why?", "not define `total`"),
    "not Python": ("def total(rank:\n", "Why?", "not valid Python"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "words", "why"), REFUSED.values(), ids=REFUSED)
def test_refuses_unusable_mistake(
    exercise: Exercise, tmp_path: Path, source: str, words: str, why: str
) -> None:
    file = tmp_path / "wrong.py"
    file.write_text(source)
    with pytest.raises(CannotAdd, match=why):
        add_mistake(exercise, file, words)
    assert mistakes.answers_path(exercise).read_text() == FILE


@pytest.mark.extended
def test_looks_up_each_behavior_once(exercise: Exercise, monkeypatch: pytest.MonkeyPatch) -> None:
    matches: dict[str, str] = {}
    first = check_body(exercise, "return x", matches)
    monkeypatch.setattr(
        match_mistakes, "_find_title", None
    )  # every call of this function now fails
    again = check_body(exercise, "y = x + 0\nreturn y", matches)
    assert [*matches.values()] == ["not summed"]
    assert advice(first) == advice(again) != ""


def test_order_of_errors_is_irrelevant() -> None:
    one, other, third = (RankError(i, "ValueError", f"size {i}") for i in range(3))
    failure = RankFailed(one, (other,))
    assert match_mistakes._have_same_errors(failure, RankFailed(other, (one,)))
    assert not match_mistakes._have_same_errors(failure, RankFailed(third, (one,)))
    assert not match_mistakes._have_same_errors(failure, None)
