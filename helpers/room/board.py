"""Update the board's state, event by event: pure data, without network, disk or clock.

    events -> Board.apply_event -> cells, hands -> Board.news(subscriber) -> a message for a page

A page receives the complete state once, and afterwards only changes.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from helpers.check_result import Outcome
from helpers.checks.headings import Heading
from helpers.checks.mistakes import KnownMistake
from helpers.room.board_messages import CheckEvent
from helpers.room.store import Learner, StoredEvent

STUCK_AFTER_MIN = 10.0
AWAY_AFTER_MIN = 20.0
"""Minutes without a check after which a learner is away: neither stuck, nor making a mistake "now"."""
MAX_HANDS = 40
"""Maximum number of hands listed on a page, earliest first. Other hands are only counted."""
_PLACEHOLDER_PATTERN = re.compile(r"\{(\w+)\}")


@dataclass(slots=True)
class Cell:
    """One learner's work on one exercise. Times are in seconds since the epoch.

    Args:
        outcome: The outcome of the last check.
        trying_since_s: The time of the first check after the last long break.
        last_check_s: The time of the last check.
        mistake: The key of the mistake's sentence, or "".
    """

    tries: int = 0
    passed: bool = False
    outcome: str = ""
    trying_since_s: float = 0.0
    last_check_s: float = 0.0
    mistake: str = ""


@dataclass(frozen=True)
class RaisedHand:
    """A raised hand. exercise: "" if the learner has not tried any exercise."""

    time_s: float
    exercise: str
    code: str


@dataclass(frozen=True)
class SharedMistake:
    """A sentence for one or more known mistakes of an exercise. title: the first mistake's title."""

    key: str
    exercise: str
    title: str
    words: str


@dataclass
class PendingNews:
    """The changes not yet sent to one page.

    Args:
        removed: Removed learners whom the page still shows.
        sent_hands: The hands whose code has been sent to the page.
    """

    learners: set[int] = field(default_factory=set)
    cells: set[tuple[int, str]] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)
    sent_hands: dict[int, RaisedHand] = field(default_factory=dict)


class Board:
    """The current state of the class.

    Args:
        exercises: {name: exercise}, in the course's order.
        find_mistakes: Function that returns an exercise's known mistakes in this copy of the course.
    """

    def __init__(
        self,
        exercises: Mapping[str, Heading],
        find_mistakes: Callable[[Heading], Iterable[KnownMistake]],
        stuck_after_min: float = STUCK_AFTER_MIN,
    ) -> None:
        self.exercises = exercises
        self.stuck_after_min = stuck_after_min
        self.names: dict[int, str] = {}
        self.cells: dict[tuple[int, str], Cell] = {}
        self.hands: dict[int, RaisedHand] = {}
        self.shared_mistakes: dict[str, SharedMistake] = {}
        self.pages: list[PendingNews] = []
        self._find_mistakes = find_mistakes
        self._titles: dict[str, dict[str, str]] = {}
        self._last_exercise: dict[int, str] = {}  # learner -> the last checked exercise

    def add_learner(self, learner: Learner) -> None:
        """Add or rename a learner. If the name already exists, add a number to it."""
        taken = {_lookalike_key(name) for id, name in self.names.items() if id != learner.id}
        name, count = learner.name, 1
        while _lookalike_key(name) in taken:
            count += 1
            name = f"{learner.name} ({count})"
        self.names[learner.id] = name
        for page in self.pages:
            page.learners.add(learner.id)
            page.removed.discard(learner.id)

    def remove(self, learner: int) -> None:
        """Remove all data about a learner."""
        self.names.pop(learner, None)
        self.hands.pop(learner, None)
        self._last_exercise.pop(learner, None)
        for key in [key for key in self.cells if key[0] == learner]:
            del self.cells[key]
        for page in self.pages:
            page.removed.add(learner)
            page.learners.discard(learner)
            page.cells = {key for key in page.cells if key[0] != learner}

    def apply_event(self, happened: StoredEvent) -> None:
        """Apply an event, ignoring names missing from this copy of the course."""
        event, learner = happened.event, happened.learner
        if learner not in self.names:  # the learner was removed while the event was being stored
            return
        exercise = event.exercise if event.exercise in self.exercises else ""
        if not isinstance(event, CheckEvent):
            if event.up:
                at = exercise or self._last_exercise.get(learner, "")
                self.hands[learner] = RaisedHand(happened.time_s, at, event.code)
            else:
                self.hands.pop(learner, None)
            return
        if not exercise or event.outcome not in _OUTCOMES:
            return
        cell = self.cells.setdefault((learner, exercise), Cell())
        if (
            _minutes(happened.time_s, cell.last_check_s) > AWAY_AFTER_MIN
        ):  # directly after a break, a learner is not stuck
            cell.trying_since_s = happened.time_s
        cell.tries += 1
        cell.last_check_s = happened.time_s
        cell.outcome = event.outcome
        cell.passed = cell.passed or event.outcome == Outcome.PASSED.value
        cell.mistake = self._mistake_key(exercise, event.mistake) if event.mistake else ""
        self._last_exercise[learner] = exercise
        for page in self.pages:
            page.cells.add((learner, exercise))

    def _mistake_key(self, exercise: str, title: str) -> str:
        """Return the key of a mistake's sentence, or "" if no mistake here has this title."""
        if exercise not in self._titles:
            self._titles[exercise] = titles = {}
            for mistake in self._find_mistakes(self.exercises[exercise]):
                told = hashlib.sha256(f"{exercise}\n{mistake.words}".encode()).hexdigest()[:16]
                words = _PLACEHOLDER_PATTERN.sub(r"\1", mistake.words)
                self.shared_mistakes.setdefault(
                    told, SharedMistake(told, exercise, mistake.title, words)
                )
                titles[mistake.title] = told
        return self._titles[exercise].get(title, "")

    # --- for a page ----------------------------------------------------------------------------------

    def open_page(self) -> PendingNews:
        """Start collecting news for a new page, which has not received any data yet."""
        news = PendingNews(set(self.names), set(self.cells))
        self.pages.append(news)
        return news

    def news(self, page: PendingNews, now: float) -> dict[str, Any]:
        """Return the news for a teacher's page, and all short lists, as JSON types."""
        learners, page.learners = page.learners, set()
        cells, page.cells = page.cells, set()
        removed, page.removed = page.removed, set()
        hands = dict(sorted(self.hands.items(), key=lambda item: item[1].time_s)[:MAX_HANDS])
        # Send code only once: it may be long, and a page receives a message for each change in the class.
        codes = {id: hand.code for id, hand in hands.items() if page.sent_hands.get(id) is not hand}
        page.sent_hands = hands
        return {
            "joined": len(self.names),
            "removed": sorted(removed),
            "learners": [[id, self.names[id]] for id in sorted(learners)],
            "cells": [[*key, *self._cell_summary(key)] for key in sorted(cells)],
            "at": self._busiest_notebook(now),
            "mistakes": self._current_mistakes(now),
            "stuck": [[id, name, minutes] for id, name, minutes in self._stuck_learners(now)],
            "up": len(self.hands),
            "hands": [
                [id, hand.exercise, _minutes(now, hand.time_s)] for id, hand in hands.items()
            ],
            "codes": [[id, code] for id, code in codes.items()],
        }

    def projected_news(self, now: float) -> dict[str, Any]:
        """Return the data for projection: only counts, and no data about single learners."""
        tried: dict[str, list[int]] = {}
        for (_, exercise), cell in self.cells.items():
            counts = tried.setdefault(exercise, [0, 0])
            counts[not cell.passed] += 1
        return {
            "joined": len(self.names),
            "exercises": [[name, *tried[name]] for name in self.exercises if name in tried],
            "at": self._busiest_notebook(now),
            "mistakes": self._current_mistakes(now),
            "stuck": len(self._stuck_learners(now)),
            "up": len(self.hands),
        }

    def _cell_summary(self, key: tuple[int, str]) -> tuple[int, bool, str]:
        cell = self.cells[key]
        return cell.tries, cell.passed, cell.outcome

    def _working_learners(self, now: float) -> Iterable[tuple[int, str, Cell]]:
        """Yield the working learners, each with the last checked exercise."""
        for learner, exercise in self._last_exercise.items():
            cell = self.cells[learner, exercise]
            if _minutes(now, cell.last_check_s) <= AWAY_AFTER_MIN:
                yield learner, exercise, cell

    def _stuck_learners(self, now: float) -> list[tuple[int, str, int]]:
        """Return (learner, exercise, minutes since the first try), longest first.

        A learner is stuck after trying for a certain time. A single wrong check, followed by reading or a
        break, is not enough.
        """
        found = [
            (learner, exercise, _minutes(now, cell.trying_since_s))
            for learner, exercise, cell in self._working_learners(now)
            if not cell.passed
            and cell.last_check_s - cell.trying_since_s >= 60 * self.stuck_after_min
        ]
        return sorted(found, key=lambda each: -each[2])

    def _current_mistakes(self, now: float) -> list[dict[str, Any]]:
        """Return the learners' current mistakes, most common first."""
        counts: dict[str, int] = {}
        for _, _, cell in self._working_learners(now):
            if cell.mistake and not cell.passed:
                counts[cell.mistake] = counts.get(cell.mistake, 0) + 1
        return [
            {
                "key": key,
                "count": count,
                "exercise": self.shared_mistakes[key].exercise,
                "words": self.shared_mistakes[key].words,
            }
            for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ]

    def _busiest_notebook(self, now: float) -> str:
        """Return the notebook on which most learners are working now, or worked last."""
        at = [exercise for _, exercise, _ in self._working_learners(now)] or list(
            self._last_exercise.values()
        )
        notebooks = [self.exercises[exercise].notebook for exercise in at]
        return max(sorted(set(notebooks)), key=notebooks.count, default="")


_OUTCOMES = {outcome.value for outcome in Outcome}
# Cyrillic and Greek letters that look like Latin ones. Learners whose names look alike get a number.
_LOOK_ALIKES = str.maketrans(
    "АВЕКМНОРСТУХаеорсухіјѕΑΒΕΖΗΙΚΜΝΟΡΤΥΧον", "ABEKMHOPCTYXaeopcyxijsABEZHIKMNOPTYXov"
)


def _lookalike_key(name: str) -> str:
    """Return a form of a name that is equal for names that look alike."""
    return unicodedata.normalize("NFKC", name).translate(_LOOK_ALIKES)


def _minutes(now: float, time_s: float) -> int:
    return max(0, int((now - time_s) / 60))
