"""Assert that exercises with the same mistake in common all cover it.

`families.toml` lists, for each kind of mistake, the exercises in which a learner can make it.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from helpers.checks.known_outcomes import known_outcomes
from helpers.checks.mistakes import known_answers
from helpers.checks.registry import exercises, get

FAMILIES = tomllib.loads((Path(__file__).parent / "families.toml").read_text("utf-8"))["family"]
FIELDS = {"kind", "entries", "reasons"}


@pytest.mark.parametrize("family", FAMILIES, ids=lambda each: each["kind"])
def test_members_of_family_cover_mistake(family: dict[str, Any]) -> None:
    entries, reasons = family.get("entries", {}), family.get("reasons", {})
    assert set(family) <= FIELDS
    assert len(entries) + len(reasons) >= 2
    assert entries.keys() | reasons.keys() <= set(exercises())
    assert not entries.keys() & reasons.keys()
    assert all(reasons.values())
    unknown = {name: title for name, title in entries.items() if title not in titles_of(name)}
    assert not unknown


def titles_of(name: str) -> set[str]:
    """Return the titles of an exercise's wrong answers, and of mistakes shared by its notebook."""
    exercise = get(name)
    wrong = {known.title for known in known_answers(exercise) if known.kind.name != "RIGHT"}
    return wrong | {mistake.title for mistake in known_outcomes(exercise)}


def test_kinds_name_one_family_each() -> None:
    counts = Counter(family["kind"] for family in FAMILIES)
    assert [kind for kind, count in counts.items() if count > 1] == []
