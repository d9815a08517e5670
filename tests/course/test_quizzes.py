"""Quizzes: their files, their text, and their buttons in a real kernel."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from helpers.course.notebook_file import source_of
from helpers.course.progress import read_progress
from helpers.course.quizzes import (
    Quiz,
    QuizFileError,
    QuizView,
    UnknownQuiz,
    answer_html,
    answer_quiz,
    earlier_answer,
    find_quiz,
    load_quizzes,
    predict,
    quizzes_of_notebooks,
)
from helpers.course.show_message import to_html
from helpers.course.workspace import cells_of
from helpers.views.live import WIDGET_VIEW
from helpers.views.palette import RIGHT, WRONG

DEADLINE_S = 60

QUIZ = Quiz(
    id="two-sends",
    question="Both ranks call `send` first. What happens?",
    options=("It works", "Both `wait`", "One fails"),
    answer=1,
    why="gloo does not buffer.",
    wrong=("Who takes the message?", "", ""),
)

FILE = '''
[[quiz]]
id = "two-sends"
question = """
Both ranks call `send` first.
What happens?
"""
options = ["It works", "Both wait"]
answer = 1
why = "gloo does not buffer."
'''


@pytest.fixture(autouse=True)
def own_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REAL_RANKS_PROGRESS", str(tmp_path / "progress.json"))


def test_every_quiz_of_course_displays() -> None:
    for quiz_id in load_quizzes():
        view = predict(quiz_id)
        assert isinstance(view, QuizView) and quiz_id in repr(view)


def test_reads_quiz_file(tmp_path: Path) -> None:
    (tmp_path / "02_topic.toml").write_text(FILE)
    quiz = load_quizzes(tmp_path)["two-sends"]
    assert quiz.options == ("It works", "Both wait") and quiz.answer == 1 and quiz.wrong == ()
    assert quiz.text().startswith("Predict, then run: Both ranks call `send` first.\nWhat")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[[quiz]]", "[[quiz]", "02_topic.toml: "),
        ("[[quiz]]", "[quiz]", r"may contain only \[\[quiz\]\] tables"),
        ("[[quiz]]", "[[question]]", r"may contain only \[\[quiz\]\] tables"),
        ('id = "two-sends"', 'id = "Two sends"', "lower-case letters"),
        ('id = "two-sends"', "id = 3", "quiz 1: Expected `str`, got `int` - at `\\$.id`"),
        ('id = "two-sends"', "", "quiz 1: Object missing required field `id`"),
        ("answer = 1", "answer = 2", "from 0 to 1, not 2"),
        ("answer = 1", "answer = -1", "from 0 to 1, not -1"),
        ("answer = 1", "answer = true", "Expected `int`, got `bool`"),
        ("answer = 1", 'answer = "b"', "Expected `int`, got `str`"),
        ("answer = 1", "answer = 1\nhint = 'b'", "unknown field `hint`"),
        ('"It works", "Both wait"', '"It works"', "2 to 5 options, not 1"),
        ('"It works", "Both wait"', '"a", "b", "c", "d", "e", "f"', "2 to 5 options, not 6"),
        ('"It works", "Both wait"', '"It works", "It works"', "the same"),
        ('"It works", "Both wait"', '"It works", ""', "each option"),
        ('["It works", "Both wait"]', '"It works"', "Expected `array`, got `str`"),
        ('"gloo does not buffer."', '" "', "'why' must be non-empty text"),
        ("answer = 1", 'answer = 1\nwrong = ["No."]', "one entry for each of the 2 options"),
    ],
)
def test_error_describes_quiz_file_mistake(tmp_path: Path, old: str, new: str, words: str) -> None:
    (tmp_path / "02_topic.toml").write_text(FILE.replace(old, new))
    with pytest.raises(QuizFileError, match=rf"(?s)02_topic\.toml.*{words}|{words}"):
        load_quizzes(tmp_path)


def test_refuses_duplicate_quiz_id(tmp_path: Path) -> None:
    for name in ("01_a.toml", "02_b.toml"):
        (tmp_path / name).write_text(FILE)
    with pytest.raises(QuizFileError, match=r"02_b\.toml: the id 'two-sends' is used twice"):
        load_quizzes(tmp_path)


def test_right_answers_spread_evenly_over_positions() -> None:
    places = Counter(quiz.answer for quiz in load_quizzes().values() if len(quiz.options) == 3)
    assert all(0.25 < places[place] / places.total() < 0.42 for place in range(3)), places


def test_text_lists_options_without_answer() -> None:
    assert repr(QuizView(QUIZ)) == (
        "Predict, then run: Both ranks call `send` first. What happens?\n"
        "  a) It works\n"
        "  b) Both `wait`\n"
        "  c) One fails\n"
        "To answer: predict(\"two-sends\", letter), with letter one of 'a', 'b', 'c'."
    )
    others = [Quiz("two-sends", QUIZ.question, QUIZ.options, answer, "") for answer in range(3)]
    assert {other.text() for other in others} == {QUIZ.text()}


def test_quiz_without_kernel_shows_only_text() -> None:
    with pytest.raises(NotImplementedError):  # IPython then uses the text
        QuizView(QUIZ)._ipython_display_()
    assert repr(QuizView(QUIZ)) == QUIZ.text()


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (0, "a) Wrong. Who takes the message?"),
        (1, "b) Right. gloo does not buffer."),
        (2, "c) Wrong. gloo does not buffer."),
    ],
)
def test_judges_and_records_each_answer(choice: int, said: str) -> None:
    assert answer_quiz(QUIZ, choice) == said
    answers = read_progress().quizzes["two-sends"]
    assert (answers.tries, answers.last_choice, answers.correct) == (1, choice, choice == 1)


def test_unknown_id_error_suggests_similar_ids() -> None:
    quizzes = dict.fromkeys(("two-sends", "ring-order", "tags"), QUIZ)
    with pytest.raises(UnknownQuiz, match="no quiz 'two_send'. Did you mean 'two-sends'?"):
        find_quiz(quizzes, "two_send")
    with pytest.raises(UnknownQuiz, match="no quiz 'q7'.$"):
        find_quiz(quizzes, "q7")
    with pytest.raises(UnknownQuiz):
        predict("no such quiz")


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("a < b & `x < y`", "a &lt; b &amp; <code>x &lt; y</code>"),
        (
            "**Right.** So\n\nthere",
            '<b>Right.</b> So<span style="display: block; height: 0.6em"></span>there',
        ),
        ("See\n```python\nsend(x)\n```\nthen", "See<pre>send(x)</pre>then"),
        ("<script>", "&lt;script&gt;"),
        ("[On](05_x.ipynb#cell-id=a-1)", '<a href="05_x.ipynb#cell-id=a-1">On</a>'),
        ("[out](javascript:alert(1).ipynb)", "[out](javascript:alert(1).ipynb)"),
    ],
)
def test_converts_quiz_text_to_html(text: str, markup: str) -> None:
    assert to_html(text) == markup


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Iterator[BlockingKernelClient]:
    monkeypatch.delenv("REAL_RANKS_LIVE", raising=False)
    manager = KernelManager(
        kernel_name="python3", transport="ipc"
    )  # another process may take a free port meanwhile
    manager.start_kernel()
    client = manager.blocking_client()
    try:
        client.start_channels()
        client.wait_for_ready(timeout=DEADLINE_S)
        yield client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


SHOW = f"""
from helpers.course.quizzes import Quiz, QuizView
view = QuizView({QUIZ!r})
view
"""


def display(client: BlockingKernelClient, source: str) -> dict[str, Any]:
    shown: list[dict[str, Any]] = []

    def keep(message: dict[str, Any]) -> None:
        if message["msg_type"] in ("execute_result", "display_data", "error"):
            shown.append(message["content"])

    client.execute_interactive(source, timeout=DEADLINE_S, output_hook=keep)
    data: dict[str, Any] = shown[0]["data"]
    return data


def evaluate(client: BlockingKernelClient, source: str) -> str:
    return str(display(client, source)["text/plain"])


@pytest.mark.extended
def test_quiz_in_kernel_has_buttons(kernel: BlockingKernelClient) -> None:
    live = display(kernel, SHOW)
    assert live.keys() == {"text/plain", "text/html", WIDGET_VIEW}
    assert "Run this cell again to choose an answer." in live["text/html"]
    assert (
        "<br>b) Both <code>wait</code><br>" in live["text/html"]
        and QUIZ.text() in live["text/plain"]
    )
    kernel.execute("import os; os.environ['REAL_RANKS_LIVE'] = '0'")
    stored = display(kernel, "view")
    assert stored == {"text/plain": QUIZ.text()}


@pytest.mark.extended
def test_buttons_judge_repeated_choices(kernel: BlockingKernelClient) -> None:
    kernel.execute(
        SHOW + "from helpers.course.quizzes import quiz_widget\nsaid = []\n"
        "_, choices, button = quiz_widget(view.quiz, said.append).children"
    )
    assert evaluate(kernel, "choices.value, choices.options[1]") == "(None, ('b) Both wait', 1))"
    for index, words in (
        (None, ["Choose an answer first."]),
        (0, [WRONG, ">✗</span> a) Wrong. Who takes the message?"]),
        (1, [RIGHT, ">✓</span> b) Right. gloo does not buffer."]),
        (2, [WRONG, ">✗</span> c) Wrong. gloo does not buffer."]),
    ):
        press(kernel, index)
        deadline = time.monotonic() + DEADLINE_S
        while not all(word in evaluate(kernel, "said[-1:]") for word in words):
            assert time.monotonic() < deadline, words
    assert read_progress().quizzes["two-sends"].tries == 3


def test_answer_links_to_next_code_cell() -> None:
    for quiz_id in quizzes_of_notebooks()["02_blocking_p2p"]:
        page = answer_html(load_quizzes()[quiz_id], 0)
        link = re.search(r'<a href="02_blocking_p2p\.ipynb#cell-id=([^"]+)">Run the next', page)
        assert link is not None
        ids = [cell["id"] for cell in cells_of("02_blocking_p2p")]
        before = source_of(cells_of("02_blocking_p2p")[ids.index(link[1]) - 1])
        assert f'predict("{quiz_id}")' in before
    apart = load_quizzes()["rounds-of-a-tree"]  # a markdown cell is in between
    assert "Run the next cell" not in answer_html(apart, 0)
    named = answer_html(load_quizzes()["overwrite-in-flight"], 1)
    assert 'in <a href="02_blocking_p2p.ipynb">notebook 02</a>.' in named


def press(client: BlockingKernelClient, index: int | None) -> None:
    """Send the page's messages for choosing an option and pressing the button."""
    if index is not None:
        send(client, "choices", {"method": "update", "state": {"index": index}})
    send(client, "button", {"method": "custom", "content": {"event": "click"}})


def send(client: BlockingKernelClient, widget: str, data: dict[str, Any]) -> None:
    model_id = evaluate(client, f"{widget}.model_id").strip("'")
    content = {"comm_id": model_id, "data": data}
    client.shell_channel.send(client.session.msg("comm_msg", content))


def test_shows_earlier_answer() -> None:
    assert earlier_answer(QUIZ)["text/plain"] == ""
    answer_quiz(QUIZ, 0)
    assert earlier_answer(QUIZ)["text/plain"] == "You answered a) ✗ Try again."
    answer_quiz(QUIZ, 1)
    answer_quiz(QUIZ, 2)
    assert earlier_answer(QUIZ)["text/plain"] == "You answered b) ✓"
