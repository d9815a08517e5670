"""Keep what the board shows up to date, event by event: pure data, without network, disk or clock.

    events -> Board.take -> cells, hands -> Board.news(subscriber) -> a message for a page

A page gets everything once, and afterwards only the changes.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from helpers.checks.headings import Heading
from helpers.checks.mistakes import KnownMistake
from helpers.checks.result import Outcome
from helpers.room.messages import Checked
from helpers.room.store import Happened, Learner

STUCK_AFTER_MIN = 10.0
NOW_MIN = 20.0
"""If the last check is longer ago, a learner is away: neither stuck, nor making a mistake "now"."""
MOST_HANDS = 40
"""How many hands a page lists, those raised first. The others are only counted."""
_FACT = re.compile(r"\{(\w+)\}")


@dataclass(slots=True)
class Cell:
    """One learner at one exercise. Times are in seconds since the epoch.

    Args:
        outcome: Of the last check.
        since: Of the first check after the last long break.
        last: Of the last check.
        mistake: The key of its sentence, or "".
    """

    tries: int = 0
    passed: bool = False
    outcome: str = ""
    since: float = 0.0
    last: float = 0.0
    mistake: str = ""


@dataclass(frozen=True)
class RaisedHand:
    """A raised hand. exercise: "" if the learner has tried none."""

    at: float
    exercise: str
    code: str


@dataclass(frozen=True)
class Shared:
    """A sentence that several known mistakes of an exercise may share. title: of the first of them."""

    key: str
    exercise: str
    title: str
    words: str


@dataclass
class News:
    """What has not been sent to one page yet.

    Args:
        removed: Learners whom the page still shows.
        sent: The hands whose code it has.
    """

    learners: set[int] = field(default_factory=set)
    cells: set[tuple[int, str]] = field(default_factory=set)
    removed: set[int] = field(default_factory=set)
    sent: dict[int, RaisedHand] = field(default_factory=dict)


class Board:
    """The present state of the class.

    Args:
        exercises: By name, in the course's order.
        known: Returns the known mistakes of an exercise in this copy of the course.
    """

    def __init__(
        self,
        exercises: Mapping[str, Heading],
        known: Callable[[Heading], Iterable[KnownMistake]],
        stuck_after_min: float = STUCK_AFTER_MIN,
    ) -> None:
        self.exercises = exercises
        self.stuck_after_min = stuck_after_min
        self.names: dict[int, str] = {}
        self.cells: dict[tuple[int, str], Cell] = {}
        self.hands: dict[int, RaisedHand] = {}
        self.shared: dict[str, Shared] = {}
        self.pages: list[News] = []
        self._known = known
        self._titles: dict[str, dict[str, str]] = {}
        self._at: dict[int, str] = {}  # learner -> the exercise that was checked last

    def add_learner(self, learner: Learner) -> None:
        """Add a learner, or rename one. A number is added to a name that exists already."""
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
        """Remove everything about a learner."""
        self.names.pop(learner, None)
        self.hands.pop(learner, None)
        self._at.pop(learner, None)
        for key in [key for key in self.cells if key[0] == learner]:
            del self.cells[key]
        for page in self.pages:
            page.removed.add(learner)
            page.learners.discard(learner)
            page.cells = {key for key in page.cells if key[0] != learner}

    def take(self, happened: Happened) -> None:
        """Apply an event. Names that this copy of the course does not contain are ignored."""
        event, learner = happened.event, happened.learner
        if learner not in self.names:  # removed while this was being stored
            return
        exercise = event.exercise if event.exercise in self.exercises else ""
        if not isinstance(event, Checked):
            if event.up:
                at = exercise or self._at.get(learner, "")
                self.hands[learner] = RaisedHand(happened.at, at, event.code)
            else:
                self.hands.pop(learner, None)
            return
        if not exercise or event.outcome not in _OUTCOMES:
            return
        cell = self.cells.setdefault((learner, exercise), Cell())
        if _minutes(happened.at, cell.last) > NOW_MIN:  # after a break a learner is not stuck yet
            cell.since = happened.at
        cell.tries += 1
        cell.last = happened.at
        cell.outcome = event.outcome
        cell.passed = cell.passed or event.outcome == Outcome.PASSED.value
        cell.mistake = self._key(exercise, event.mistake) if event.mistake else ""
        self._at[learner] = exercise
        for page in self.pages:
            page.cells.add((learner, exercise))

    def _key(self, exercise: str, title: str) -> str:
        """Return the key of a mistake's sentence, or "" if no mistake here has this title."""
        if exercise not in self._titles:
            self._titles[exercise] = titles = {}
            for mistake in self._known(self.exercises[exercise]):
                told = hashlib.sha256(f"{exercise}\n{mistake.words}".encode()).hexdigest()[:16]
                words = _FACT.sub(r"\1", mistake.words)
                self.shared.setdefault(told, Shared(told, exercise, mistake.title, words))
                titles[mistake.title] = told
        return self._titles[exercise].get(title, "")

    # --- for a page ----------------------------------------------------------------------------------

    def open_page(self) -> News:
        """Start to collect news for a new page, which has seen nothing yet."""
        news = News(set(self.names), set(self.cells))
        self.pages.append(news)
        return news

    def news(self, page: News, now: float) -> dict[str, Any]:
        """Return what a teacher's page has not seen, and all short lists, as JSON types."""
        learners, page.learners = page.learners, set()
        cells, page.cells = page.cells, set()
        removed, page.removed = page.removed, set()
        hands = dict(sorted(self.hands.items(), key=lambda item: item[1].at)[:MOST_HANDS])
        # Code may be long, and a page gets a message for each change in the class.
        codes = {id: hand.code for id, hand in hands.items() if page.sent.get(id) is not hand}
        page.sent = hands
        return {
            "joined": len(self.names),
            "removed": sorted(removed),
            "learners": [[id, self.names[id]] for id in sorted(learners)],
            "cells": [[*key, *self._shown(key)] for key in sorted(cells)],
            "at": self._busiest(now),
            "mistakes": self._mistakes(now),
            "stuck": [[id, name, minutes] for id, name, minutes in self._stuck(now)],
            "up": len(self.hands),
            "hands": [[id, hand.exercise, _minutes(now, hand.at)] for id, hand in hands.items()],
            "codes": [[id, code] for id, code in codes.items()],
        }

    def without_names(self, now: float) -> dict[str, Any]:
        """Return what is projected: only counts, nothing about single learners."""
        tried: dict[str, list[int]] = {}
        for (_, exercise), cell in self.cells.items():
            counts = tried.setdefault(exercise, [0, 0])
            counts[not cell.passed] += 1
        return {
            "joined": len(self.names),
            "exercises": [[name, *tried[name]] for name in self.exercises if name in tried],
            "at": self._busiest(now),
            "mistakes": self._mistakes(now),
            "stuck": len(self._stuck(now)),
            "up": len(self.hands),
        }

    def _shown(self, key: tuple[int, str]) -> tuple[int, bool, str]:
        cell = self.cells[key]
        return cell.tries, cell.passed, cell.outcome

    def _current(self, now: float) -> Iterable[tuple[int, str, Cell]]:
        """Yield the learners who are working, each with the exercise that was checked last."""
        for learner, exercise in self._at.items():
            cell = self.cells[learner, exercise]
            if _minutes(now, cell.last) <= NOW_MIN:
                yield learner, exercise, cell

    def _stuck(self, now: float) -> list[tuple[int, str, int]]:
        """Return (learner, exercise, minutes since the first try), the longest first.

        A learner is stuck after trying for that long. One wrong check followed by reading or a break is not
        enough.
        """
        found = [
            (learner, exercise, _minutes(now, cell.since))
            for learner, exercise, cell in self._current(now)
            if not cell.passed and cell.last - cell.since >= 60 * self.stuck_after_min
        ]
        return sorted(found, key=lambda each: -each[2])

    def _mistakes(self, now: float) -> list[dict[str, Any]]:
        """Return the mistakes that learners make now, the most frequent first."""
        counts: dict[str, int] = {}
        for _, _, cell in self._current(now):
            if cell.mistake and not cell.passed:
                counts[cell.mistake] = counts.get(cell.mistake, 0) + 1
        return [
            {
                "key": key,
                "count": count,
                "exercise": self.shared[key].exercise,
                "words": self.shared[key].words,
            }
            for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ]

    def _busiest(self, now: float) -> str:
        """Return the notebook on which most learners work now, or worked last."""
        at = [exercise for _, exercise, _ in self._current(now)] or list(self._at.values())
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


def _minutes(now: float, at: float) -> int:
    return max(0, int((now - at) / 60))
