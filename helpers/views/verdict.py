"""Write a check's result for its reader: inputs, expected and actual values, the rank, and advice.

`course check` prints the text. All texts from an answer are cleaned and clipped.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from html import escape

from helpers.check_result import CaseVerdict, CheckResult, Outcome
from helpers.views.failed_case import (
    CELL,
    MAX_LABEL_CHARS,
    case_html,
    case_lines,
    indent,
    paragraph_html,
    quiet_html,
)
from helpers.views.live import in_kernel
from helpers.views.palette import RIGHT, WRONG
from helpers.views.plain import clean, clip, join_words, plural
from helpers.views.timeline import player_html

_MAX_CASES = 8


def verdict_text(result: CheckResult) -> str:
    """Write a result as plain text, which is the same on every machine."""
    lines = [_headline(result)]
    if result.message:
        lines += indent(result.message)
    if result.passed:
        lines += [f"  ✓ {each}" for each in _proof_line(result)]
    else:
        lines += [f"  {outcome:<14} {label}" for outcome, label in _outcome_lines(result)]
    worst = _shown_case(result)
    if worst is not None:
        lines += [f"  {line}" for line in case_lines(_with_drawing_advice(worst))]
        lines += [f"  {again}"] if (again := _repeat_call(result)) else []
    lines += [f"  note: {clip(clean(note), 400)}" for note in result.notes]
    if _has_hint(result):
        lines.append(f"  Stuck? {_hint_call(result)}")
    if result.passed and result.next_step:
        lines.append(f"  Next: {result.next_step}")
    return "\n".join(lines)


def verdict_html(result: CheckResult) -> str:
    """Write a result as HTML that needs no style sheet and survives JupyterLab's sanitizer.

    On a live page, the failed run is played below it. For a stuck run, it also shows which ranks wait for
    which. If the answer passed, its largest run starts to play automatically.
    """
    if result.outcome is Outcome.NOT_ATTEMPTED:
        return quiet_html(f"{_headline(result)}: {result.message}")
    if result.passed:
        return _passed_html(result) + player_html(result.run, at_once=True)
    parts = [f'<div style="font-weight: bold">{escape(_headline(result))}</div>']
    if result.message:
        parts.append(paragraph_html(result.message))
    if result.cases:
        marks = "".join(
            f'<tr><td style="{CELL}">{escape(outcome)}</td>'
            f'<td style="{CELL}">{escape(label)}</td></tr>'
            for outcome, label in _outcome_lines(result)
        )
        parts.append(f'<table style="margin: 4px 0px">{marks}</table>')
    worst = _shown_case(result)
    player = "" if worst is None else player_html(worst.run)
    if worst is not None:
        if player:
            worst = replace(worst, message=worst.drawn_message or worst.message)
        parts.append(case_html(worst if player else _with_drawing_advice(worst)))
        parts += [quiet_html(again)] if (again := _repeat_call(result)) else []
    parts += _notes(result)
    if _has_hint(result):
        parts.append(quiet_html(f"Stuck? {_hint_call(result)}"))
    return (
        f'<div style="border-left: 6px solid {WRONG}; padding: 2px 10px; max-width: 70em">'
        f"{''.join(parts)}</div>{player}"
    )


def _passed_html(result: CheckResult) -> str:
    """Draw a pass: one prominent line, the proof, and the next step."""
    proved = "".join(
        f'<li style="list-style: none">✓ {escape(each)}</li>' for each in _proof_line(result)
    )
    parts = [f'<ul style="margin: 0px; padding: 0px">{proved}</ul>', *_notes(result)]
    if result.next_step:
        link = f'<a href="{escape(result.link)}">{escape(result.next_step)}</a>'
        go = link if result.link else escape(result.next_step)
        parts.append(f'<div style="margin-top: 6px; font-weight: bold">Next: {go}</div>')
    strong = "padding: 5px 14px; font-size: 115%; font-weight: bold; color: white"
    return (
        f'<div style="max-width: 70em"><div style="{strong}; background-color: {RIGHT}">'
        f"{escape(_headline(result))}</div>"
        f'<div style="border-left: 6px solid {RIGHT}; padding: 6px 10px">{"".join(parts)}</div></div>'
    )


def _notes(result: CheckResult) -> list[str]:
    return [quiet_html(f"note: {clip(clean(note), 400)}") for note in result.notes]


def _proof_line(result: CheckResult) -> list[str]:
    """Return the proof of a pass: the cases with right results, then each rule that held."""
    if not result.cases:
        return [*result.rules]
    sizes = [*map(str, result.sizes)]
    whole = len(sizes) > 2 and result.sizes[-1] - result.sizes[0] == len(sizes) - 1
    named = f"{sizes[0]} to {sizes[-1]}" if whole else join_words(sizes)
    ranks = f" on {named} rank{'s' * (sizes != ['1'])}" if sizes else ""
    return [f"Right in {plural(len(result.cases), 'case')}{ranks}", *result.rules]


def _outcome_lines(result: CheckResult) -> list[tuple[str, str]]:
    """Return (outcome, description) for each line, which is about one case or all cases with this outcome."""
    longest = max((len(case.label) for case in result.cases), default=0)
    if len(result.cases) == 1 or (len(result.cases) <= _MAX_CASES and longest <= MAX_LABEL_CHARS):
        cases = Counter((case.outcome.value, case.label) for case in result.cases)
        return [
            (outcome, f"{label} ({count} times)" if count > 1 else label)
            for (outcome, label), count in cases.items()
        ]
    counts = Counter(case.outcome.value for case in result.cases)
    return [(outcome, plural(count, "case")) for outcome, count in counts.items()]


def _has_hint(result: CheckResult) -> bool:
    return bool(result.heading) and not result.passed


def _hint_call(result: CheckResult) -> str:
    return f'hint("{result.name}")'


def _repeat_call(result: CheckResult) -> str:
    """Return a line that repeats the shown case's call, whose arguments may be too long to read."""
    return f"The same call again: {result.name}(*result.given)" if result.given else ""


def _headline(result: CheckResult) -> str:
    passed = sum(case.passed for case in result.cases)
    # Points are for graders. Learners want to know whether an answer passes, and how many cases have passed.
    share = f", {passed} of {plural(len(result.cases), 'case')} passed" if passed else ""
    tick, share = ("✓ ", "") if result.passed else ("", share)
    return f"{tick}{result.heading or result.name}: {result.outcome.value}{share}"


def _shown_case(result: CheckResult) -> CaseVerdict | None:
    return next((case for case in result.cases if not case.passed), None)


def _with_drawing_advice(case: CaseVerdict) -> CaseVerdict:
    """Add a sentence on drawing the wait graph to a deadlock without advice."""
    # a terminal cannot show pictures
    if case.advice or case.outcome is not Outcome.DEADLOCKED or not in_kernel():
        return case
    return replace(
        case,
        advice="`from helpers import wait_graph`; wait_graph(result.run) draws who waits for whom.",
    )
