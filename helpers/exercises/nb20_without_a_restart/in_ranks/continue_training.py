"""20.3: a training run whose replicas stall, step alone, join late, or are killed."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import PrefixStore

from helpers.checks.script_worker import ask
from helpers.checks.scripts import Intervention, Monitor, Source, compose
from helpers.exercises.nb20_without_a_restart.in_ranks.failover import (
    build_optimizer,
    build_small_model,
    run_backward,
)
from helpers.exercises.nb20_without_a_restart.in_ranks.lent import join, quorum, rejoin
from helpers.exercises.nb20_without_a_restart.in_ranks.store import (
    CHECK_PREFIX,
    connect,
    has_arrived,
    serve_store,
)
from helpers.exercises.shared.in_ranks.attempts import run_replicas, wait_until
from helpers.exercises.shared.in_ranks.lend import define_if_missing

NO_EVENT = {"replica": -1, "step": -1, "new": -1, "stall": 0.0, "hold": 0.0}
"""An event that disturbs no replica."""


def run_training(
    answer: Source,
    rank: int,
    world_size: int,
    replicas: int,
    steps: int,
    patience: float,
    event: Mapping[str, Any],
) -> dict[str, Any]:
    """Run the training. event: the disturbed replica, its step, and whether a new replica joins."""
    event = {**NO_EVENT, **event}
    dies = event["replica"] if event["what"].startswith("killed") else -1
    with serve_store() as port:
        script = compose(answer, train_replica, (port, replicas, steps, patience, event))
        return run_replicas(script, replicas, MomentMonitor(event, script.parent / "gone"), dies)


class MomentMonitor(Monitor):
    """Kills a replica at the moment of the event, if the other replicas have begun the previous step."""

    def __init__(self, event: Mapping[str, Any], killed_file: Path) -> None:
        self.event, self.killed_file = event, killed_file
        self.begun_steps: dict[int, int] = {}

    def answer(self, rank: int, question: list[Any]) -> Any:
        kind, what, step = question
        if kind == "begins":
            self.begun_steps[rank] = max(self.begun_steps.get(rank, -1), int(step))
            return None
        others = max((k for r, k in self.begun_steps.items() if r != rank), default=-1)
        planned = (self.event["replica"], self.event["what"], self.event["step"])
        if (rank, what, step) != planned or others < step - 1:
            return None
        self.killed_file.touch()
        return Intervention.KILL


def train_replica(
    answer: Callable[..., Any],
    port: int,
    replicas: int,
    steps: int,
    patience: float,
    event: dict[str, Any],
) -> dict[str, Any]:
    """Call the answer in a replica, and disturb the replica as described by `event`."""
    for right in (quorum, rejoin, join):
        define_if_missing(right)
    me, store = int(os.environ["RANK"]), connect(port)
    new = event["new"] == me
    model = build_small_model(8 if new else 7, "plain")
    optimizer = build_optimizer(model, "momentum")
    disturbance = Disturbance(me, event, patience, Path(sys.argv[0]).parent)
    disturbance.watch(optimizer)
    if new:
        wait_until(disturbance.killed_file.exists)
        disturbance.joined_file.touch()
    else:  # start all of them at once, so that no replica's patience has to cover another's start
        own = PrefixStore(CHECK_PREFIX, store)
        own.add("here", 1)
        wait_until(partial(has_arrived, own, "here", replicas - (event["new"] >= 0)))

    def one_backward(step: int) -> None:
        disturbance.begin_step(step)
        run_backward(model, me, step)

    log = answer(store, me, replicas, model, optimizer, one_backward, steps, patience)
    found = {
        "log": {int(k): list(v) for k, v in log.items()}
        if isinstance(log, dict)
        and all(isinstance(v, (list, tuple, dict, set)) for v in log.values())
        else type(log).__name__,
        "weights": torch.cat([p.detach().flatten() for p in model.parameters()]),
        "times": disturbance.times,
        "wrong steps": sorted(disturbance.wrong_steps),
    }
    disturbance.leave()
    if dist.is_initialized():
        dist.destroy_process_group()
    return found


class Disturbance:
    """Disturbs one replica once, in one step, as described by `event`.

    killed before, killed in, killed after: it is killed before computing gradients, in its optimizer's step,
    or after this step.
    killed joining: it is killed when joining the group for the first time after the step.
    stalls: it stalls before computing gradients.
    hold: the duration of the repeated step, as a multiple of `patience`.
    steps alone: the step's all_reduce succeeds on this replica, but fails on all others. `stall` is the time
    for which it stalls after its step, as a multiple of the others' patience.
    wrong_steps: the names of the answer's actions on its optimizer that a right answer never takes.
    """

    def __init__(self, me: int, event: dict[str, Any], patience_s: float, folder: Path) -> None:
        self.me, self.event, self.patience_s = me, event, patience_s
        self.killed_file, self.joined_file = folder / "gone", folder / "came"
        self.ahead_joined_file = folder / "ahead joined"
        self.step, self.calls, self.usual_calls, self.has_happened = -1, 0, 0, False
        self.failed, self.wrong_steps = False, set[str]()
        self.done_steps: list[int] = []
        self.times: list[float] = []
        self.begun_steps: Counter[int] = Counter()
        self.real: tuple[Any, Any] = dist.init_process_group, dist.all_reduce

    def watch(self, optimizer: torch.optim.Optimizer) -> None:
        """Watch the optimizer and the calls of torch.distributed."""

        def before_step(*_: Any) -> None:
            self.is_moment("killed in")

        optimizer.register_step_pre_hook(before_step)
        optimizer.register_step_post_hook(lambda *_: self.end_step())
        init: Any = dist.init_process_group
        reduce: Any = dist.all_reduce

        def init_process_group(*args: Any, **kwargs: Any) -> Any:
            if self.step >= self.event["step"] - 1:
                self.is_moment("killed joining", at_once=True)
            if self.is_ahead:
                self.ahead_joined_file.touch()
            try:
                return init(*args, **kwargs)
            except RuntimeError:
                # a replica that is ahead and never joins meets the others in the next round only by luck
                if self.is_behind and self.has_happened and not self.ahead_joined_file.exists():
                    time.sleep(self.patience_s / 2)
                raise

        def all_reduce(*args: Any, **kwargs: Any) -> Any:
            try:
                found = reduce(*args, **kwargs)
            except RuntimeError:
                self.failed = True
                raise
            self.calls += 1
            last = self.calls == self.usual_calls and self.step == self.event["step"]
            if self.is_behind and last and not self.has_happened:
                self.has_happened = self.failed = True
                raise RuntimeError("Connection closed by peer")
            return found

        dist.init_process_group, dist.all_reduce = init_process_group, all_reduce
        self.real = init, reduce

    @property
    def is_ahead(self) -> bool:
        """Whether this replica has taken a step that failed on all others."""
        mine = self.event["what"] == "steps alone" and self.me == self.event["replica"]
        return bool(mine) and self.event["step"] in self.done_steps

    @property
    def is_behind(self) -> bool:
        """Whether a step fails on this replica, but succeeds on another replica."""
        return bool(self.event["what"] == "steps alone" and self.me != self.event["replica"])

    def leave(self) -> None:
        """Restore the functions replaced by `watch`."""
        dist.init_process_group, dist.all_reduce = self.real

    def begin_step(self, step: int) -> None:
        """Record the beginning of a step, and disturb the replica if this is the moment."""
        if self.calls:
            self.usual_calls = self.calls  # the number of all_reduces in the previous step
        self.step, self.calls, self.failed = step, 0, False
        self.times.append(time.monotonic())
        self.begun_steps[step] += 1
        ask("begins", "", step)
        if step == self.event["step"] and self.begun_steps[step] == 2:
            time.sleep(self.event["hold"] * self.patience_s)
        self.is_moment("killed before")
        if self.is_moment("stalls"):
            time.sleep(self.event["stall"] * self.patience_s)
            self.joined_file.touch()
        comes = self.event["new"] >= 0 or (self.event["stall"] and self.me != self.event["replica"])
        if comes and step == self.event["step"] + 2:
            wait_until(self.joined_file.exists)
            time.sleep(0.15)  # in this time the other replica asks for the round

    def end_step(self) -> None:
        """Record a step of the optimizer, and disturb the replica if this is the moment."""
        if self.failed:
            self.wrong_steps.add("stepped after a failure")
        if self.step in self.done_steps and self.me != self.event["replica"]:
            self.wrong_steps.add("stepped twice")
        self.done_steps.append(self.step)
        self.is_moment("killed after")
        if self.event["stall"] and self.is_moment("steps alone"):
            time.sleep(self.event["stall"] * self.patience_s)
            self.joined_file.touch()

    def is_moment(self, what: str, at_once: bool = False) -> bool:
        """Return whether this is the moment of the event. If so, ask the monitor for the kill, if any."""
        mine = self.me == self.event["replica"] and self.event["what"] == what
        if self.has_happened or not mine or not (at_once or self.step == self.event["step"]):
            return False
        self.has_happened = True
        if what.startswith("killed"):
            ask("moment", what, self.event["step"])
        return True
