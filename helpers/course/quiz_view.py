"""A quiz on the screen: radio buttons where widgets work, text everywhere else.

`predict` returns a `QuizView`, which displays itself at the end of a cell. It offers both forms,
and the page takes the one it can show. While notebooks are run to be stored or compared, only the
text is given: the ids of widgets are new in every kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from helpers.course.quizzes import Quiz, answer_quiz, find_quiz, load_quizzes
from helpers.course.told import Told, to_html
from helpers.views.live import widget_view


def predict(quiz_id: str, answer: str | None = None) -> QuizView | Told:
    """Show a quiz; or answer it by the letter of an option, where buttons do not work.

    Raises UnknownQuiz with the nearest ids if there is no such quiz.
    """
    quiz = find_quiz(load_quizzes(), quiz_id)
    if answer is None:
        return QuizView(quiz)
    letter = answer.strip().rstrip(")").lower() if isinstance(answer, str) else ""
    if len(letter) != 1 or letter not in quiz.letters:
        return Told(f"{answer!r} is not an option: choose one of {', '.join(quiz.letters)}.")
    return Told(answer_quiz(quiz, quiz.letters.index(letter)))


@dataclass(frozen=True, repr=False)
class QuizView:
    """A quiz that shows itself. Each display has buttons of its own; any answer may be retried."""

    quiz: Quiz

    def __repr__(self) -> str:
        return self.quiz.text()

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": repr(self)} | widget_view(lambda: quiz_widget(self.quiz))


def quiz_widget(quiz: Quiz) -> Any:
    """Make the widget: question, radio buttons (none chosen), a Check button, and the answer."""
    import ipywidgets as widgets

    labels = [
        (f"{letter}) {option.replace('`', '')}", number)
        for number, (letter, option) in enumerate(zip(quiz.letters, quiz.options, strict=True))
    ]
    choices = widgets.RadioButtons(options=labels, index=None, layout={"width": "max-content"})
    button = widgets.Button(description="Check", tooltip="Check the chosen answer")
    feedback = widgets.HTML()

    def on_check(_: object) -> None:
        if choices.value is None:
            feedback.value = "Choose an answer first."
        else:
            feedback.value = to_html(answer_quiz(quiz, choices.value))

    button.on_click(on_check)
    question = widgets.HTML(to_html(f"**Predict, then run.** {quiz.question.strip()}"))
    return widgets.VBox([question, choices, button, feedback])
