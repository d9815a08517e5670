"""The board's view of a class: stuck learners, current mistakes, raised hands."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.checks.headings import headings
from helpers.checks.mistakes import known_mistakes
from helpers.room.board import AWAY_AFTER_MIN, MAX_HANDS, Board
from helpers.room.board_messages import CheckEvent, HandEvent
from helpers.room.store import Learner, StoredEvent

MINUTE = 60.0
ID = "0" * 32
MISTAKE = known_mistakes(headings()["ping_pong"])[0]


@pytest.fixture
def board() -> Board:
    board = Board(headings(), known_mistakes)
    for id, name in enumerate(("Ana", "Ben", "Ana"), 1):
        board.add_learner(Learner(id, name, b""))
    return board


def check(
    board: Board,
    learner: int,
    minute: float,
    outcome: str,
    mistake: str = "",
    name: str = "ping_pong",
) -> None:
    board.apply_event(StoredEvent(learner, minute * MINUTE, CheckEvent(ID, name, outcome, mistake)))


def board_at(board: Board, minute: float) -> dict[str, Any]:
    return board.news(board.open_page(), minute * MINUTE)


def test_page_receives_full_state_then_changes(board: Board) -> None:
    check(board, 1, 0, "wrong")
    page = board.open_page()
    first = board.news(page, 0)
    assert first["learners"] == [[1, "Ana"], [2, "Ben"], [3, "Ana (2)"]]
    assert (
        first["cells"] == [[1, "ping_pong", 1, False, "wrong"]] and first["at"] == "02_blocking_p2p"
    )
    check(board, 1, 1, "passed")
    check(board, 1, 2, "wrong")
    second = board.news(page, 2 * MINUTE)
    assert second["learners"] == [] and second["cells"] == [[1, "ping_pong", 3, True, "wrong"]]


def test_repeated_failures_mark_learner_stuck(board: Board) -> None:
    for minute in (0, 8):
        check(board, 1, minute, "wrong")
    assert board_at(board, 9)["stuck"] == []
    check(board, 1, 16, "wrong")
    check(board, 2, 0, "wrong")
    check(board, 2, 16, "passed")
    assert board_at(board, 16)["stuck"] == [[1, "ping_pong", 16]]
    # learners who are away, or have just returned, are not stuck
    assert board_at(board, 17 + AWAY_AFTER_MIN)["stuck"] == []
    check(board, 1, 60, "wrong")
    assert board_at(board, 61)["stuck"] == []
    # a learner who continues reading after one wrong check is not stuck
    check(board, 3, 60, "wrong")
    assert board_at(board, 75)["stuck"] == []


def test_counts_only_current_mistakes(board: Board) -> None:
    for learner in (1, 2):
        check(board, learner, 0, MISTAKE.outcome.value, MISTAKE.title)
    (mistake,) = board_at(board, 1)["mistakes"]
    assert (mistake["count"], mistake["exercise"]) == (2, "ping_pong")
    assert "{" not in mistake["words"]
    check(board, 1, 2, "passed")
    check(board, 2, 2, "wrong", name="swap")
    assert board_at(board, 3)["mistakes"] == []


def test_omits_unknown_exercises_and_mistakes(board: Board) -> None:
    check(board, 1, 0, "wrong", "<b>a text of my own</b>")
    check(board, 1, 0, "wrong", name="<i>no exercise</i>")
    check(board, 1, 0, "<u>no outcome</u>")
    found = board_at(board, 0)
    assert found["cells"] == [[1, "ping_pong", 1, False, "wrong"]] and found["mistakes"] == []


def test_raised_hand_shows_last_checked_exercise(board: Board) -> None:
    check(board, 1, 0, "wrong")
    board.apply_event(StoredEvent(1, MINUTE, HandEvent(ID, True)))
    board.apply_event(StoredEvent(2, 0, HandEvent(ID, True, "swap", "def swap(): ...")))
    page = board.open_page()
    first, second = (board.news(page, 2 * MINUTE) for _ in range(2))
    assert first["hands"] == second["hands"] == [[2, "swap", 2], [1, "ping_pong", 1]]
    # code may be long, so it is sent only once
    assert first["codes"] == [[2, "def swap(): ..."], [1, ""]] and second["codes"] == []
    board.apply_event(StoredEvent(1, MINUTE, HandEvent(ID, False)))
    assert len(board_at(board, 2)["hands"]) == 1


def test_counts_hands_and_lists_longest_raised(board: Board) -> None:
    for learner in range(10, 10 + 2 * MAX_HANDS):
        board.add_learner(Learner(learner, "Ben", b""))
        board.apply_event(
            StoredEvent(learner, learner * MINUTE, HandEvent(ID, True, "swap", "x" * 20_000))
        )
    found = board_at(board, 200)
    assert found["up"] == 2 * MAX_HANDS
    assert [each[0] for each in found["hands"]] == [*range(10, 10 + MAX_HANDS)]
    assert len(found["codes"]) == MAX_HANDS


def test_removed_learner_disappears_from_board(board: Board) -> None:
    page = board.open_page()
    board.news(page, 0)
    check(board, 1, 0, "wrong")
    board.apply_event(StoredEvent(1, 0, HandEvent(ID, True)))
    board.remove(1)
    check(board, 1, 0, "wrong")  # the event was in flight
    found = board.news(page, 0)
    assert found["removed"] == [1] and found["joined"] == 2
    assert found["learners"] == found["cells"] == found["hands"] == []


def test_adds_numbers_to_similar_names(board: Board) -> None:
    board.add_learner(Learner(4, "\u0410n\u0430", b""))  # in Cyrillic letters
    assert board.names[4].endswith("(3)")


def test_projected_board_hides_names(board: Board) -> None:
    check(board, 1, 0, MISTAKE.outcome.value, MISTAKE.title)
    check(board, 1, 12, MISTAKE.outcome.value, MISTAKE.title)
    check(board, 2, 0, "passed")
    board.apply_event(StoredEvent(2, 0, HandEvent(ID, True, "swap", "secret")))
    found = board.projected_news(15 * MINUTE)
    assert found["exercises"] == [["ping_pong", 1, 1]]
    assert (found["up"], found["stuck"], found["joined"]) == (1, 1, 3)
    assert not any(word in str(found) for word in ("Ana", "Ben", "secret"))
