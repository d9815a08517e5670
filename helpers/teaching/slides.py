"""Turn a notebook or a path into reveal.js slides in one file that needs no network.

    solutions/NN -> run -> learners' sources, outputs of the run -> parts -> slides with notes -> HTML

`course slides` calls this module. Slides show pictures and programs, which the speaker explains, so prose is
added to the notes of the next slide. Each heading begins a column. A program and its output share a slide if
both are legible. For an exercise, slides show the task and the stub. Quizzes and known mistakes supply the
questions and the usual wrong answers in the notes. The slides of a path, one for each heading, are for a
class that has the notebooks open.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import takewhile
from pathlib import Path
from struct import unpack

from markupsafe import Markup

from helpers.check_result import Outcome
from helpers.checks.headings import Heading
from helpers.checks.mistakes import KnownMistake, readable_program
from helpers.course.build import BEGIN, END
from helpers.course.notebook_file import Notebook, read_notebook, source_of
from helpers.course.outputs import run_notebook
from helpers.course.paths import LearningPath, Stop, hours
from helpers.course.quizzes import Quiz, load_quizzes
from helpers.course.site import shown_notebook
from helpers.teaching.common_mistakes import common_mistakes
from helpers.teaching.lesson import Cell, Part, read_lesson
from helpers.teaching.pages import render_page
from helpers.teaching.prose import blocks, code_html, is_prose, questions, sentences, to_html
from helpers.teaching.reveal import read_reveal

CODE_LINES = 22
"""Maximum number of legible program lines on one slide."""
SIDE_COLUMNS = 58
"""Maximum line length of a program that is shown next to its output."""
PLAYER_LINES = 19
PICTURE_LINES = 40
"""Height, in lines of a program, of a square picture that is as wide as a slide."""
TEXT_LINES = 20
_STOPPING_OUTCOMES = (Outcome.DEADLOCKED, Outcome.CRASHED, Outcome.TIMED_OUT)


@dataclass(frozen=True)
class Note:
    """One paragraph of the speaker notes."""

    title: str
    body: Markup


@dataclass(frozen=True)
class Output:
    """One output of a cell. lines: its height in lines of a program. is_narrow: if it fits half a slide."""

    html: str
    lines: int
    is_narrow: bool


@dataclass(frozen=True)
class Slide:
    """One slide. kind: a class of the page's style. label: the text above the title."""

    title: str
    kind: str
    body: Markup
    notes: tuple[Note, ...] = ()
    label: str = ""

    @property
    def title_html(self) -> Markup:
        """The title as HTML, because a heading may contain code."""
        return Markup(to_html(self.title).strip().removeprefix("<p>").removesuffix("</p>"))


@dataclass(frozen=True)
class Deck:
    """The slides of a notebook or a path, in columns."""

    title: str
    columns: tuple[tuple[Slide, ...], ...]

    @property
    def slides(self) -> tuple[Slide, ...]:
        return tuple(slide for column in self.columns for slide in column)


def write_slides(
    sources: Sequence[tuple[Path, Stop]],
    path: Path,
    *,
    learning_path: LearningPath | None = None,
    run: bool = True,
    further: bool = False,
    solutions: bool = False,
) -> Path:
    """Write the slides of solved notebooks, or of parts of them, into the file `path`. Return `path`.

    Args:
        learning_path: The path that the parts belong to. Its slides open with its goal, and there is one
            slide per heading.
        run: Whether to run the notebooks first, so that timelines can be played. Otherwise the stored, still
            pictures are used.
        further: Whether to include the optional exercises.
        solutions: Whether to end each exercise with its solution.
    """
    assets = (
        read_reveal()
    )  # do this before running the notebooks, so that a missing package is reported at once
    read = [(stop, read_notebook(source)) for source, stop in sources]
    solved = [(s, run_notebook(n, f"{s.notebook}.ipynb", live=True) if run else n) for s, n in read]
    made = build_deck(solved, learning_path=learning_path, further=further, solutions=solutions)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(render_page("slides.html", deck=made, reveal=assets), encoding="utf-8")
    return path


def build_deck(
    solved: Sequence[tuple[Stop, Notebook]],
    *,
    learning_path: LearningPath | None = None,
    further: bool = False,
    solutions: bool = False,
) -> Deck:
    """Create the slides of solved notebooks, with the parts that belong to each stop."""
    taught: list[Part] = []
    answers: dict[str, str] = {}
    title = learning_path.title if learning_path else ""
    for stop, notebook in solved:
        shown = shown_notebook(notebook, f"{stop.notebook}.ipynb", {})
        if solutions:
            pairs = zip(shown["cells"], notebook["cells"], strict=True)
            answers |= {source_of(a): source_of(b) for a, b in pairs if BEGIN in source_of(b)}
        whole = read_lesson(stop.notebook, shown)
        title = title or whole.title
        own = (p for p in whole.parts if stop.has(p.title, further=p.is_optional and not further))
        taught += [part for part in own if part.is_taught]
    total, start = sum(part.minutes for part in taught), 0
    columns: list[tuple[Slide, ...]] = [(_first_slide(learning_path),)] if learning_path else []
    for part in taught:
        made = _slides_of(part, answers)
        made = [_choose_slide(part, made)] if learning_path and made else made
        first = start + 1
        start += part.minutes
        time = f"{part.minutes} min for this part: minute {first} to {start} of {total}."
        clock = Note("Time", Markup(escape(time)))
        column = tuple(replace(slide, notes=(clock, *slide.notes)) for slide in made)
        if column:
            columns.append(column)
    return Deck(title, tuple(columns))


def _first_slide(path: LearningPath) -> Slide:
    """Return the opening slide of a path, with the class's program and goal."""
    body = to_html(f"{path.goal}\n\n**At the end:** {path.end}")
    return Slide(
        path.title, "task", Markup(body), label=f"{hours(path.minutes)}, exercises included"
    )


def _slides_of(part: Part, answers: Mapping[str, str]) -> list[Slide]:
    made: list[Slide] = []
    rest = part.cells
    if part.exercise is not None:
        task = tuple(takewhile(lambda cell: not cell.is_code, part.cells))
        made += _task_slides(part, part.exercise, task, part.cells[len(task)])
        rest = part.cells[len(task) + 1 :]
    said = ""
    for cell in rest:
        if not cell.is_code:
            said = f"{said}\n\n{cell.source}".strip()
            drawn = [block for block in blocks(cell.source) if not is_prose(block)]
            if drawn:
                made.append(
                    Slide(part.title, "points", _join_html(drawn), tuple(_speaker_notes(said)))
                )
                said = ""
        elif not _is_left_out(cell):
            made += _code_slides(part, cell, said)
            said = ""
    if said and made:
        made[-1] = replace(made[-1], notes=(*made[-1].notes, *_speaker_notes(said)))
    elif said:
        made.append(
            Slide(part.title, "points", _join_html(_summarize(said)), tuple(_speaker_notes(said)))
        )
    for cell in part.cells:
        if cell.source in answers:
            made += _solution_slides(part, answers[cell.source])
    return made


def _choose_slide(part: Part, slides: Sequence[Slide]) -> Slide:
    """Choose the only slide of a part for brief slides: its task, question, last picture or output."""
    if part.exercise is not None:
        return slides[0]
    asked = [slide for slide in slides if slide.kind == "quiz"]
    shown = [slide for slide in slides if 'class="shown"' in slide.body]
    best = [*asked[:1], *shown[-1:], slides[0]][0]
    return replace(best, notes=tuple(note for slide in slides for note in slide.notes))


def _summarize(markdown: str) -> list[str]:
    """Return a slide's summary of a part without code: lists, and first sentences."""
    return [
        block if block.startswith(("-", "*", "1.")) else sentences(block)[0]
        for block in blocks(markdown)
    ]


def _is_left_out(cell: Cell) -> bool:
    """Return whether a cell is left out, because it is useless for an audience."""
    return cell.is_check or cell.has_only_imports


def _speaker_notes(markdown: str) -> list[Note]:
    """Return the complete text, and its questions, as notes."""
    text = (block for block in blocks(markdown) if not block.startswith("```mermaid"))
    asked = questions(markdown)
    return [Note("Say", _join_html(text)), *([Note("Ask", _join_html(asked))] if asked else [])]


def _code_slides(part: Part, cell: Cell, prose: str) -> list[Slide]:
    notes = _speaker_notes(prose) if prose else []
    if cell.quiz:
        asked = _quiz_slide(load_quizzes()[cell.quiz])
        return [replace(asked, notes=(*notes, *asked.notes))]
    if "on_failure=" in cell.source:
        notes.append(
            Note("Break it live", Markup("Run this cell in the notebook: it fails on purpose."))
        )
    source, label = cell.source, ""
    if cell.needs_answer:
        source, label = source.partition("\n")[2], "After the exercise"
    if "break_it(" in source:
        label = "Live, in the notebook"
        words = (
            "Run this cell: delay a rank, leave out a call, or slow down a link. Ask first what will "
            "happen."
        )
        notes.append(Note("Break it live", Markup(words)))
    return _program_slides(
        part.title,
        _shown_source(source),
        _render_outputs(cell),
        tuple(notes),
        label,
    )


def _shown_source(source: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", source.strip())


def _program_slides(
    title: str,
    source: str,
    outputs: list[Output],
    notes: tuple[Note, ...],
    label: str,
) -> list[Slide]:
    """Put a program and its outputs on one slide, or on several if a single slide would be illegible."""
    lines = source.splitlines()
    shown = "".join(f'<div class="shown">{each.html}</div>' for each in outputs)
    narrow = max(map(len, lines), default=0) <= SIDE_COLUMNS
    if len(lines) + sum(each.lines for each in outputs) <= CODE_LINES:
        bodies = [code_html(source) + shown]
    elif len(lines) <= CODE_LINES and narrow and len(outputs) == 1 and outputs[0].is_narrow:
        bodies = [f'<div class="sides"><div>{code_html(source)}</div>{shown}</div>']
    else:
        bodies = [code_html(piece) for piece in split_program(source, CODE_LINES)]
        bodies += [f'<div class="shown">{each.html}</div>' for each in outputs]
    return [Slide(title, "code", Markup(body), notes, label) for body in bodies]


def split_program(source: str, max_lines: int) -> list[str]:
    """Split a program into pieces of at most `max_lines` lines, between two statements if possible."""
    lines = source.splitlines()
    pieces: list[str] = []
    while len(lines) > max_lines:
        # split before an unindented line if possible, otherwise after a blank line, otherwise anywhere
        ends = range(max_lines, max_lines // 3, -1)
        flat = [end for end in ends if lines[end] and not lines[end][0].isspace()]
        flat = [end for end in flat if not lines[end].startswith((")", "]", "}"))]
        blank = [end for end in ends if not lines[end - 1].strip()]
        end = (flat or blank or [max_lines])[0]
        pieces.append("\n".join(lines[:end]).strip("\n"))
        lines = lines[end:]
    return [*pieces, "\n".join(lines).strip("\n")]


def _render_outputs(cell: Cell) -> list[Output]:
    """Return a cell's outputs, each in the richest form available for a page."""
    found = []
    for output in cell.outputs:
        data = output.get("data", {"text/plain": output.get("text", "")})
        plain = re.sub(r"\x1b\[[\d;]*m", "", _join_text(data.get("text/plain", ""))).rstrip()
        if "text/html" in data:
            html = _join_text(data["text/html"])
            # a timeline has about as many lines as its plain form; a player has no plain form
            lines = PLAYER_LINES if "<script" in html else 2 + round(1.4 * plain.count("\n"))
            found.append(Output(html, lines, is_narrow="<script" not in html))
        elif "image/png" in data:
            png = _join_text(data["image/png"]).replace("\n", "")
            html = f'<img alt="{escape(plain, quote=True)}" src="data:image/png;base64,{png}">'
            width, height = unpack(">II", b64decode(png[:32])[16:24])
            lines = round(height / width * PICTURE_LINES)
            found.append(Output(html, lines, is_narrow=height / width > 0.5))
        elif plain:
            for piece in split_program(plain, TEXT_LINES):
                narrow = max(map(len, piece.splitlines())) <= SIDE_COLUMNS
                html = f"<pre>{escape(piece)}</pre>"
                found.append(Output(html, piece.count("\n") + 2, narrow))
    return found


def _join_text(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else "".join(value)


def _quiz_slide(quiz: Quiz) -> Slide:
    options = "".join(f"<li>{to_html(option)}</li>" for option in quiz.options)
    body = f'<div class="point">{to_html(quiz.question)}</div><ol type="a">{options}</ol>'
    right = Note("Answer", _join_html([f"{quiz.option_letters[quiz.answer]}) {quiz.why}"]))
    wrong = [
        f"{letter}) {words}"
        for letter, words in zip(quiz.option_letters, quiz.wrong, strict=False)
        if words
    ]
    ask = Note(
        "Ask",
        Markup("Let everybody vote before you continue, and ask one person from each side why."),
    )
    notes = [ask, right, *([Note("If they choose", _join_html(wrong))] if wrong else [])]
    return Slide("Predict", "quiz", Markup(body), tuple(notes))


def _task_slides(part: Part, exercise: Heading, task: tuple[Cell, ...], stub: Cell) -> list[Slide]:
    """Return slides with the task of an exercise and its stub."""
    text = [each for cell in task for each in blocks(cell.source) if "`hint(" not in each]
    known = common_mistakes(exercise)
    notes = []
    if known:
        wrong = Markup("").join(
            Markup("<p><b>{}</b> ({}). {}</p>").format(
                m.title, m.outcome.value, _join_html([m.words])
            )
            for m in known[:3]
        )
        notes.append(Note("Usual wrong answers", wrong))
    if live := _stopping_mistake(known):
        what = (
            "the solution with this change"
            if readable_program(live) == live.edit
            else "this program"
        )
        words = f"Check {what}: it ends as {live.outcome.value}. Ask first how it ends."
        body = Markup("<p>{}</p>{}").format(words, Markup(code_html(readable_program(live))))
        notes.append(Note("Break it live", body))
    if exercise.hints:
        notes.append(Note("If they are stuck", _join_html(exercise.hints)))
    dots = "●" * exercise.difficulty + "○" * (5 - exercise.difficulty)
    label = f"Exercise {exercise.number} · {exercise.minutes} min · {dots}"
    label += " · optional" if exercise.further else ""
    body = Markup("\n".join(to_html(block) for block in text))
    first = Slide(part.title, "task", body, tuple(notes), label)
    return [first, *(replace(each, label=label) for each in _code_slides(part, stub, ""))]


def _stopping_mistake(mistakes: Iterable[KnownMistake]) -> KnownMistake | None:
    """Return the first mistake that stops the ranks, because it shows more than a wrong number."""
    return next((mistake for mistake in mistakes if mistake.outcome in _STOPPING_OUTCOMES), None)


def _solution_slides(part: Part, solved: str) -> Iterator[Slide]:
    kept = [line for line in solved.splitlines() if line.strip() not in (BEGIN, END)]
    for piece in split_program("\n".join(kept), CODE_LINES):
        yield Slide(part.title, "code", Markup(code_html(piece)), (), "Solution")


def _join_html(texts: Iterable[str]) -> Markup:
    return Markup("\n".join(to_html(text) for text in texts))
