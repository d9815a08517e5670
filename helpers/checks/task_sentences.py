"""List the sentences of an exercise's task that permit or require something, next to their tests.

    solutions/NN_topic.ipynb: from the heading to the stub --> its sentences
    the exercise's rules, drawn cases and file of answers  --> the names of its tests

An author compares both lists: each sentence needs a case, a rule or a wrong answer that tests it. No program
can decide whether a name belongs to a sentence, so this module does not match them.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

from helpers.checks.exercise import Exercise
from helpers.checks.mistakes import known_answers

_DEMANDS = re.compile(
    r"\b(may|must|can|need|only|no|not|none|never|always|each|every|any|all|once|one|at most|at least|same|"
    r"different|differ|empty|ignored?|several|0)\b",
    re.IGNORECASE,
)
_MAX_LABELS = 12
"""Largest number of listed case labels. Labels that differ only in numbers count as one."""


def list_sentences_and_tests(exercise: Exercise) -> str:
    """Return both lists as text."""
    labels = {re.sub(r"\d[\d,.]*", "#", case.label): case.label for case in exercise.draw()}
    lists = {
        "permits or requires": demanding_sentences(read_task(exercise)),
        "rules": [rule.text for rule in exercise.rules],
        "cases": list(labels.values())[:_MAX_LABELS],
        "answers": [answer.kind.value + answer.title for answer in known_answers(exercise)],
    }
    lines = [exercise.heading]
    for name, entries in lists.items():
        lines += [f"  {name}:", *(f"    {entry}" for entry in entries)]
    return "\n".join(lines)


def read_task(exercise: Exercise) -> str:
    """Return the text of a task, from the cell with its heading to its stub."""
    path = Path(__file__).parents[2] / "solutions" / f"{exercise.notebook}.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    heading = f"Exercise {exercise.number}:"
    first = next(i for i, cell in enumerate(cells) if heading in cell.source)
    task = []
    for cell in cells[first:]:
        if "exercise" in cell.metadata.get("tags", ()):
            break
        if cell.cell_type == "markdown":
            task.append(cell.source)
    text = "\n\n".join(task)
    return text[text.index(heading) :]


def demanding_sentences(task: str) -> list[str]:
    """Return the sentences of a task that permit or require something. A list item is one sentence."""
    text = re.sub(r"```[\s\S]*?```", "", task.partition("\n")[2])
    parts = [
        part.strip()
        for line in text.splitlines()
        for part in ([line] if line.lstrip().startswith("- ") else re.split(r"(?<=[.:;])\s+", line))
    ]
    return [part.removeprefix("- ") for part in parts if _DEMANDS.search(part)]
