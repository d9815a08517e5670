"""20.1 Agree on the members (quorum) (25 min, ●●●●○, further)

- Two replicas look at the store at slightly different moments, and see different members. Whose view counts?
  And what happens if this replica is killed?
- You don't need a leader: each replica sets a key when it arrives, waits, and proposes the members that it
  sees. `compare_set` accepts only the first proposal, and returns this proposal to all later callers.
- store.set(f"{number}/{me}", str(step)); newest is the largest step in the decision of round number - 1,
  which is in the store, or -1 if there is no such decision. Loop until store.check([f"{number}/decided"]):
  mine = {r: int(store.get(...))} for each r whose key is set. If all of `expected` are in `mine`, or if
  `patience` seconds have passed since the start (by time.monotonic()), and if max(mine.values()) >= newest:
  store.compare_set(f"{number}/decided", "", repr(mine)). Then return
  ast.literal_eval(store.get(f"{number}/decided").decode()).
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb20_without_a_restart.in_ranks.membership import (
    LATE_PATIENCE_S,
    run_rounds,
)
from helpers.ranks.failures import RankFailed, RankTimeout

MAX_DELAY_S = 1.5
"""The number of seconds by which a decision may be late on a busy machine."""
LEADER_KILLS = {2: 2, 5: 3}
"""{world size: number of the write before which replica 0, which asks first, is killed}

If an answer lets the first or the smallest replica decide, this write is the decision.
"""
PATIENCE_S = {
    "late and absent": 0.6,
    "alone": 0.8,
    "one by one": 0.8,
    "left out": 0.4,
    "newest killed": 1.0,
}
"""{kind of round: patience in seconds}

For "alone", three times the patience must exceed any delay on a busy machine. For "newest killed", half of
the patience must be enough for any answer to ask.
"""
NEWEST_KILLED_SIZE = 3
"""The world size in which the last round is "newest killed" instead of "left out"."""
OLD_QUESTION = "an earlier round's question"
UNEXPECTED_KINDS = ("early", "unexpected", "others than expected")
"""The kinds of rounds in which the odd replica is not in `expected`."""


def case(draw: Draw) -> Case:
    n = draw.ranks
    ending = draw.of("killed", "killed", "late")
    dies = (draw.rank(), draw.of(1, 2, 3)) if ending == "killed" and n > 1 else (-1, 0)
    if n in LEADER_KILLS:
        ending, dies = "killed", (0, LEADER_KILLS[n])
    if n == NEWEST_KILLED_SIZE:
        ending, dies = "newest killed", (draw.rank(), 0)
    kinds = ["all", draw.of("absent", "unexpected", "late", "early")] if n > 1 else ["all"]
    kinds += ["late and absent", "meanwhile"] if n > 2 else []
    kinds += ["others than expected"] if n > 1 else []
    kinds += [draw.of("alone", "one by one")] if n > 3 else []
    kinds += ["left out"] if n > NEWEST_KILLED_SIZE else []
    kinds.append("all" if ending == "killed" or n == 1 else ending)
    rounds: list[dict[str, Any]] = []
    for number, kind in enumerate(kinds):
        odd, other = draw.rank(), draw.whole(1, max(1, n - 1))
        odd = dies[0] if kind == "newest killed" else odd
        roles = draw_roles(kind, n, odd, (odd + other) % n)
        expected = [r for r in range(n) if r != odd or kind not in UNEXPECTED_KINDS]
        killed = number == len(kinds) - 1 and dies[0] >= 0
        waits = killed or any(roles[r] in ("absent", "late") for r in expected)
        # each round's steps exceed those of the previous round, except for a replica that lags behind, and
        # except if the step between the first two rounds failed
        steps = [-1 if r == "behind" else 100 * number + draw.whole(0, 99) for r in roles]
        if number == 1:
            steps = [max(rounds[0]["steps"])] * n
        if kind == "newest killed":
            steps = [s if r == odd else s % 50 - 1 for r, s in enumerate(steps)]
        patience = PATIENCE_S.get(kind) or (0.3 if waits else 2.5)
        rounds.append({"roles": roles, "expected": expected, "steps": steps, "patience": patience})

    def judge_all_ranks(values: list[Any]) -> Finding | None:
        alive = {r: value for r, value in enumerate(values) if "decided" in value}
        if unknown := values[0]["unknown"]:
            what = f"the key {unknown[0][:60]!r} was set, but not through the given `store`"
            return Finding(what, seen=("set past the store",))
        # reported last, because it relies on everything judged before
        behind: Finding | None = None
        for number, now in enumerate(rounds):
            last_and_killed = number == len(rounds) - 1 and dies[0] >= 0
            replies = {
                r: (value["decided"][number], *value["times"][number])
                for r, value in alive.items()
                if value["decided"][number] is not None
            }
            found = judge_round(number, rounds, replies, dies[0] if last_and_killed else -1)
            if found is not None:
                return replace(found, what=f"{describe_round(number)}\n{found.what}")
            if found := find_missing_newest(number, now, replies):
                behind = behind or replace(found, what=f"{describe_round(number)}\n{found.what}")
        return behind

    killed_before = (
        f"replica {dies[0]} is killed before its write number {dies[1]}, if it writes that often"
        if dies[1]
        else f"replica {dies[0]} is killed after half of `patience`"
        if dies[0] >= 0
        else ""
    )

    def describe_round(number: int) -> str:
        """Describe the round that failed, without the other rounds."""
        is_last = number == len(rounds) - 1
        also = f"; {killed_before}" if killed_before and is_last else ""
        return f"{describe_roles(number, rounds[number])}{also}"

    told = plural(len(rounds), "round")
    told += f"; in the last one, {killed_before}" if killed_before else ""
    return Case(
        told,
        [(rounds, n, dies)] * n,
        right=AllRanks(lambda got: None, judge_all_ranks),
        like={},
        seconds=20.0,
        shown="",
    )


def draw_roles(kind: str, n: int, special: int, second_special: int) -> list[str]:
    """Return the role of each replica in a round of this kind.

    `special` and `second_special` may have special roles.
    """
    others = [r for r in range(n) if r != special]
    changed = {
        "all": {},
        "absent": {special: "absent"},
        "unexpected": {special: "absent"},
        "late": {special: "late"},
        "early": {special: "early"},
        "late and absent": {special: "late", second_special: "absent"},
        "meanwhile": {special: "meanwhile", second_special: "impatient"},
        "others than expected": {second_special: "absent"},
        "alone": dict.fromkeys(others, "absent"),
        "one by one": {
            special: "absent",
            (special + 1) % n: "second",
            (special + 2) % n: "straggler",
        },
        "left out": {special: "behind", **dict.fromkeys(others, "slow")},
        "newest killed": {special: "newest", second_special: "absent"},
    }[kind]
    return [changed.get(r, "on time") for r in range(n)]


TIMELY_ROLES = ("on time", "early", "impatient", "second", "behind", "newest")


def describe_roles(number: int, spec: Any) -> str:
    """Describe the replicas that ask in a round, and the times at which they ask."""
    special = []
    for r, role in enumerate(spec["roles"]):
        strange = r not in spec["expected"]
        if role in ROLE_WORDS:
            also = " and is not expected" * (strange and role == "absent")
            special.append(f"replica {r} {ROLE_WORDS[role]}{also}")
        elif strange:
            special.append(f"replica {r} asks, although it is not expected")
    return f"round {number}: {' and '.join(special) or 'all replicas ask'}"


ROLE_WORDS = {
    "absent": "does not ask",
    "late": "asks after the decision",
    "early": "asks first, although it is not expected",
    "meanwhile": "asks while another replica, which has waited, writes its decision",
    "second": "asks after 0.7 times `patience`",
    "straggler": "asks after 1.35 times `patience`",
    "behind": "asks first, with step -1",
    "slow": "asks after 2.5 times `patience`",
    "newest": "is the only one with the newest step",
}


def judge_round(number: int, rounds: Any, replies: dict[int, Any], killed: int) -> Finding | None:
    """Judge the result of one round.

    replies: {replica: (dict, began, ended)} for each replica that asked and survived.
    """
    now = rounds[number]
    said, roles = f"in round {number},", now["roles"]

    def earlier(m: int) -> list[int]:
        """Return the steps with which a replica asked in earlier rounds."""
        return [one["steps"][m] for one in rounds[:number] if 0 <= m < len(one["steps"])]

    for r, (got, *_) in replies.items():
        if not isinstance(got, dict):
            what = "nothing" if got == "NoneType" else f"a {got}"
            what = f"{said} replica {r} returns {what}, not a dict of ints"
            return Finding(what, seen=("not a dict of ints",))
    for r, (got, *_) in replies.items():
        for m, step in got.items():
            has = f"{said} replica {r} has member {m}, which"
            if not 0 <= m < len(roles) or roles[m] == "absent":
                seen = "a member that did not ask" if step not in earlier(m) else OLD_QUESTION
                return Finding(f"{has} did not ask", seen=(seen,))
            if step != now["steps"][m]:
                what = f"{has} asked with step {now['steps'][m]}, not {step}"
                return Finding(what, seen=(OLD_QUESTION if step in earlier(m) else "another step",))
            if roles[m] in ("late", "straggler"):
                by_time = roles[m] == "straggler"
                seen = "patience starts again" if by_time else "decided twice"
                # some replica had this member before that member asked
                if m in replies and any(
                    m in had and ended < replies[m][1] for had, _, ended in replies.values()
                ):
                    seen, by_time = OLD_QUESTION, False
                return Finding(f"{has} asked too late", rests_on_time=by_time, seen=(seen,))
        for m, role in enumerate(roles):
            if role == "newest" and m not in got:
                what = f"{said} replica {r} lacks member {m}, which had asked before it was killed"
                return Finding(what, seen=("a killed member left out",))
            if role in TIMELY_ROLES and m not in got and m != killed:
                what = f"{said} replica {r} lacks member {m}, which asked in time"
                if m not in now["expected"]:
                    return Finding(what, seen=("only expected ones",))
                return Finding(what, seen=("does not wait",) if got else ())
    for first, r in pairwise(sorted(replies)):
        one, other = replies[first][0], replies[r][0]
        if one != other:
            what = f"{said} replica {first} gets {one}, but replica {r} gets {other}"
            return Finding(what, seen=("several decisions",))
    return judge_duration(said, now, replies, killed)


def find_missing_newest(number: int, now: Any, replies: dict[int, Any]) -> Finding | None:
    """Return a finding if only replicas without steps have decided, although others have steps."""
    for r, (got, *_) in replies.items():
        if "behind" in now["roles"] and all(now["roles"][m] == "behind" for m in got):
            what = f"in round {number}, replica {r} gets {got}, but no member has the newest steps"
            return Finding(what, seen=("newest steps lost",))
    return None


def judge_duration(subject: str, spec: Any, replies: dict[int, Any], killed: int) -> Finding | None:
    """Judge the duration of the first decision, and whether a late replica received the decision at once."""
    roles, patience = spec["roles"], spec["patience"]
    on_time = [r for r in replies if roles[r] not in ("late", "straggler")]
    if {"meanwhile", "behind"} & set(roles) or not on_time:
        return None  # the replica that was on time was killed later, and reports nothing
    begun = max(replies[r][1] for r in on_time)
    first_begun = min(replies[r][1] for r in on_time)
    ended = max(replies[r][2] for r in on_time)
    missing = any(roles[r] in ("absent", "late") for r in spec["expected"])
    # in "one by one", time is measured from the first replica, which may have been killed
    first_is_known = any(roles[r] == "on time" for r in replies) or "second" not in roles
    decided_s = min(replies[r][2] for r in on_time) - first_begun
    if missing and first_is_known and decided_s < 0.9 * patience:
        what = f"{subject} the replicas decide before `patience` is over"
        return Finding(what, seen=("decides early",))
    if missing or killed >= 0:
        if ended - begun > patience + MAX_DELAY_S:
            what = f"{subject} the decision takes {ended - begun:.1f} s; `patience` is {patience} s"
            return Finding(what, rests_on_time=True, seen=("waits too long",))
    elif ended - begun > 0.9 * patience:
        what = f"{subject} the decision takes {ended - begun:.1f} s, although all have asked"
        return Finding(what, rests_on_time=True, seen=("waits for nothing",))
    for r in replies:
        waited = replies[r][2] - replies[r][1]
        if roles[r] == "late" and missing and waited > 0.8 * LATE_PATIENCE_S:
            what = (
                f"{subject} replica {r}, which asks after the decision, waits {waited:.1f} s for it"
            )
            return Finding(what, rests_on_time=True, seen=("waits for a decision",))
    return None


def observe_failure(case: Case, run: Run) -> Iterator[str]:
    """Yield the observations in a failed run: replicas that found no replica, or that waited in a round."""
    error = run.failure.error if isinstance(run.failure, RankFailed) else None
    rounds = case.given[0][0]
    told = [value for value in run.values if isinstance(value, dict)]
    if isinstance(run.failure, RankTimeout):
        waited_s = max((value.get("after_death_s", 0.0) for value in told), default=0.0)
        if waited_s > 2 * rounds[-1]["patience"] + MAX_DELAY_S:
            yield "waits although the newest has asked"
    if error and error.kind == "ValueError" and "max()" in error.message:
        yield from (
            "an unexpected replica finds none"
            for now in rounds
            if error.rank not in now["expected"]
        )


EXERCISE = Exercise(
    case,
    kind=Kind.SCRIPT,
    driver=run_rounds,
    reported=("times",),
    sizes=(1, 2, 3, 4, 5),
    count=6,
    observe=observe_failure,
)
