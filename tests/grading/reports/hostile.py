"""Hostile texts of submissions, each effective in some kind of output, and records full of them."""

from __future__ import annotations

import re

from helpers.check_result import CaseRecord, Row
from helpers.grading.record import ExerciseRecord, Protection, Record, Status
from tests.grading.reports.builders import picture

TEXTS = {
    "plain": "word",
    "script": "<script>document.title='owned'</script>",
    "image": "<img src=x onerror=\"document.title='owned'\">",
    "attribute": '" onmouseover="document.title=\'owned\'" style="x',
    "single quote": "' autofocus onfocus='document.title=1' x='",
    "closing tags": "</style></title></pre></table></svg><script>document.title='owned'</script>",
    "comment": "--><!-- ]]> <![CDATA[ <?php ?> <!ENTITY x SYSTEM 'file:///etc/passwd'>",
    "entity": "&lt;script&gt; &#60;b&#62; &x;",
    "url": "javascript:document.title='owned'",
    "template": "{{ 7*7 }}{% include '/etc/passwd' %}{#",
    "null bytes": "a\0b\x01\x08\x0b\x1f\x7f\x85\x9fc",
    "surrogates": "a\ud800b\udfffc\ufffe\uffff",
    "escape codes": "a\x1b[31mred\x1b]0;title\x07\x1b[2J\x9b2Jb",
    "direction": "abc\u202egpj.exe\u2066x\u200f\u061c\u2069\ufeffd",
    "long": "A" * 1_000_000,
    "many lines": "x\n" * 100_000,
    "escapes only": "a" + "\x1b[31m" * 100_000,
    "mathtext": r"$\frac{1}{$ $x^{2$ \unknown",
    "formula": '=HYPERLINK("http://localhost/","x")',
    "workflow command": "a\r\n::set-output name=x::y\n::error::owned%0A::stop-commands::z",
    "markdown": "[x](javascript:1) ![i](http://a.example/) **b** | <b> @team #1 www.a.example\n# head",
    "accents": "e" + "\u0301" * 5_000,
    "path": "../../../../etc/passwd",
}

UNSHOWABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def hostile_record(text: str, at: int = 0) -> Record:
    """Put a text into all text fields of a record. at: makes the learner's name distinct."""
    cases = tuple(_case(text, hidden) for hidden in (False, False, True))
    tries = (
        _exercise(text, "wrong", cases, picture=picture()),
        _exercise(text, "deadlocked", cases[:1], picture=text),
        _exercise(text, text, cases),
        _exercise(text, "passed", ()),
        _exercise(text, "not attempted", ()),
        _exercise(text, "harness fault", cases),
    )
    return Record(
        learner=text + "'" * at,
        file=text,
        notebook=text,
        status=Status.GRADED,
        sha256=text,
        message=text,
        notes=(text, text),
        exercises=tries,
        protection=Protection(text, (text,), (text,)),
        versions={text: text},
        seconds=1.0,
    )


def unreadable_record(text: str) -> Record:
    return Record(text, text + "/x.ipynb", "", Status.UNREADABLE, message=text, notes=(text,))


def _exercise(
    text: str, outcome: str, cases: tuple[CaseRecord, ...], picture: str = ""
) -> ExerciseRecord:
    return ExerciseRecord(
        name=text,
        number=text,
        heading=text,
        outcome=outcome,
        points=4.0,
        out_of=10.0,
        cases=cases,
        message=text,
        notes=(text,),
        flags=(text,),
        picture=picture,
        answer=text,
        key=text,
    )


def _case(text: str, hidden: bool) -> CaseRecord:
    return CaseRecord(
        label=text,
        hidden=hidden,
        outcome="wrong",
        credit=0.0,
        rows=(Row(0, text, text, text, text),),
        broken=(text,),
        message=text,
        advice=text,
    )
