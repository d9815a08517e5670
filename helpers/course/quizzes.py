"""`predict("id")`: ask the reader a question before they run the cell that shows the answer.

Notebooks call `predict`. In a kernel, it shows radio buttons, with the reply to an answer below them. In a
saved notebook, the buttons are replaced by text. When notebooks are run for storing or comparing outputs,
only the text is shown, because the ids of widgets differ between kernels. The quizzes are data, one TOML file
for each notebook, so that no answer is in a notebook:

    [[quiz]]
    id = "two-sends"
    question = "Both ranks call `send` first, then `recv`. What happens?"
    options = ["It works", "Both wait forever", "The second send fails"]
    answer = 1                  # counted from 0
    why = "gloo does not buffer: a send returns when its recv has started."
    wrong = ["...", "", "..."]  # optional: one line for a learner who chose that option
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import msgspec

from helpers.course.links import files_by_number, link_notebooks
from helpers.course.notebook_file import source_of
from helpers.course.show_message import LearnerMessage, to_html
from helpers.course.workspace import cells_of
from helpers.views.live import EMPTY_PART, require_live, show_controls, show_part
from helpers.views.palette import RIGHT, WRONG

QUIZ_DIR = Path(__file__).parent / "quizzes"


class QuizFileError(Exception):
    """A quiz file is invalid; the message names the file, the quiz and the error."""


class UnknownQuiz(LookupError):
    """No quiz has this id."""

    def _render_traceback_(self) -> list[str]:
        # IPython shows these lines instead of a traceback, because a mistyped id needs no frames.
        return [f"{type(self).__name__}: {self}"]


class Quiz(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One question. `answer` counts from 0; `wrong` has a line for each option, or is empty."""

    id: str
    question: str
    options: tuple[str, ...]
    answer: int
    why: str
    wrong: tuple[str, ...] = ()

    @property
    def option_letters(self) -> str:
        return ascii_lowercase[: len(self.options)]

    def text(self) -> str:
        """Return the question as plain text, without the answer."""
        options = [
            f"  {letter}) {option}"
            for letter, option in zip(self.option_letters, self.options, strict=True)
        ]
        return "\n".join(
            [
                f"Predict, then run: {self.question.strip()}",
                *options,
                f'To answer: predict("{self.id}", letter), with letter one of'
                f" {', '.join(map(repr, self.option_letters))}.",
            ]
        )

    def judge(self, choice: int) -> str:
        """Return whether an option is right, and the reason. After a wrong option, learners may try again."""
        letter = self.option_letters[choice]
        if choice == self.answer:
            return f"{letter}) Right. {self.why.strip()}"
        # An option's line helps without revealing the answer. If there is none, the general reason is shown.
        because = self.wrong[choice] if self.wrong else ""
        return f"{letter}) Wrong. {because.strip() or self.why.strip()}"


def answer_quiz(quiz: Quiz, choice: int) -> str:
    """Record an answer and return the reply to the learner."""
    from helpers.course.progress import record_quiz

    note = record_quiz(quiz.id, choice, choice == quiz.answer)
    return "\n\n".join(filter(None, [quiz.judge(choice), note]))


def find_quiz(quizzes: Mapping[str, Quiz], quiz_id: str) -> Quiz:
    """Return the quiz with this id. Raises UnknownQuiz with the most similar ids."""
    if quiz_id in quizzes:
        return quizzes[quiz_id]
    close = difflib.get_close_matches(str(quiz_id), quizzes, n=3, cutoff=0.5)
    meant = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    raise UnknownQuiz(f"there is no quiz {quiz_id!r}.{meant}")


def load_quizzes(folder: Path = QUIZ_DIR) -> dict[str, Quiz]:
    """Read all quiz files of a folder into {id: quiz}. Raises QuizFileError on the first mistake."""
    quizzes: dict[str, Quiz] = {}
    for path in sorted(folder.glob("*.toml")):
        for quiz in _read_file(path):
            if quiz.id in quizzes:
                raise QuizFileError(f"{path.name}: the id {quiz.id!r} is used twice")
            quizzes[quiz.id] = quiz
    return quizzes


@cache
def quizzes_of_notebooks() -> Mapping[str, tuple[str, ...]]:
    """Return {notebook's name: ids of its quizzes}."""
    files = sorted(QUIZ_DIR.glob("*.toml"))
    return {path.stem: tuple(quiz.id for quiz in _read_file(path)) for path in files}


def _read_file(path: Path) -> list[Quiz]:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise QuizFileError(f"{path.name}: {error}") from None
    if set(content) != {"quiz"} or not isinstance(content["quiz"], list):
        raise QuizFileError(f"{path.name}: a quiz file may contain only [[quiz]] tables")
    return [_quiz(entry, f"{path.name}, quiz {i}") for i, entry in enumerate(content["quiz"], 1)]


def _quiz(entry: Any, place: str) -> Quiz:
    try:
        quiz = msgspec.convert(entry, Quiz)
    except msgspec.ValidationError as error:
        raise QuizFileError(f"{place}: {error}") from None
    if problem := _find_problem(quiz):
        raise QuizFileError(f"{place} ({quiz.id}): {problem}")
    return quiz


def _find_problem(quiz: Quiz) -> str:
    count = len(quiz.options)
    if not re.fullmatch(r"[a-z0-9]+(?:[-_][a-z0-9]+)*", quiz.id):
        return "an id may contain only lower-case letters, digits, - and _"
    if not 2 <= count <= 5:
        return f"a quiz must have 2 to 5 options, not {count}"
    if len(set(quiz.options)) != count:
        return "two options are the same"
    if not all(text.strip() for text in (quiz.question, quiz.why, *quiz.options)):
        return "the question, each option and 'why' must be non-empty text"
    if not 0 <= quiz.answer < count:
        return f"the answer must be from 0 to {count - 1}, not {quiz.answer!r}"
    if quiz.wrong and len(quiz.wrong) != count:
        return f"'wrong' needs one entry for each of the {count} options (\"\" for the right one)"
    return ""


# --- on the screen --------------------------------------------------------------------------------


def predict(quiz_id: str, answer: str | None = None) -> QuizView | LearnerMessage:
    """Show a quiz or, where buttons do not work, answer it by the letter of an option.

    Raises UnknownQuiz with the most similar ids if there is no such quiz.
    """
    quiz = find_quiz(load_quizzes(), quiz_id)
    if answer is None:
        return QuizView(quiz)
    letter = answer.strip().rstrip(")").lower() if isinstance(answer, str) else ""
    if len(letter) != 1 or letter not in quiz.option_letters:
        return LearnerMessage(
            f"{answer!r} is not an option: choose one of {', '.join(quiz.option_letters)}."
        )
    return LearnerMessage(answer_quiz(quiz, quiz.option_letters.index(letter)))


@dataclass(frozen=True, repr=False)
class QuizView:
    """A quiz with a display method. Each display has separate buttons, and any answer may be changed."""

    quiz: Quiz

    def __repr__(self) -> str:
        return self.quiz.text()

    def _ipython_display_(self) -> None:
        require_live()
        widget = quiz_widget(self.quiz, lambda html: show({"text/html": html, "text/plain": ""}))
        again = "Run this cell again to choose an answer."
        labels = zip(self.quiz.option_letters, self.quiz.options, strict=True)
        options = "<br>".join(f"{letter}) {to_html(option)}" for letter, option in labels)
        html = f"<p>{_question_html(self.quiz)}</p><p>{options}</p><p><em>{again}</em></p>"
        show_controls(widget, f"{self.quiz.text()}\n{again}", html)
        show = show_part(earlier_answer(self.quiz))


def earlier_answer(quiz: Quiz) -> dict[str, Any]:
    """Return an output that shows the learner's earlier answer; empty if there is none."""
    from helpers.course.progress import read_progress

    answers = read_progress().quizzes.get(quiz.id)
    # the quiz may have changed since the answer
    if answers is None or answers.last_choice >= len(quiz.options):
        return EMPTY_PART
    choice = quiz.answer if answers.correct else answers.last_choice
    sign, again = ("✓", "") if answers.correct else ("✗", " Try again.")
    words = f"You answered {quiz.option_letters[choice]}) {sign}{again}"
    return {"text/html": f"<p>{words}</p>", "text/plain": words}


# ipywidgets cuts a label that is wider than the page
_WRAP_LABELS_STYLE = (
    "<style>.rr-choices .widget-radio-box label"
    "{white-space: normal; height: auto; line-height: 1.4; margin-bottom: 2px}</style>"
)


def quiz_widget(quiz: Quiz, show: Callable[[str], None]) -> Any:
    """Return a widget with the question, radio buttons (none chosen) and a Check button.

    show: a function called with the reply as HTML. The reply is a part of the cell's output instead of a
    widget, because JupyterLab saves outputs, and opens their links in its own window.
    """
    import ipywidgets as widgets

    labels = [
        (f"{letter}) {option.replace('`', '')}", number)
        for number, (letter, option) in enumerate(
            zip(quiz.option_letters, quiz.options, strict=True)
        )
    ]
    choices = widgets.RadioButtons(options=labels, index=None, layout={"width": "auto"})
    choices.add_class("rr-choices")
    button = widgets.Button(description="Check", tooltip="Check the chosen answer")

    def on_check(_: object) -> None:
        choice = choices.value
        show("Choose an answer first." if choice is None else answer_html(quiz, choice))

    button.on_click(on_check)
    question = widgets.HTML(_WRAP_LABELS_STYLE + _question_html(quiz))
    return widgets.VBox([question, choices, button])


def _question_html(quiz: Quiz) -> str:
    return to_html(f"**Predict, then run.** {quiz.question.strip()}")


def answer_html(quiz: Quiz, choice: int) -> str:
    color, sign = (RIGHT, "✓") if choice == quiz.answer else (WRONG, "✗")
    files = files_by_number(f"{name}.ipynb" for name in quizzes_of_notebooks())
    said = "\n\n".join(
        filter(None, [link_notebooks(answer_quiz(quiz, choice), files), _next_cell_link(quiz.id)])
    )
    badge = f"background: {color}; color: white; font-weight: bold; padding: 0px 6px"
    return (
        f'<div style="border-left: 6px solid {color}; padding: 2px 10px; max-width: 70em">'
        f'<span aria-hidden="true" style="{badge}">{sign}</span> {to_html(said)}</div>'
    )


def _next_cell_link(quiz_id: str) -> str:
    """Return a link to the next cell, which shows the answer, if it is a code cell; otherwise ""."""
    name = next((name for name, ids in quizzes_of_notebooks().items() if quiz_id in ids), "")
    for asking, after in pairwise(cells_of(name)):
        if f'predict("{quiz_id}")' in source_of(asking):
            shows = after["cell_type"] == "code" and "predict(" not in source_of(after)
            return f"[Run the next cell]({name}.ipynb#cell-id={after['id']}) and see." * shows
    return ""
