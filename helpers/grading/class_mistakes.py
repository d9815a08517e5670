"""Run `course mistakes RESULTS...`: group a class's wrong answers, and add a sentence for a group.

results of classes --groups--> a table, or one group's program
                                 `--say--> a known mistake in the instructor's file
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from helpers.check_result import Outcome
from helpers.checks.mistakes import KnownMistake
from helpers.checks.prove_answers import CannotAdd, add_instructor_mistake
from helpers.checks.registry import find_exercise
from helpers.grading.grade_options import CannotGrade
from helpers.grading.groups import AnswerGroup, group_answers, wrong_answers
from helpers.grading.record import Record, read_records
from helpers.grading.sandbox.batch_lock import BatchLock
from helpers.grading.sandbox.levels import Plan, choose_level
from helpers.grading.sandbox.staged import StagedFiles
from helpers.views.failed_case import in_case
from helpers.views.plain import clean, clip, for_log, plural

_MAX_LINE_CHARS = 160
_MAX_TITLE_WORDS = 8


def print_mistakes(
    results: Sequence[Path], only: str | None, number: int | None, sentence: str, sandbox: str
) -> int:
    """Print the groups of wrong answers in folders of results, or one group. Return the exit code.

    Args:
        only: The name of the only exercise to include, or None for all exercises.
        number: The number of one of the exercise's groups, from 1.
        sentence: A sentence that turns this group into a known mistake.

    Raises:
        click.ClickException: The options, results or sandbox cannot be used.
    """
    if (number is not None or sentence) and not (only and number):
        raise click.UsageError("To select a group, pass --only EXERCISE and --group NUMBER.")
    try:
        exercise = find_exercise(only) if only else None
        answers = wrong_answers([(str(folder), _read_records(folder)) for folder in results])
        if exercise is not None:
            answers = [answer for answer in answers if answer.exercise == exercise.name]
        with StagedFiles() as staged:
            plan = Plan(
                choose_level(sandbox, staged), staged, lock=BatchLock(str(results[0] / ".turns"))
            )
            found = group_answers(answers, plan)
    except (LookupError, CannotGrade) as error:
        raise click.ClickException(str(error.args[0] if error.args else error)) from error
    if not found:
        click.echo("No wrong answer was handed in.")
        return 0
    if number is None:
        click.echo(
            "\n".join(line for name, own in found.items() for line in _format_groups(name, own))
        )
        return 0
    assert exercise is not None
    groups = found[exercise.name]
    if not 1 <= number <= len(groups):
        raise click.ClickException(
            f"There are {len(groups)} groups: choose one from 1 to {len(groups)}."
        )
    click.echo("\n".join(_format_group(number, groups[number - 1])))
    if sentence:
        _add_mistake(groups[number - 1], sentence)
    return 0


def _read_records(folder: Path) -> list[Record]:
    try:
        records = read_records(folder)
    except (OSError, ValueError) as error:
        raise CannotGrade(f"{folder}: {error}") from None
    if not records:
        raise CannotGrade(f"{folder} has no records: pass a folder written by `course grade`.")
    return records


def _format_groups(name: str, groups: Sequence[AnswerGroup]) -> list[str]:
    learners = len({who for group in groups for who in group.learners})
    lines = [
        f"{find_exercise(name).heading}: {plural(learners, 'learner')}, {plural(len(groups), 'group')}"
    ]
    for number, group in enumerate(groups, 1):
        lines += [
            f"  {number}. {line}" if not k else f"     {line}"
            for k, line in enumerate(_summarize_group(group))
        ]
    return [*lines, ""]


def _summarize_group(group: AnswerGroup) -> list[str]:
    programs = plural(len(group.answers), "program")
    first = group.answers[0]
    lines = [f"{plural(len(group.learners), 'learner')} ({programs}), {first.outcome}"]
    if group.advice:
        lines.append(f"Message: {_clip_line(group.advice)}")
    else:
        lines.append(f"No message yet. {_clip_line(_describe_failure(group))}")
    return lines


def _describe_failure(group: AnswerGroup) -> str:
    """Return a line about one member's displayed failure. The other members behaved alike."""
    case = group.answers[0].case
    if case is None:
        return "Only hidden cases fail."
    for row in case.rows:
        if row.problem:
            values = f"rank {row.rank} gave {row.got}, not {row.expected}"
            return f"{in_case(case.label)}, {values}: {row.problem}"
    return f"{in_case(case.label)}: {'; '.join(case.broken) or case.message}"


def _clip_line(text: str) -> str:
    return clip(for_log(" ".join(clean(text).split())), _MAX_LINE_CHARS)


def _format_group(number: int, group: AnswerGroup) -> list[str]:
    first = group.answers[0]
    return [
        f"Group {number} of {find_exercise(first.exercise).heading}",
        *_summarize_group(group),
        "Its shortest program, without comments:",
        "",
        *(f"    {for_log(line)}" for line in first.source.splitlines()),
    ]


def _add_mistake(group: AnswerGroup, words: str) -> None:
    first = group.answers[0]
    exercise = find_exercise(first.exercise)
    # name it after the instructor's sentence; `normalize_program` has removed the learner's comments
    title = " ".join(re.findall(r"\w+", words)[:_MAX_TITLE_WORDS]).lower()
    mistake = KnownMistake(title, words, first.source, Outcome(first.outcome))
    try:
        path = add_instructor_mistake(exercise, mistake)
    except CannotAdd as error:
        raise click.ClickException(str(error)) from error
    click.echo(
        f"\nAdded to {path}. Read the program above once more: your own checks of {exercise.name} run it "
        f"from now on, without a sandbox. `course mistakes {exercise.name}` proves it."
    )
