"""20.3 Shrink, and go on (30 min, ●●●●●, further)

- In every round: call `quorum`, then `join`, then `rejoin`, then train. Which of these calls can fail? What
  does a replica do that is not a member? And when may a replica that has done all steps return?
- A failure (RuntimeError) means: no step, leave the group, so that the others' calls fail as well, and ask
  for the next round. A new group is needed if members have changed, their steps are not all equal, or the
  last round failed. A replica that is left out has missed what the others did: it asks again with step -1,
  and its dict starts empty. A replica that has done all steps stays until all members have done them.
- while True: number += 1; now = quorum(...); if me not in now: step, met, log = -1, None, {}. If
  min(now.values()) == steps: return log. If me not in now: continue. try: if met !=
  sorted(now) or len(set(now.values())) > 1: met = None; join(store, number, sorted(now), me, patience);
  step = rejoin(dist.get_rank(), len(now), [now[m] for
  m in sorted(now)], model, optimizer); met = sorted(now). If step == steps: continue. backward(step);
  all_reduce and divide each p.grad. except RuntimeError: met = None; dist.destroy_process_group() if
  dist.is_initialized(); continue. After the try: optimizer.step(); log[step] = met; step += 1.
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb20_without_a_restart.in_ranks.go_on import go_on
from helpers.exercises.nb20_without_a_restart.in_ranks.take_over import (
    backward,
    optimizer_of,
    small_model,
)
from helpers.exercises.shared.in_ranks.classifier import grad_of

CLOSE = 1e-5
ALONE = (
    "A replica that was left out, or whose `all_reduce` failed, does not step: it asks again and copies "
    "the state. A replica that was left out starts its dict from scratch, because its last steps may have "
    "been made again without it."
)
LEFT = (
    "It was behind when the others were done. A replica that has done all steps stays until every member "
    "of a round has: one of them may be behind and need the others' state."
)
DIVIDED = (
    "Divide by the number of members of this round: fewer replicas have fewer gradients to sum."
)
WEIGHTS = (
    "Each step must be made once, with the mean of its members' gradients, and a replica that joins must "
    "copy weights and momentum. If all of that is so, the returned dict is not what was trained."
)
FOR_EVER = (
    "Some replica waits forever. Each round needs a number of its own, and all members of a round must "
    "make the same calls, whatever happened to each of them in the last round."
)
GIVE_UP = (
    "Pass `join` the `patience`: a replica that does not come within it is left to the next round."
)
EXPECTED = "Expect the members of the last round only: nobody needs to wait for a replica that died long ago."
SURVIVED = "The replica is killed from another process, at a moment that the check chooses: let that happen."
PATIENCE_S = 0.4
SHRINK = "The replica is alive, but trains no step at the end: what does it do after its group has failed?"


def case(draw: Draw) -> Case:
    n, steps = draw.ranks, 7
    at, replica, new, stall, hold = draw.whole(1, 2), draw.rank(), -1, 0.0, 0.0
    if n == 2:
        what, stall = draw.of(
            ("killed in", 0.0), ("killed after", 0.0), ("steps alone", 1.5), ("stalls", 3.0)
        )
        at = steps - 1 if what == "killed after" else at
    elif n > 3:  # those that do not talk to the dead one hear of it only when the others leave
        what = "killed before"
    else:
        what, at, stall, hold = draw.of(
            ("killed before", 0, 0.0, 0.0),  # who comes then has done as many, with other weights
            ("killed joining", 0, 0.0, 0.0),
            ("stalls", at, 1.5, 0.0),
            ("stalls", at, 2.5, 2.5),  # it asks for the next round alone, in which it has nothing
            ("steps alone", at, 0.0, 0.0),
            ("steps alone", steps - 1, 0.0, 0.0),
        )
        new = (replica + draw.whole(1, n - 1)) % n if what == "killed before" else -1
    event = {"what": what, "replica": replica, "step": at, "new": new, "stall": stall, "hold": hold}
    gone = {replica} if what.startswith("killed") else set()

    def together(values: list[Any]) -> Finding | None:
        for r in gone:
            if "killed" not in values[r]:
                return Finding(f"replica {r} was to be killed, and lives", SURVIVED)
        alive = [r for r in range(n) if r not in gone]
        logs = {}
        for r in alive:
            log = values[r]["log"]
            if not isinstance(log, dict):
                given = "nothing" if log == "NoneType" else f"a {log}"
                return Finding(f"replica {r} returns {given}, not a dict of lists")
            logs[r] = {k: sorted(members) for k, members in log.items()}
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
        if found := when_killed(members):
            return found
        if at + 2 < steps:
            for r in alive:
                if steps - 1 not in logs[r]:
                    return Finding(f"replica {r} does not train the last step", SHRINK)
        for r in alive:
            found = weights(values[r]["weights"], members, r)
            if found is not None:
                return found
        return in_time(values, members)

    def when_killed(members: dict[int, list[int]]) -> Finding | None:
        """Say so where the steps show that the replica was not killed when it was to be."""
        # in these two the others have its gradients of this step already
        from_step = at + (what in ("killed in", "killed after"))
        for r in gone:
            for k in range(at):
                if r not in members[k]:
                    early = f"replica {r} was to live until step {at}, and did not train step {k}"
                    return Finding(early, SURVIVED, rests_on_time=True)
            for k in range(from_step, steps):
                if r in members[k]:
                    late = (
                        f"replica {r} was to be killed in step {at}; step {k} is said to be its own"
                    )
                    return Finding(late, SURVIVED)
        return None

    def in_time(values: list[Any], members: dict[int, list[int]]) -> Finding | None:
        if stall == 3.0 and replica in members[at]:
            what = (
                f"step {at} is trained with replica {replica}, which stalls three times `patience`"
            )
            return Finding(what, GIVE_UP)
        if gone and new < 0 and at + 3 < steps:
            times = max((value.get("times", []) for value in values), key=len)[-2:]
            if times[1] - times[0] > 0.8 * PATIENCE_S:
                what = f"long after the death a step still takes {times[1] - times[0]:.1f} s"
                return Finding(what, EXPECTED, rests_on_time=True)
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
        [(n, steps, PATIENCE_S, event)] * n,
        right=AllRanks(lambda got: None, together),
        like={},
        seconds=20.0,
        shown=told,
    )


def describe(event: dict[str, Any], n: int) -> str:
    """Say what happens to whom."""
    stall = f", {event['stall']:g} times as long as the others are patient"
    if event["hold"]:
        stall += f"; the step takes {event['hold']:g} times as long when it is made once more"
    moment = {
        "killed before": "is killed before its gradients of step {}",
        "killed in": "is killed after the all_reduce of step {}, before optimizer.step",
        "killed after": "is killed right after optimizer.step of step {}",
        "killed joining": "is killed as it joins the first group",
        "stalls": "stalls in step {}" + stall,
        "steps alone": "steps in step {}, in which the others' all_reduce fails"
        + (f", and then stalls{stall}" if event["stall"] else ""),
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
            grads.append([grad_of(p).clone() for p in model.parameters()])
        for p, parts in zip(model.parameters(), zip(*grads, strict=True), strict=True):
            p.grad = torch.stack(parts).sum(0) / (divide_by or len(parts))
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


EXERCISE = Exercise(
    case,
    failed=(
        Failed("not done after", FOR_EVER),
        Failed(
            "peer|Timed out|wait timeout",
            "A member is gone: this is the exception to catch, wherever ranks talk. No step then; ask for "
            "the next round.",
        ),
    ),
    kind=Kind.SCRIPT,
    driver=go_on,
    reported=("times",),
    sizes=(2, 2, 3, 3, 3, 5),
    count=12,
)
