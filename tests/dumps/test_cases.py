"""Each recorded or handmade case is explained at least as well as by torch's own analyzer."""

from __future__ import annotations

import re

import pytest

from helpers.dumps.explain import HANG, NOTHING, explain_folder
from tests.dumps.verdicts import CASES, EXPECTED, WRONG_BLAME, torch_verdict


def test_expected_verdicts_cover_all_cases() -> None:
    assert sorted(EXPECTED) == sorted(path.name for path in CASES.iterdir())
    assert len(EXPECTED) >= 20


@pytest.mark.parametrize("name", EXPECTED)
def test_explanation_states_cause(name: str) -> None:
    expected, explanation = EXPECTED[name], explain_folder(CASES / name)
    assert not explanation.problems
    diagnosis = explanation.diagnosis
    if diagnosis is None:
        assert (expected.kind, explanation.exit_code) == ("", NOTHING)
        return
    assert (diagnosis.kind, explanation.exit_code) == (expected.kind, HANG), explanation.text
    assert diagnosis.guilty == expected.guilty, explanation.text
    for words in expected.words:
        assert words in diagnosis.summary, explanation.text
    assert diagnosis.summary in " ".join(explanation.text.split())


@pytest.mark.parametrize("name", EXPECTED)
def test_verdict_includes_torch_verdict(name: str) -> None:
    """Each rank blamed by torch is either a rank to look at first or a waiting rank."""
    theirs = torch_verdict(CASES / name, add_names=name.startswith("gloo"))
    explanation = explain_folder(CASES / name)
    if theirs == "all match":
        assert explanation.diagnosis is None or EXPECTED[name].kind in {"no_dump", "same_call"}
        return
    assert explanation.diagnosis is not None, theirs
    blamed = {int(rank) for rank in re.findall(r"Culprit rank (\d+)", theirs)}
    # After its first finding, the analyzer no longer pairs calls.
    first = re.search(r"missing ranks: \{([\d, ]+)\}", theirs)
    blamed |= {int(rank) for rank in first[1].split(",")} if first else set()
    blamed -= WRONG_BLAME.get(name, set())
    named = set(explanation.diagnosis.guilty)
    named |= {rank for wait in explanation.diagnosis.waits for rank in wait.waits_for}
    assert blamed <= named, theirs
