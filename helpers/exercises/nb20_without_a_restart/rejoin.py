"""20.2 Copy the state of the newest replica (15 min, ●●●○○)

- Which rank has the newest state? And in addition to the weights, what does the next step depend on?
- The source is a rank with the most steps, and all ranks must choose the same one. If all ranks have done the
  same number of steps, you don't need to send anything. `dist.broadcast_object_list` sends objects of any
  kind and size, such as the two `state_dict()`s.
- most = max(steps); source = steps.index(most). If min(steps) < most: box = [(model.state_dict(),
  optimizer.state_dict())] on the source, [None] elsewhere; dist.broadcast_object_list(box, src=source);
  if steps[rank] < most: model.load_state_dict(box[0][0]); optimizer.load_state_dict(box[0][1]). Return
  most.
"""

from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb20_without_a_restart.in_ranks.failover import (
    build_trained,
    copy_state,
    run_backward,
    run_rejoin,
)

NOTHING_TO_SEND = "All ranks have taken the same number of steps, so nothing needs to be sent."


def case(draw: Draw) -> Case:
    n, model_kind = draw.ranks, draw.of("plain", "norm")
    kind = draw.of("momentum", "AdamW", "plain")
    most, who = (
        draw.whole(2, 5),
        draw.of("one behind", "one ahead", "new ones", "all alike", "levels"),
    )
    steps = [most] * n
    if who == "one behind":
        steps[draw.rank()] = most - 1
    elif who == "one ahead":
        steps = [most - 1] * n
        steps[draw.rank()] = most
    elif who == "new ones":
        steps = [draw.of(-1, 0, most) for _ in range(n)]
        steps[draw.rank()] = most
    elif who == "levels":  # so that not only the replicas with the fewest steps are behind
        first = draw.rank()
        steps = [(most, -1, most - 1, -1)[(r - first) % n] for r in range(n)]
    most = max(steps)
    model, optimizer = build_trained(0, most, model_kind, kind)
    right = copy_state(model, optimizer)
    run_backward(model, 0, 99)
    optimizer.step()
    after = torch.cat([p.detach().flatten() for p in model.parameters()])

    def problem(got: Any, rank: int) -> Finding | None:
        if got["returned"] != most:
            have = got["returned"]
            return Finding(f"it returns {have}, not {most}")
        if not got["objects"]:
            return Finding("the model and the optimizer no longer have the same parameters")
        for name, wanted in right.items():
            have = got["state"].get(name)
            if have is None or not same(wanted, have, 0):
                what = f"{name} differs from that of a rank with {most} steps"
                return Finding(what)
        extra = set(got["state"]) - set(right)
        if extra:
            what = f"the optimizer has a {sorted(extra)[0]}, but the source's optimizer has none"
            return Finding(what)
        if not same(after, got["after"], 0):
            return Finding("the next step leads to different weights than on the source")
        return None

    return Case(
        f"steps {steps}, {kind}, {model_kind}",
        [(steps, model_kind, kind)] * n,
        right=problem,
        like={},
        facts={"behind": int(min(steps) < most)},
        shown=f"steps = {steps}",
    )


def find_needless_call(trace: Trace, case: Case) -> str:
    """Return the rank that communicates although no rank is behind."""
    made = [event for event in trace if event.nbytes]
    if case.facts["behind"] or not made:
        return ""
    return f"rank {made[0].rank} calls {made[0].op}. {NOTHING_TO_SEND}"


EXERCISE = Exercise(
    case,
    (
        Predicate(
            find_needless_call, "no communication if all ranks have taken the same number of steps"
        ),
    ),
    failed=(
        CrashAdvice(
            "size mismatch|KeyError|Missing key",
            "The loaded object doesn't have the form of a state. Pass `load_state_dict` the result of the "
            "source's `state_dict()`.",
        ),
    ),
    kind=Kind.MODULE,
    driver=run_rejoin,
    reported=("returned", "objects"),
    sizes=(1, 2, 3, 4),
    count=16,
)
