"""Write a check's result for its reader: inputs, expected and actual values, the rank, and where to look.

`course check` prints the text. Everything from an answer is cleaned and clipped.
"""

from __future__ import annotations

import re
from collections import Counter
from html import escape

from helpers.check_result import CaseVerdict, CheckResult, Outcome, Row
from helpers.views.live import widgets_can_live
from helpers.views.palette import RIGHT, WRONG
from helpers.views.plain import clean, clip, code_to_html, join_words, plural
from helpers.views.timeline import player_html

_MAX_ROWS, _MAX_CASES = 8, 8
# Longer labels, one below the other, would hide the finding below them. The shown case has them whole.
_MAX_LABEL_CHARS = 60
_MAX_WHOLE_LABEL_CHARS = 170
_MAX_ARGUMENTS_CHARS = 600
_MAX_MESSAGE_CHARS = 3000
_MAX_PROBLEM_CHARS = 300
_VALUE_FIELDS = ("given", "expected", "got")
_CELL = "text-align: left; padding: 1px 12px 1px 0px; vertical-align: top"


def verdict_text(result: CheckResult) -> str:
    """Write a result as plain text, which is the same for the same result on every machine."""
    lines = [_headline(result)]
    if result.message:
        lines += _indent(result.message)
    if result.passed:
        lines += [f"  ✓ {each}" for each in _proof_line(result)]
    else:
        lines += [f"  {outcome:<14} {label}" for outcome, label in _outcome_lines(result)]
    worst = _shown_case(result)
    if worst is not None:
        lines += _case_text(worst)
        lines += [f"  {again}"] if (again := _repeat_call(result)) else []
    lines += [f"  note: {clip(clean(note), 400)}" for note in result.notes]
    if _has_hint(result):
        lines.append(f"  Stuck? {_hint_call(result)}")
    if result.passed and result.next_step:
        lines.append(f"  Next: {result.next_step}")
    return "\n".join(lines)


def verdict_html(result: CheckResult) -> str:
    """Write a result as HTML that needs no style sheet and survives JupyterLab's sanitizer.

    On a live page, the failed run is played below it; a stuck run also shows which rank waits for which. If
    the answer passed, its largest run starts to play by itself.
    """
    if result.outcome is Outcome.NOT_ATTEMPTED:
        return _quiet_html(f"{_headline(result)}: {result.message}")
    if result.passed:
        return _passed_html(result) + player_html(result.run, at_once=True)
    parts = [f'<div style="font-weight: bold">{escape(_headline(result))}</div>']
    if result.message:
        parts.append(_paragraph_html(result.message))
    if result.cases:
        marks = "".join(
            f'<tr><td style="{_CELL}">{escape(outcome)}</td>'
            f'<td style="{_CELL}">{escape(label)}</td></tr>'
            for outcome, label in _outcome_lines(result)
        )
        parts.append(f'<table style="margin: 4px 0px">{marks}</table>')
    worst = _shown_case(result)
    player = "" if worst is None else player_html(worst.run)
    if worst is not None:
        parts.append(_case_html(worst, bool(player)))
        parts += [_quiet_html(again)] if (again := _repeat_call(result)) else []
    parts += _notes(result)
    if _has_hint(result):
        parts.append(_quiet_html(f"Stuck? {_hint_call(result)}"))
    return (
        f'<div style="border-left: 6px solid {WRONG}; padding: 2px 10px; max-width: 70em">'
        f"{''.join(parts)}</div>{player}"
    )


def _passed_html(result: CheckResult) -> str:
    """Draw a pass: one strong line, what was proved, and what to do next."""
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
    return [_quiet_html(f"note: {clip(clean(note), 400)}") for note in result.notes]


def _proof_line(result: CheckResult) -> list[str]:
    """Return what a pass proves: in which cases the results are right, then each rule that held."""
    if not result.cases:
        return [*result.rules]
    sizes = [*map(str, result.sizes)]
    whole = len(sizes) > 2 and result.sizes[-1] - result.sizes[0] == len(sizes) - 1
    named = f"{sizes[0]} to {sizes[-1]}" if whole else join_words(sizes)
    ranks = f" on {named} rank{'s' * (sizes != ['1'])}" if sizes else ""
    return [f"Right in {plural(len(result.cases), 'case')}{ranks}", *result.rules]


def _outcome_lines(result: CheckResult) -> list[tuple[str, str]]:
    """Return (outcome, description) for each line, which stands for one case or for all with this outcome."""
    longest = max((len(case.label) for case in result.cases), default=0)
    if len(result.cases) == 1 or (len(result.cases) <= _MAX_CASES and longest <= _MAX_LABEL_CHARS):
        cases = Counter((case.outcome.value, case.label) for case in result.cases)
        return [
            (outcome, f"{label} ({count} times)" if count > 1 else label)
            for (outcome, label), count in cases.items()
        ]
    counts = Counter(case.outcome.value for case in result.cases)
    return [(outcome, plural(count, "case")) for outcome, count in counts.items()]


def _argument_lines(label: str) -> list[str]:
    """Return a long label's arguments, one for each `name=value`, or [] if it has no such form."""
    parts = re.split(r", (?=\w+=)", clip(label, _MAX_ARGUMENTS_CHARS))
    is_list = len(label) > _MAX_LABEL_CHARS and len(parts) > 1 and "=" in parts[0]
    return parts if is_list else []


def _has_hint(result: CheckResult) -> bool:
    return bool(result.heading) and not result.passed


def _hint_call(result: CheckResult) -> str:
    return f'hint("{result.name}")'


def _repeat_call(result: CheckResult) -> str:
    """Return how to repeat the call of the case that is shown, whose arguments may be too long to read."""
    return f"The same call again: {result.name}(*result.given)" if result.given else ""


def _headline(result: CheckResult) -> str:
    passed = sum(case.passed for case in result.cases)
    # Points are for graders. Learners want to know whether an answer passes, and how many cases pass.
    share = f", {passed} of {plural(len(result.cases), 'case')} passed" if passed else ""
    tick, share = ("✓ ", "") if result.passed else ("", share)
    return f"{tick}{result.heading or result.name}: {result.outcome.value}{share}"


def _shown_case(result: CheckResult) -> CaseVerdict | None:
    return next((case for case in result.cases if not case.passed), None)


def _case_text(case: CaseVerdict) -> list[str]:
    if arguments := _argument_lines(case.label):
        lines = ["  In the case", *(f"    {argument}" for argument in arguments)]
    else:
        lines = [f"  In the case {clip(case.label, _MAX_WHOLE_LABEL_CHARS)}:"]
    for row in _rows(case):
        who = f"rank {row.rank}: " if len(case.rows) > 1 else ""
        lines.append(f"    {who}{_describe_row(row)}")
    lines += ["    " + _hidden_rows_text(case)] if _hidden_rows_text(case) else []
    if case.message:
        lines += _indent(case.message, "    ")
    lines += [f"    how the ranks communicated: {clip(clean(text), 400)}" for text in case.broken]
    if _advice(case):
        lines.append(f"  Start here: {_advice(case)}")
    return lines


def _advice(case: CaseVerdict, played: bool = False) -> str:
    """Return where to look first, and how to draw a deadlock if it is not drawn already."""
    if case.advice or case.outcome is not Outcome.DEADLOCKED or played:
        return case.advice
    if not widgets_can_live():  # a terminal draws nothing
        return ""
    return "`from helpers import wait_graph`; wait_graph(result.run) draws who waits for whom."


def _describe_row(row: Row) -> str:
    parts = [f"given {row.given}" if row.given else ""]
    parts.append(f"expected {row.expected}" if row.expected else "")
    parts.append(f"got {clean(row.got)}" if row.got else "")
    text = ", ".join(part for part in parts if part)
    if not text:
        return clip(clean(row.problem), _MAX_PROBLEM_CHARS) or "right"
    return (
        f"{text}  <- {clip(clean(row.problem), _MAX_PROBLEM_CHARS)}"
        if row.problem
        else f"{text}  (right)"
    )


def _rows(case: CaseVerdict) -> list[Row]:
    """Return the rows to show: all rows of a small world; for a large one, wrong rows first."""
    if len(case.rows) <= _MAX_ROWS:
        return list(case.rows) if any(row.problem for row in case.rows) else []
    return [row for row in case.rows if row.problem][:_MAX_ROWS]


def _hidden_rows_text(case: CaseVerdict) -> str:
    wrong = sum(bool(row.problem) for row in case.rows)
    hidden = wrong - sum(bool(row.problem) for row in _rows(case))
    return f"... and {plural(hidden, 'more wrong rank')}" if hidden > 0 else ""


def _case_html(case: CaseVerdict, played: bool) -> str:
    if arguments := _argument_lines(case.label):
        cells = "".join(
            f'<tr><td style="{_CELL}">{escape(name)}</td><td style="{_CELL}">{escape(value)}</td></tr>'
            for name, _, value in (argument.partition("=") for argument in arguments)
        )
        parts = [f'<div>In the case</div><table style="margin: 4px 0px">{cells}</table>']
    else:
        label = escape(clip(case.label, _MAX_WHOLE_LABEL_CHARS))
        parts = [f"<div>In the case <b>{label}</b>:</div>"]
    rows = _rows(case)
    if rows:
        said = tuple(name for name in _VALUE_FIELDS if any(getattr(row, name) for row in rows))
        one = len(case.rows) == 1
        names = ("rank",) * (not one) + said + ("",)
        head = "".join(f'<th style="{_CELL}">{name}</th>' for name in names)
        body = "".join(_row_html(row, said, one) for row in rows)
        parts.append(f'<table style="margin: 4px 0px"><tr>{head}</tr>{body}</table>')
    if _hidden_rows_text(case):
        parts.append(_quiet_html(_hidden_rows_text(case)))
    if case.message:
        lines = case.message.splitlines()
        if (
            played and case.outcome is Outcome.DEADLOCKED
        ):  # the picture shows what each rank waits for
            lines = [line for line in lines if not line.startswith("  rank ")]
        parts.append(_paragraph_html("\n".join(lines)))
    parts += [_paragraph_html("how the ranks communicated: " + text) for text in case.broken]
    if advice := _advice(case, played):
        parts.append(f"<div><b>Start here:</b> {code_to_html(clean(advice))}</div>")
    return "".join(parts)


def _row_html(row: Row, said: tuple[str, ...], one: bool) -> str:
    arrow = "&larr; " if said else ""
    problem = (
        arrow + code_to_html(clip(clean(row.problem), _MAX_PROBLEM_CHARS))
        if row.problem
        else "right"
    )
    values = tuple(getattr(row, name) for name in said)
    texts = values if one else (str(row.rank), *values)
    cells = [escape(clean(text)) for text in texts]
    return (
        "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in [*cells, problem]) + "</tr>"
    )


def _paragraph_html(text: str) -> str:
    style = "margin: 2px 0px; padding: 0px; white-space: pre-wrap; background: transparent"
    return f'<pre style="{style}">{code_to_html(clip(clean(text), _MAX_MESSAGE_CHARS))}</pre>'


def _quiet_html(text: str) -> str:
    return f'<div style="opacity: 0.7; font-size: 90%">{code_to_html(text)}</div>'


def _indent(text: str, by: str = "  ") -> list[str]:
    return [by + line for line in clip(clean(text), _MAX_MESSAGE_CHARS).splitlines()]
