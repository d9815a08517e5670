"""Find the closure of an answer: all statements, from any cell, that it needs to run.

    answer's name --> binders --> names used by them --> their binders and changers --> ... --> order

`build` calls this module. It takes names from `names`, and statements from `listing`. The method is static
slicing (Weiser, 1981) of a module's top level: a statement is included if its bindings or changes may affect
the answer. Names used by a function are resolved at the end, when all cells have run. Names used immediately
by a statement are resolved at this statement.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from helpers.answers.external_values import find_external_value
from helpers.answers.listing import END_OF_CELLS, Listing, Position, Statement

# The functions called by a statement can only be guessed, in a time that grows quadratically with the
# closure. Beyond this number of steps, only the last definitions of names are followed.
_MAX_CALL_STEPS = 20_000
_STAR_IMPORT_PATTERN = re.compile(r"\bimport\s*\*")
_Edges = Mapping[Position, set[Position]]
_KERNEL_MEMORY_PATTERN = re.compile(r"_{1,3}|_\d+|_i+|_i\d+|_oh|_ih|_dh|Out|In")


class Unresolved(Exception):
    """The closure needs a value that is not available in a rank. The message is for the learner."""


@dataclass(frozen=True)
class Need:
    """The reason why a statement is in the closure: `user` uses `name` (if `later`, only when called)."""

    name: str
    user: Statement | None
    later: bool


@dataclass(frozen=True)
class Closure:
    """The statements of an answer in the order in which they must run.

    Args:
        reached: The reason for including each statement.
        unknown: Names not bound by any cell, each with a statement that uses it.
    """

    statements: tuple[Statement, ...]
    reached: dict[Position, Need]
    unknown: dict[str, Statement]


@dataclass
class _Search:
    listing: Listing
    name_cell: Callable[[int], str]
    reached: dict[Position, Need] = field(default_factory=dict)
    statements: dict[Position, Statement] = field(default_factory=dict)
    unknown: dict[str, Statement] = field(default_factory=dict)
    needed_edges: dict[Position, set[Position]] = field(default_factory=lambda: defaultdict(set))
    optional_edges: dict[Position, set[Position]] = field(default_factory=lambda: defaultdict(set))
    external: dict[Position, str] = field(default_factory=dict)
    followed: set[tuple[Position, Position]] = field(default_factory=set)
    pending: deque[tuple[Statement, Position]] = field(default_factory=deque)

    def run(self, name: str) -> Closure:
        self.follow(name, END_OF_CELLS, Need(name, None, later=True), self.needed_edges)
        for statement in _star_imports(self.listing):
            self.reached.setdefault(statement.position, Need("*", None, later=True))
            self.pending.append((statement, END_OF_CELLS))
        while self.pending:
            statement, point = self.pending.popleft()
            if point != END_OF_CELLS:
                self._follow_calls(statement, point)
            if statement.position not in self.statements:
                self._add_statement(statement)
        # Statements found through calls may be added late, so the order is known only now.
        ordered = _order_statements(self.statements, self.needed_edges, self.optional_edges)
        return Closure(tuple(ordered), self.reached, self.unknown)

    def _add_statement(self, statement: Statement) -> None:
        self.statements[statement.position] = statement
        names = statement.names
        # sort them, because the order of string sets varies between processes, but an answer must not vary
        for name in sorted(names.now):
            self.follow(name, statement.position, Need(name, statement, False), self.needed_edges)
        for name in sorted(names.at_once):
            self.follow(name, statement.position, Need(name, statement, False), self.optional_edges)
        for name in sorted(names.later):
            self.follow(name, END_OF_CELLS, Need(name, statement, True), self.needed_edges)
        for name in sorted(names.hints):
            self.follow(name, END_OF_CELLS, Need(name, statement, True), self.optional_edges)

    def _follow_calls(self, statement: Statement, point: Position) -> None:
        """Follow the names of functions that a statement may have called when it ran at `point`.

        Also follow the parts of the statement's value: for example, `g = decorate(h)` keeps h.
        """
        if len(self.followed) > _MAX_CALL_STEPS:
            return
        user = self.statements[point]
        for name in sorted(statement.names.later):
            self.follow(name, point, Need(name, user, False), self.optional_edges)
        for name in sorted(statement.names.now | statement.names.at_once):
            for kept in self.listing.binders_at(name, statement.position):
                if not self._external_reason(kept):
                    self._enqueue(kept, point, Need(name, user, False))

    def follow(
        self,
        name: str,
        point: Position,
        need: Need,
        edges: dict[Position, set[Position]],
    ) -> None:
        """Queue the statements that set `name` at `point`. Raises no error for `optional_edges`."""
        is_soft = edges is self.optional_edges
        binders = self.listing.binders_at(name, point)
        if not binders and not is_soft:
            self._require_known(name, need)
        for statement in [*binders, *self.listing.changers_of(name, binders)]:
            # leave out unavailable statements that might not be needed
            if self._external_reason(statement):
                if not is_soft:
                    raise Unresolved(self._external_value_message(statement, need))
                continue
            if point != END_OF_CELLS and statement.position != point and statement in binders:
                edges[point].add(statement.position)
            in_force = statement in binders or statement.position < point
            self._enqueue(statement, point if in_force else END_OF_CELLS, need)

    def _enqueue(self, statement: Statement, point: Position, need: Need) -> None:
        if (statement.position, point) not in self.followed:
            self.followed.add((statement.position, point))
            self.reached.setdefault(statement.position, need)
            self.pending.append((statement, point))

    def _external_reason(self, statement: Statement) -> str:
        # cache this, because several paths lead to a statement, and following its calls takes time
        if statement.position not in self.external:
            self.external[statement.position] = find_external_value(self.listing, statement)
        return self.external[statement.position]

    # --- unavailable values ----------------------------------------------------------------------

    def _require_known(self, name: str, need: Need) -> None:
        user = need.user
        if user is None:
            return
        for statement in self.listing.binders(name):
            raise Unresolved(_skipped_message(name, need, statement, self.name_cell))
        if _KERNEL_MEMORY_PATTERN.fullmatch(name):
            raise Unresolved(
                f"{_describe_user(need)} uses `{name}` ({self.name_cell(user.cell)}), the "
                "kernel's record of a "
                "different cell, which is not stored in the notebook. Assign this value to a "
                f"separate name. {_SKIP_ADVICE}"
            )
        # not an error yet: a builtin, a star import or a `global` may still define it
        self.unknown.setdefault(name, user)

    def _external_value_message(self, statement: Statement, need: Need) -> str:
        """Return a message that names the variable used by the function, and the last call of the chain."""
        source = f"{self._cell_name(statement)} {self._external_reason(statement)}"
        if need.user is None:
            return (
                f"`{need.name}` depends on something outside the cells: {source}. A check does not "
                f"repeat that. {_SKIP_ADVICE}"
            )
        chain = [need.name]
        while (before := self._reason_needed(need)) is not None:
            need = before
            chain.append(need.name)
        via = ", ".join(f"`{name}`" for name in dict.fromkeys(chain[-2::-1]))
        through = f" (through {via})" if via else ""
        return (
            f"{_describe_user(need)} uses `{chain[-1]}`, whose value comes{through} from "
            "outside the cells: "
            f"{source}. A check does not repeat that. {_SKIP_ADVICE}"
        )

    def _reason_needed(self, need: Need) -> Need | None:
        """Return the reason for including the user of this name, or None for a function or the answer."""
        user = need.user
        if user is None or need.later or user.is_definition:
            return None
        before = self.reached[user.position]
        return before if before.user is not None else None

    def _cell_name(self, statement: Statement) -> str:
        return f"{self.name_cell(statement.cell)} (line {statement.line})"


def _describe_user(need: Need) -> str:
    names = sorted(need.user.names.binds) if need.user else [need.name]
    return f"`{names[0]}`" if names else "The answer"


_SKIP_ADVICE = "Write the value into the function, or pass it as an argument."


def _skipped_message(
    name: str, need: Need, statement: Statement, name_cell: Callable[[int], str]
) -> str:
    why = {
        "main": 'only under `if __name__ == "__main__":`, which a check does not run. Move that line out',
        "await": "with a top-level `await`, which a check does not run. Compute the value without `await`, "
        "or pass it",
    }[statement.skipped]
    user = _describe_user(need)
    return f"{user} uses `{name}`, which {name_cell(statement.cell)} sets {why}."


def find_closure(listing: Listing, name: str, name_cell: Callable[[int], str]) -> Closure:
    """Return the statements that the answer called `name` needs, including its definition.

    Raises:
        Unresolved: The answer needs a value that exists only in a different run, a file or the kernel.
    """
    return _Search(listing, name_cell).run(name)


def _star_imports(listing: Listing) -> list[Statement]:
    """Return all star imports. They are always kept, because their names are unknown before importing."""
    stars = [s for s in listing.matching(_STAR_IMPORT_PATTERN) if "*" in s.text and s.names.star]
    return [s for s in stars if not s.skipped and not find_external_value(listing, s)]


# --- order ----------------------------------------------------------------------------------------


def _order_statements(
    statements: Mapping[Position, Statement], hard: _Edges, soft: _Edges
) -> list[Statement]:
    """Sort statements by position, but each after the statements that it needs (hard) or may need (soft)."""
    done: dict[Position, None] = {}
    started: set[Position] = set()

    def needed_first(position: Position) -> list[Position]:
        before = set(hard.get(position, ()))
        for other in soft.get(position, set()) - before:
            # Move a soft dependency up only if this does not violate a hard one.
            if other < position or not _has_path(other, position, hard):
                before.add(other)
        return sorted(before & statements.keys())

    # dependencies may be circular, so each statement is placed once, beginning anywhere in the cycle
    def place(position: Position) -> None:
        if position in started:
            return
        started.add(position)
        for other in needed_first(position):
            place(other)
        done[position] = None

    for position in sorted(statements):
        place(position)
    return [statements[position] for position in done]


def _has_path(start: Position, goal: Position, hard: _Edges) -> bool:
    pending, seen = [start], {start}
    while pending:
        for other in hard.get(pending.pop(), ()):
            if other == goal:
                return True
            if other not in seen:
                seen.add(other)
                pending.append(other)
    return False
