"""Assert that an answer that always returns the same value earns few points."""

from __future__ import annotations

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.checks.check_answer import grade
from helpers.checks.registry import get

ANSWERS = {
    "who_hangs": (
        "dumps",
        [
            "('none', 0, [])",
            "('missing', 3, [0])",
            "('op', 4, [1])",
            "('missing', 5, [1])",
            "dumps",
        ],
    ),
}
CASES = [(name, given, value) for name, (given, values) in ANSWERS.items() for value in values]


@pytest.mark.extended
@pytest.mark.parametrize(("name", "given", "value"), CASES)
def test_constant_answer_earns_at_most_sixth(name: str, given: str, value: str) -> None:
    answer = build_answer([f"def {name}({given}):\n    return {value}\n"], name)
    assert isinstance(answer, Answer)
    shares = []
    for secret in ("visible", "one secret", "another"):
        result = grade(get(name), answer, str, secret)
        shares.append(result.points / result.out_of)
    assert max(shares) <= 0.17, shares
