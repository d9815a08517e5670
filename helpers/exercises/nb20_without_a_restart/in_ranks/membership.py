"""20.1: replicas that agree on the members through a store, while one of them is late, absent or killed."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Timer
from typing import Any

from torch._C._distributed_c10d import PrefixStore, Store, TCPStore

from helpers.checks.script_worker import ask
from helpers.checks.scripts import Intervention, Monitor, Source, compose
from helpers.exercises.nb20_without_a_restart.in_ranks.store import (
    CHECK_PREFIX,
    connect,
    has_arrived,
    serve_store,
)
from helpers.exercises.shared.in_ranks.attempts import run_replicas, wait_until

IMPATIENT_PATIENCE_S = 0.15
MAX_HOLD_S = 0.4
LATE_PATIENCE_S = 3.0
"""The patience of a replica that asks after the decision. The check would notice if others waited for it."""
ROLE_DELAYS = {"second": 0.7, "straggler": 1.35, "slow": 2.5}
"""The delay of a replica after the first replica, as a multiple of `patience`."""
ROUNDS_S = 15.0
"""Limit for all rounds. An answer that waits 2 s too long in each round is too slow, but does not hang."""
LIFETIME = 0.5
"""The lifetime of a replica in the role "newest" after it is called, as a multiple of `patience`."""
ROLE_SIGNALS = {"late": "returned", "meanwhile": "deciding"}
DEATH = "death"
"""A replica's request to the monitor at the end of its lifetime."""
WRITE_CALLS = ("set", "add", "compare_set", "append")
FORWARDED_CALLS = (*WRITE_CALLS, "get", "check", "wait", "delete_key", "num_keys")


class SlowStore(Store):
    """A store in which each call takes a random time of up to `slow` seconds.

    number: the round's number. The process that started this process performs the writes, and may kill this
    process before a write. before_write: a function called before each write except the first.
    """

    def __init__(
        self,
        real: Store,
        seed: int,
        number: int,
        slow: float,
        before_write: Callable[[], None] | None,
    ) -> None:
        super().__init__()
        self.real, self.rng, self.before_write = real, random.Random(seed), before_write
        self.number, self.slow = number, slow
        self.writes = 0

    def forward_call(self, name: str, *given: Any, **named: Any) -> Any:
        self.writes += name in WRITE_CALLS
        if self.before_write is not None and name in WRITE_CALLS and self.writes > 1:
            self.before_write()
        time.sleep(self.rng.random() * self.slow)
        texts = [_as_text(value) for value in given]
        if name in WRITE_CALLS:
            kind, found = ask(self.number, name, texts, named)
            return found.encode() if kind == "bytes" else found
        return getattr(self.real, name)(*texts, **named)


def _forward(name: str) -> Callable[..., Any]:
    return lambda store, *given, **named: store.forward_call(name, *given, **named)


for _name in FORWARDED_CALLS:
    setattr(SlowStore, _name, _forward(_name))


def _as_text(value: Any) -> Any:
    """Return bytes as str, because a PrefixStore passes bytes, which a store in Python does not accept."""
    return value.decode() if isinstance(value, bytes) else value


class WriteMonitor(Monitor):
    """Performs the writes of all replicas, and kills one in the last round, before a write or at `DEATH`.

    So the monitor knows all keys set by the replicas, and any other key was set by bypassing the monitor. By
    writing more often than necessary, an answer can change the moment of its kill. But when it is killed, its
    earlier writes have certainly taken place.
    """

    def __init__(self, store: TCPStore, dies: Sequence[int], last_round: int) -> None:
        self.store, self.last_round = store, last_round
        self.replica, self.last = dies
        self.count = 0
        self.died_at = float("inf")
        self.keys: set[str] = set()

    def answer(self, rank: int, question: list[Any]) -> Any:
        number, name, texts, named = question
        if name == DEATH and rank == self.replica and number == self.last_round:
            self.died_at = time.monotonic()
            return Intervention.KILL
        if name not in WRITE_CALLS:
            return None
        if rank == self.replica and number == self.last_round:
            self.count += 1
            if self.count == self.last:
                return Intervention.KILL
        self.keys.add(str([*texts, *named.values()][0]))
        found = getattr(self.store, name)(*texts, **named)
        return ["bytes", found.decode()] if isinstance(found, bytes) else ["", found]

    def unknown_keys(self) -> list[str]:
        """Return the keys in the store that were set neither through this monitor nor by the check."""
        there = {key for key in self.store.list_keys() if not key.startswith(f"{CHECK_PREFIX}/")}
        return sorted(there - self.keys)


def run_rounds(
    answer: Source,
    rank: int,
    world_size: int,
    rounds: Sequence[Mapping[str, Any]],
    replicas: int,
    kill: tuple[int, int],
) -> dict[str, Any]:
    """Run rounds of a quorum. In the last round, replica kill[0] is killed before its write number kill[1].

    If kill[1] is 0, the replica is killed at the end of its lifetime, no matter how often it has written.
    """
    with serve_store() as port:
        script = compose(answer, run_replica_rounds, (port, list(rounds), replicas, kill[0]))
        monitor = WriteMonitor(connect(port), kill, len(rounds) - 1)
        found = run_replicas(script, replicas, monitor, kill[0], ROUNDS_S)
        after_death_s = time.monotonic() - monitor.died_at
        unknown = monitor.unknown_keys()
    told = {"unknown": unknown, "after_death_s": after_death_s}
    values = [{**v, **told} if isinstance(v, dict) else v for v in found["values"]]
    return {**found, "values": values}


def run_replica_rounds(
    answer: Callable[..., Any],
    port: int,
    rounds: list[dict[str, Any]],
    replicas: int,
    killed_replica: int,
) -> dict[str, Any]:
    """Take part in each round in this replica's role. All processes measure times with the same clock."""
    me = int(os.environ["RANK"])
    decided: list[Any] = []
    times: list[list[float]] = []
    store, own = connect(port), PrefixStore(CHECK_PREFIX, connect(port))
    for number, now in enumerate(rounds):
        role, last = now["roles"][me], number == len(rounds) - 1
        own.add(f"ready {number}", 1)
        wait_until(partial(has_arrived, own, f"ready {number}", replicas))
        if role == "absent":
            decided.append(None)
            times.append([])
            continue
        if role in ROLE_SIGNALS:
            wait_until(partial(own.check, [f"{ROLE_SIGNALS[role]} {number}"]))
        elif role == "on time" and "early" in now["roles"]:
            wait_until(partial(own.check, [f"early {number}"]))
            time.sleep(0.1)
        elif role == "early":
            own.set(f"early {number}", "")
        elif role in ROLE_DELAYS:
            time.sleep(ROLE_DELAYS[role] * now["patience"])
        deciding = partial(_let_others_decide, own, number) if role == "impatient" else None
        # the replica to be killed is faster than the others, so that they still wait for it when it dies
        is_ahead = last and me == killed_replica
        slow = 0.001 if is_ahead else 0.02 if last and killed_replica >= 0 else 0.008
        far = SlowStore(store, 10 * number + me, number, slow, deciding)
        patience = {"impatient": IMPATIENT_PATIENCE_S, "late": LATE_PATIENCE_S}.get(
            role, now["patience"]
        )
        if role == "newest":
            # kill it by time, because answers ask with different numbers of writes
            death = Timer(LIFETIME * now["patience"], ask, (number, DEATH, [], {}))
            death.daemon = True
            death.start()
        began = time.monotonic()
        got = answer(far, number, me, now["steps"][me], list(now["expected"]), replicas, patience)
        ended = time.monotonic()
        own.set(f"returned {number}", "")
        decided.append(_as_plain(got))
        times.append([began, ended])
    return {"decided": decided, "times": times}


def _let_others_decide(check_store: Store, number: int) -> None:
    """Before this replica writes its decision, wait until the missing replica asks and the others decide."""
    check_store.set(f"deciding {number}", "")
    give_up = time.monotonic() + MAX_HOLD_S
    while not check_store.check([f"returned {number}"]) and time.monotonic() < give_up:
        time.sleep(0.002)


def _as_plain(got: Any) -> Any:
    """Return a dict of ints unchanged, and a short description of anything else."""
    if isinstance(got, dict) and all(type(n) is int for pair in got.items() for n in pair):
        return got
    return (
        f"dict with keys or values other than ints: {got}"
        if isinstance(got, dict)
        else type(got).__name__
    )
