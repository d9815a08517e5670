"""20.3 Shrink, and continue (30 min, ●●●●●, further)

- Step 1, in a loop: number += 1; now = quorum(...); if min(now.values()) == steps: return log. Then, with
  members = sorted(now): join(store, number, members, me, patience); step = rejoin(dist.get_rank(),
  len(members), [now[m] for m in members], model, optimizer). If step == steps: continue. backward(step);
  all_reduce each p.grad and divide it by len(members); optimizer.step(); log[step] = members; step += 1.
- Step 2: put all calls from `join` to the last `all_reduce` into a `try`, and `optimizer.step()` after it. On
  RuntimeError, call dist.destroy_process_group() if dist.is_initialized(), then continue. The next round
  should expect only the members of this round.
- Step 3, directly after `quorum`: if me not in now, set step, log = -1, {}. Then return log if
  min(now.values()) == steps, and otherwise continue with the next round.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb20_without_a_restart.in_ranks.continue_training import (
    run_training,
)
from helpers.exercises.nb20_without_a_restart.in_ranks.failover import (
    build_optimizer,
    build_small_model,
    run_backward,
)
from helpers.exercises.shared.in_ranks.classifier import grad_of
from helpers.ranks.failures import RankFailed, is_consequence

TOLERANCE = 1e-5
PATIENCE_S = 0.4
NOT_KILLED = ("the check cannot kill it",)
EXIT_ERRORS = ("DistStoreError", "DistBackendError", "DistNetworkError")
"""Errors raised by torch if a member has exited, in addition to errors that mention a peer's exit."""


def case(draw: Draw) -> Case:
    n, steps = draw.ranks, 7
    at, replica, new, stall, hold = draw.whole(1, 2), draw.rank(), -1, 0.0, 0.0
    if n == 2:
        kind, stall = draw.of(
            ("no failure", 0.0),
            ("killed before", 0.0),
            ("killed in", 0.0),
            ("killed after", 0.0),
            ("steps alone", 1.5),
            ("stalls", 3.0),
        )
        at = steps - 1 if kind == "killed after" else at
    elif n > 3:  # only the neighbors of a dead rank notice at once that it died
        kind = "killed before"
    else:
        kind, at, stall, hold = draw.of(
            # the new replica then has as many steps, but different weights
            ("killed before", 0, 0.0, 0.0),
            ("killed joining", 0, 0.0, 0.0),
            ("stalls", at, 1.5, 0.0),
            # It asks for the next round alone, so it takes no steps in that round
            ("stalls", at, 2.5, 2.5),
            ("steps alone", at, 0.0, 0.0),
            ("steps alone", steps - 1, 0.0, 0.0),
        )
        new = (replica + draw.whole(1, n - 1)) % n if kind == "killed before" else -1
    # the event of an earlier part of the task has fewer parts, so its case comes first
    parts = {"replica": replica, "step": at, "new": new, "stall": stall, "hold": hold}
    part = 1 if kind == "no failure" else 2 if kind.startswith("killed") and new < 0 else 3
    event = {"what": kind, **dict(list(parts.items())[: (0, 2, 5)[part - 1]])}
    gone = {replica} if kind.startswith("killed") else set()

    def judge_all_ranks(values: list[Any]) -> Finding | None:
        for r in gone:
            if "killed" not in values[r]:
                what = f"replica {r} should have been killed, but is still alive"
                return Finding(what, seen=NOT_KILLED)
        alive = {r: value for r, value in enumerate(values) if r not in gone}
        logs = {}
        for r, value in alive.items():
            log = value["log"]
            if not isinstance(log, dict):
                given = "nothing" if log == "NoneType" else f"a value of type {log}"
                what = f"replica {r} returns {given}, not a dict of lists"
                return Finding(what, seen=("not a dict of lists",))
            logs[r] = {k: sorted(members) for k, members in log.items()}
        # a wrong use of an optimizer explains all later differences
        wrong = tuple(str(name) for value in alive.values() for name in value["wrong steps"])
        found = judge_members(logs) or judge_weights(alive, logs) or judge_durations(alive, logs)
        return replace(found, seen=(*wrong, *found.seen)) if found else None

    def judge_members(logs: dict[int, dict[int, list[int]]]) -> Finding | None:
        """Compare the values returned by the replicas."""
        members: dict[int, list[int]] = {}
        for r, log in logs.items():
            for k, who in log.items():
                if r not in who:
                    what = f"replica {r} returns {who} for step {k}, a list without itself"
                    return Finding(what, seen=("trained without itself",))
                if members.setdefault(k, who) != who:
                    other = next(o for o in logs if logs[o].get(k) == members[k])
                    what = f"replica {other} trained step {k} with {members[k]}, but replica {r} with {who}"
                    # this replica trained the last step before the others did, and is not in their round
                    left = k == steps - 1 and kind == "steps alone" and not stall
                    return Finding(what, seen=("left when done" if left else "stale dict",))
        if sorted(members) != list(range(steps)):
            what = f"steps {sorted(members)} are trained instead of all steps up to {steps - 1}"
            ended = part > 1 and max(members, default=-1) + 1 == len(members)
            return Finding(what, seen=("does not come back" if ended else "steps missing",))
        if found := judge_kill_moment(members):
            return found
        for r, log in logs.items() if at + 2 < steps else ():
            if steps - 1 not in log:
                what = f"replica {r} does not train the last step"
                # on a busy machine, a round may leave out a replica that nothing disturbed
                late = r not in (replica, new)
                return Finding(what, rests_on_time=late, seen=("does not come back",))
        return None

    def judge_kill_moment(members: dict[int, list[int]]) -> Finding | None:
        """Return a finding if a replica's steps do not fit the moment at which it was killed."""
        # in these two cases, the others already have its gradients of this step
        from_step = at + (kind in ("killed in", "killed after"))
        for r in gone:
            for k in range(at):
                if r not in members[k]:
                    early = (
                        f"replica {r} should have lived until step {at}, but did not train step {k}"
                    )
                    return Finding(early, rests_on_time=True, seen=NOT_KILLED)
            for k in range(from_step, steps):
                if r in members[k]:
                    late = f"replica {r} should have been killed in step {at}, but is a member of step {k}"
                    return Finding(late, seen=NOT_KILLED)
        return None

    def judge_durations(
        alive: dict[int, dict[str, Any]], logs: dict[int, dict[int, list[int]]]
    ) -> Finding | None:
        members = {k: who for log in logs.values() for k, who in log.items()}
        if stall == 3.0 and replica in members[at]:
            what = f"step {at} is trained with replica {replica}, which stalls for three times `patience`"
            return Finding(what, seen=("join has no patience",))
        if gone and new < 0 and at + 3 < steps:
            times = max((value["times"] for value in alive.values()), key=len)[-2:]
            if times[1] - times[0] > 0.8 * PATIENCE_S:
                what = f"long after the death, a step still takes {times[1] - times[0]:.1f} s"
                return Finding(what, rests_on_time=True, seen=("waits for the dead",))
        return None

    def judge_weights(
        alive: dict[int, dict[str, Any]], logs: dict[int, dict[int, list[int]]]
    ) -> Finding | None:
        members = {k: who for log in logs.values() for k, who in log.items()}
        right = train_in_one_process(members, steps)
        wrong = [r for r, value in alive.items() if not same(right, value["weights"], TOLERANCE)]
        if not wrong:
            return None
        r, got = wrong[0], alive[wrong[0]]["weights"]
        differs = difference(right, got, TOLERANCE)
        if same(train_in_one_process(members, steps - 1), got, TOLERANCE):
            what = f"replica {r} ends with its weights from before step {steps - 1}"
            return Finding(what, seen=("a step was not copied",))
        if n > 1 and same(train_in_one_process(members, steps, divide_by=n), got, TOLERANCE):
            what = f"replica {r} ends with different weights than its members' gradients lead to"
            return Finding(what, seen=("divided by all",))
        what = f"replica {r} ends with different weights than {plural(steps, 'step')} of its members lead to"
        # a late replica that has not copied everything also spoils the others' gradients, but ends with
        # different weights
        late = [o for o in (new, replica if stall else -1) if o in alive]
        others = [value["weights"] for o, value in alive.items() if o not in late]
        apart = [o for o in late if not same(others[0], alive[o]["weights"], TOLERANCE)]
        seen = "new or left out, other weights" if apart else "other weights"
        return Finding(f"{what}: {differs}", seen=(seen,))

    told = f"part {part}: {describe_event({'what': kind, **parts}, n)}"
    return Case(
        told,
        [(n, steps, PATIENCE_S, event)] * n,
        right=AllRanks(lambda got: None, judge_all_ranks),
        like={},
        seconds=20.0,
        shown="",
    )


def describe_event(event: dict[str, Any], n: int) -> str:
    """Describe the disturbed replica, and the disturbance."""
    stall = f" for {event['stall']:g} times `patience`" * (event["stall"] > 0)
    if event["hold"]:
        stall += f"; the repeated step takes {event['hold']:g} times `patience`"
    moment = {
        "no failure": "no replica fails",
        "killed before": "replica {replica} is killed before its gradients of step {step}",
        "killed in": "replica {replica} is killed after the all_reduce of step {step}, before optimizer.step",
        "killed after": "replica {replica} is killed right after optimizer.step of step {step}",
        "killed joining": "replica {replica} is killed as it joins the first group",
        "stalls": "replica {replica} stalls in step {step}" + stall,
        "steps alone": "replica {replica} takes step {step}, in which the others' all_reduce fails"
        + (f", and then stalls{stall}" if stall else ""),
    }[event["what"]].format_map(event)
    new = f"; then replica {event['new']} joins for the first time" * (event["new"] >= 0)
    return f"{plural(n, 'replica')}; {moment}{new}"


def train_in_one_process(
    members: dict[int, list[int]], steps: int, divide_by: int = 0
) -> torch.Tensor:
    """Train in one process, using the mean of the members' gradients in each step."""
    model = build_small_model(7, "plain")
    optimizer = build_optimizer(model, "momentum")
    for step in range(steps):
        grads = []
        for member in members[step]:
            run_backward(model, member, step)
            grads.append([grad_of(p).clone() for p in model.parameters()])
        for p, parts in zip(model.parameters(), zip(*grads, strict=True), strict=True):
            p.grad = torch.stack(parts).sum(0) / (divide_by or len(parts))
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def observe_failure(case: Case, run: Run) -> Iterator[str]:
    """Yield the observations in a failed run, such as a call that failed because a member had exited."""
    error = run.failure.error if isinstance(run.failure, RankFailed) else None
    if error and (error.kind in EXIT_ERRORS or is_consequence(error)):
        yield "a failure is not caught"
    elif error and (error.kind == "KeyError" or error.message.endswith("is not in list")):
        yield "not a member"


EXERCISE = Exercise(
    case,
    kind=Kind.SCRIPT,
    driver=run_training,
    reported=("times", "wrong steps"),
    sizes=(2, 2, 3, 3, 3, 5),
    count=15,
    observe=observe_failure,
)
