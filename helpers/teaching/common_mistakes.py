"""List the usual wrong answers for teachers: the known mistakes, with readable sentences.

Names in braces, which verdicts replace with facts of the case, are shown as names in angle brackets.
"""

from __future__ import annotations

import re
from dataclasses import replace

from helpers.checks.headings import Heading
from helpers.checks.mistakes import KnownMistake, known_mistakes


def common_mistakes(exercise: Heading) -> tuple[KnownMistake, ...]:
    """Return an exercise's known mistakes in the order of their file."""
    return tuple(
        replace(mistake, words=re.sub(r"\{(\w+)[^{}]*\}", r"⟨\1⟩", mistake.words))
        for mistake in known_mistakes(exercise)
    )
