"""The wrong answers that a teacher meets: the known mistakes, in words for people.

A sentence's names in braces, which a verdict fills in from the case, are shown as names.
"""

from __future__ import annotations

import re
from dataclasses import replace

from helpers.checks.headings import Heading
from helpers.checks.mistakes import KnownMistake, known_mistakes


def usual_wrong_answers(exercise: Heading) -> tuple[KnownMistake, ...]:
    """Return an exercise's known mistakes in the order of their file."""
    return tuple(
        replace(mistake, words=re.sub(r"\{(\w+)[^{}]*\}", r"⟨\1⟩", mistake.words))
        for mistake in known_mistakes(exercise)
    )
