"""Every kept answer is judged as a teacher would judge it, with a message that names its cause."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.checks.grade import grade
from helpers.checks.mistakes import known_mistakes
from helpers.checks.registry import exercises, get
from helpers.checks.result import CheckResult
from helpers.views.verdict import verdict_text
from tests.submission_files import PRELUDE, Sample, all_samples

HIDDEN = "a secret of the tests"
# The last two draw what others may not: a sharded layer on one rank, which keeps its gradients and trains x.
SECRETS = (HIDDEN, "secret 2", "secret 3")

# DTensor, FSDP and the like take a second to import: a rank server in use has done so long ago
pytestmark = pytest.mark.usefixtures("preloaded")


def judged(sample: Sample, secret: str) -> CheckResult:
    """Judge a sample up to the first case that fails: hundreds of them must take minutes, not hours."""
    answer = build_answer([PRELUDE, sample.source], sample.exercise)
    assert isinstance(answer, Answer), answer
    exercise = get(sample.exercise)
    return grade(exercise, answer, lambda index: f"cell {index}", secret, every_case=False)


ALL = all_samples()
RIGHT, WRONG = [s for s in ALL if s.right], [s for s in ALL if not s.right]
DEAR = {
    "async_checkpoint: rank 0 alone waits for the earlier one and for the others",
    "checkpoint_activations: runs again, but keeps everything as well",
    "checkpoint_and_resume: rank 0 alone asks for the random states",
    "find_unused: visits every path",
    "fsdp2_parity: numbers in place of names",
    "mpi_all_reduce: a collective that rank 0 alone calls",
    "one_f_one_b: the Works are waited for at once, but a list keeps what was sent",
    "quorum: a leader, whom the others poll",
    "rpc_parameter_server: starts RPC itself",
    "shrink_and_go_on: a new group only for new members",
    "shrink_and_go_on: all are expected for ever",
    "shrink_and_go_on: the same members need no new group",
    "swap: waits by polling",
}
"""Five seconds and more each, while others run."""
_BY = {(s.notebook, s.outcome): s for s in WRONG if str(s) not in DEAR}
FEW = [*_BY.values()]
"""To each notebook one for each way to fail. That each exercise rejects a known mistake is shown by
`test_mistakes`, that it accepts what is right by the reference solutions, which are tried with the notebooks.
`make soak` tries the others."""


def often(samples: list[Sample]) -> list[object]:
    """Leave those that are not among the few to `make soak`."""
    return [pytest.param(s, id=str(s), marks=() if s in FEW else pytest.mark.soak) for s in samples]


@pytest.mark.parametrize("sample", often(RIGHT))
def test_right_answers_pass(sample: Sample) -> None:
    result = judged(sample, "visible")
    assert result.passed, verdict_text(result)


@pytest.mark.soak
@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize("sample", RIGHT, ids=str)
def test_right_answers_pass_on_hidden_cases_too(sample: Sample, secret: str) -> None:
    result = judged(sample, secret)
    assert result.passed, verdict_text(result)


@pytest.mark.parametrize("sample", often(WRONG))
def test_wrong_answers_fail_and_the_message_names_the_cause(sample: Sample) -> None:
    result = judged(sample, "visible")
    text = verdict_text(result)
    assert result.outcome.value == sample.outcome, text
    assert re.search(sample.says, text), text
    assert not sample.mistake or result.mistake == sample.mistake, f"{result.mistake!r}\n{text}"


@pytest.mark.soak
@pytest.mark.parametrize("sample", WRONG, ids=str)
def test_wrong_answers_fail_on_hidden_cases_too(sample: Sample) -> None:
    assert not judged(sample, HIDDEN).passed


def test_every_exercise_has_six_wrong_and_two_right_answers() -> None:
    counts = Counter((sample.exercise, sample.right) for sample in ALL)
    for name, exercise in exercises().items():
        assert counts[name, False] + len(known_mistakes(exercise)) >= 6, name
        assert counts[name, True] >= 2, name


def test_every_sample_belongs_to_an_exercise_of_its_notebook() -> None:
    for sample in ALL:
        assert get(sample.exercise).notebook == sample.notebook, sample
