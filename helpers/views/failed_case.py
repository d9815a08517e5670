"""Describe a failed case in the same words in notebooks, terminals, reports and JUnit files.

Only this module contains the headings of a case. Texts from ranks are cleaned and clipped.
"""

from __future__ import annotations

import re
from html import escape

from helpers.check_result import CaseRecord, Row
from helpers.views.plain import clean, clip, code_to_html, plural

IN_CASE = "In the case"
TRAFFIC = "How the ranks communicated:"
START = "Start here:"

CELL = "text-align: left; padding: 1px 12px 1px 0px; vertical-align: top"
MAX_MESSAGE_CHARS = 3000
# Longer labels below each other would hide the finding at the end. The displayed case has the full label.
MAX_LABEL_CHARS = 60
_MAX_ROWS, _MAX_BROKEN = 8, 10
_MAX_WHOLE_LABEL_CHARS = 170
_MAX_ARGUMENTS_CHARS = 600
_MAX_PROBLEM_CHARS = 300
_MAX_RULE_CHARS = 400
_VALUE_FIELDS = ("given", "expected", "got")


def in_case(label: str) -> str:
    """Return the beginning of a sentence about a case."""
    return f"{IN_CASE} {label}"


def case_lines(case: CaseRecord) -> list[str]:
    """Return a failed case as lines of text: values, message, rules, and where to start."""
    if arguments := _argument_lines(case.label):
        lines = [IN_CASE, *(f"  {argument}" for argument in arguments)]
    else:
        lines = [f"{in_case(clip(case.label, _MAX_WHOLE_LABEL_CHARS))}:"]
    for row in shown_rows(case):
        who = f"rank {row.rank}: " if len(case.rows) > 1 else ""
        lines.append(f"  {who}{_describe_row(row)}")
    lines += ["  " + hidden_rows_text(case)] if hidden_rows_text(case) else []
    if case.message:
        lines += indent(case.message)
    lines += [
        f"  {TRAFFIC} {clip(clean(text), _MAX_RULE_CHARS)}" for text in case.broken[:_MAX_BROKEN]
    ]
    if case.advice:
        lines.append(f"{START} {case.advice}")
    return lines


def case_html(case: CaseRecord) -> str:
    """Return a failed case as HTML that needs no style sheet."""
    if arguments := _argument_lines(case.label):
        cells = "".join(
            f'<tr><td style="{CELL}">{escape(name)}</td><td style="{CELL}">{escape(value)}</td></tr>'
            for name, _, value in (argument.partition("=") for argument in arguments)
        )
        parts = [f'<div>{IN_CASE}</div><table style="margin: 4px 0px">{cells}</table>']
    else:
        label = escape(clip(case.label, _MAX_WHOLE_LABEL_CHARS))
        parts = [f"<div>{IN_CASE} <b>{label}</b>:</div>"]
    if rows := shown_rows(case):
        parts.append(_rows_html(rows, is_alone=len(case.rows) == 1))
    if hidden_rows_text(case):
        parts.append(quiet_html(hidden_rows_text(case)))
    if case.message:
        parts.append(paragraph_html(case.message))
    parts += [paragraph_html(f"{TRAFFIC} {text}") for text in case.broken[:_MAX_BROKEN]]
    if case.advice:
        parts.append(f"<div><b>{START}</b> {code_to_html(clean(case.advice))}</div>")
    return "".join(parts)


def shown_rows(case: CaseRecord) -> list[Row]:
    """Return the rows to show: all rows of a small world; for a large one, wrong rows first."""
    if len(case.rows) <= _MAX_ROWS:
        return list(case.rows) if any(row.problem for row in case.rows) else []
    return [row for row in case.rows if row.problem][:_MAX_ROWS]


def hidden_rows_text(case: CaseRecord) -> str:
    """Return text with the number of wrong ranks left out by `shown_rows`, or "" if there are none."""
    wrong = sum(bool(row.problem) for row in case.rows)
    hidden = wrong - sum(bool(row.problem) for row in shown_rows(case))
    return f"... and {plural(hidden, 'more wrong rank')}" if hidden > 0 else ""


def _argument_lines(label: str) -> list[str]:
    """Return a long label's arguments, one for each `name=value`, or [] if the label has no such form."""
    parts = re.split(r", (?=\w+=)", clip(label, _MAX_ARGUMENTS_CHARS))
    is_list = len(label) > MAX_LABEL_CHARS and len(parts) > 1 and "=" in parts[0]
    return parts if is_list else []


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


def _rows_html(rows: list[Row], is_alone: bool) -> str:
    """Draw rows as a table. is_alone: whether there is only one rank, for which no number is shown."""
    fields = tuple(name for name in _VALUE_FIELDS if any(getattr(row, name) for row in rows))
    names = ("rank",) * (not is_alone) + fields + ("",)
    head = "".join(f'<th style="{CELL}">{name}</th>' for name in names)
    body = "".join(_row_html(row, fields, is_alone) for row in rows)
    return f'<table style="margin: 4px 0px"><tr>{head}</tr>{body}</table>'


def _row_html(row: Row, fields: tuple[str, ...], is_alone: bool) -> str:
    arrow = "&larr; " if fields else ""
    problem = (
        arrow + code_to_html(clip(clean(row.problem), _MAX_PROBLEM_CHARS))
        if row.problem
        else "right"
    )
    values = tuple(getattr(row, name) for name in fields)
    texts = values if is_alone else (str(row.rank), *values)
    cells = [*(escape(clean(text)) for text in texts), problem]
    return "<tr>" + "".join(f'<td style="{CELL}">{cell}</td>' for cell in cells) + "</tr>"


def paragraph_html(text: str) -> str:
    """Draw text of several lines, with all of its spaces."""
    style = "margin: 2px 0px; padding: 0px; white-space: pre-wrap; background: transparent"
    return f'<pre style="{style}">{code_to_html(clip(clean(text), MAX_MESSAGE_CHARS))}</pre>'


def quiet_html(text: str) -> str:
    """Draw a line that matters less than its neighbors."""
    return f'<div style="opacity: 0.7; font-size: 90%">{code_to_html(text)}</div>'


def indent(text: str) -> list[str]:
    """Return cleaned text of limited length as indented lines."""
    return [f"  {line}" for line in clip(clean(text), MAX_MESSAGE_CHARS).splitlines()]
