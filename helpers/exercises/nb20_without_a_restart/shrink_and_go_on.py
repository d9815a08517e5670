"""20.3 Shrink, and go on (30 min, ●●●●●, further)

- Every round: ask who is in; meet; take over; train. Where can it fail, and what does a replica do that is
  not in? When may the last one leave?
- A failed `all_reduce` (RuntimeError) means: no step, and the next round. A new group is needed if members
  or steps differ from the round before, or the last one failed. A replica that is left out has missed what
  the others did: it asks again with step 0. And who has done all steps stays until all members have.
- while True: number += 1; now = quorum(...); if me not in now: step, members = 0, None; continue. If
  min(now.values()) == steps: return log. try: if new members or steps differ or it failed: join(store,
  number, sorted(now), me, patience); step = rejoin(rank, len(now), [now[m] for m in sorted(now)], model,
  optimizer); if step == steps: continue; backward(step); all_reduce and divide each p.grad. except
  RuntimeError: members = None; continue. optimizer.step(); log[step] = sorted(now); step += 1.
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb20_without_a_restart.in_ranks import (
    backward,
    go_on,
    optimizer_of,
    small_model,
)
from helpers.views.plain import plural

CLOSE = 1e-5
ALONE = (
    "Who trained it with whom differs. A replica that was left out, or whose `all_reduce` failed, must not "
    "step: it asks again, and takes over."
)
LEFT = (
    "It was behind when the others were done. Whoever has done all steps stays until every member of a round "
    "has: one of them may be behind, and needs what the others have."
)
DIVIDED = "Divide by the members of this round: fewer replicas have fewer gradients to add up."
WEIGHTS = (
    "Was each step made with the mean of its members' gradients, once, and has the new or the late one taken "
    "over weights and momentum?"
)
SHRINK = "It lives, and trains no step at the end: what does it do when its group has failed?"


def case(draw: Draw) -> Case:
    n = draw.ranks
    what = draw.of(
        "nothing", "killed before", "killed before", "killed in", "killed after", "stalls"
    )
    steps, at = 7, draw.whole(0, 2)
    replica, new = draw.rank(), -1
    if n == 1:
        what = "nothing"
    if n > 2 and what.startswith("killed") and draw.of(True, True, False):
        new = (replica + 1 + draw.whole(0, n - 2)) % n
    if what == "killed after" and new < 0:
        at = steps - 1
    event = {"what": what, "replica": replica, "step": at, "new": new}
    gone = {replica} if what.startswith("killed") else set()

    def together(values: list[Any]) -> Finding | None:
        alive = [r for r in range(n) if r not in gone and not values[r].get("died")]
        logs = {}
        for r in alive:
            log = values[r]["log"]
            if not isinstance(log, list):
                given = "nothing" if log == "NoneType" else f"a {log}"
                return Finding(f"replica {r} returns {given}, not a dict")
            logs[r] = {k: sorted(members) for k, members in log}
        members: dict[int, list[int]] = {}
        for r, log in logs.items():
            for k, who in log.items():
                if r not in who:
                    return Finding(
                        f"replica {r} says that it trained step {k} with {who}: without itself"
                    )
                if members.setdefault(k, who) != who:
                    other = next(o for o in logs if logs[o].get(k) == members[k])
                    what = f"replica {other} trained step {k} with {members[k]}, replica {r} with {who}"
                    return Finding(what, ALONE)
        if sorted(members) != list(range(steps)):
            return Finding(f"the steps {sorted(members)} are trained, not those up to {steps - 1}")
        if at + 2 < steps:
            for r in alive:
                if steps - 1 not in logs[r]:
                    return Finding(f"replica {r} does not train the last step", SHRINK)
        for r in alive:
            found = weights(values[r]["weights"], members, r)
            if found is not None:
                return found
        return None

    def weights(got: torch.Tensor, members: dict[int, list[int]], r: int) -> Finding | None:
        right = course(members, steps)
        if same(right, got, CLOSE):
            return None
        if same(course(members, steps - 1), got, CLOSE):
            return Finding(f"replica {r} ends with the weights of after step {steps - 2}", LEFT)
        if n > 1 and same(course(members, steps, divide_by=n), got, CLOSE):
            return Finding(
                f"replica {r} ends with other weights than its members' gradients give", DIVIDED
            )
        what = (
            f"replica {r} ends with weights that {plural(steps, 'step')} of its members do not give"
        )
        return Finding(f"{what}: {difference(right, got, CLOSE)}", WEIGHTS)

    told = describe(event, n)
    return Case(
        told,
        [(n, steps, 0.4, event)] * n,
        right=AllRanks(lambda got: None, together),
        like={},
        seconds=25.0,
        shown=told,
    )


def describe(event: dict[str, Any], n: int) -> str:
    """Say what happens to whom."""
    if event["what"] == "nothing":
        return f"{plural(n, 'replica')}, and nothing happens"
    moment = {
        "killed before": "is killed before its gradients of step {}",
        "killed in": "is killed after the all_reduce of step {}, before optimizer.step",
        "killed after": "is killed right after optimizer.step of step {}",
        "stalls": "stalls in step {}, three times as long as the others are patient",
    }[event["what"]].format(event["step"])
    new = f"; then replica {event['new']} comes for the first time" if event["new"] >= 0 else ""
    return f"{plural(n, 'replica')}; replica {event['replica']} {moment}{new}"


def course(members: dict[int, list[int]], steps: int, divide_by: int = 0) -> torch.Tensor:
    """Train in one process, each step with the mean of its members' gradients."""
    model = small_model(7, "plain")
    optimizer = optimizer_of(model, "momentum")
    for step in range(steps):
        grads = []
        for member in members[step]:
            backward(model, member, step)
            grads.append([p.grad.clone() for p in model.parameters()])
        for p, parts in zip(model.parameters(), zip(*grads, strict=True), strict=True):
            p.grad = torch.stack(parts).sum(0) / (divide_by or len(parts))
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


EXERCISE = Exercise(
    case,
    failed=(
        Failed(
            "Connection closed|Connection reset|[Tt]imed? ?out|wait timeout",
            "A member is gone: this is the exception to catch. No step then; ask for the next round.",
        ),
    ),
    kind=Kind.SCRIPT,
    programme=go_on,
    sizes=(1, 2, 3),
    count=7,
)
