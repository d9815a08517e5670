"""8.6 A parameter server (20 min, ●●●●○, further)

- Write down one step: what does the server send, what does a worker send, and who calls optimizer.step()?
- Server, each step: send every parameter to every worker, receive every worker's gradients, average over the
  workers, step. After the last step, send the weights once more. A worker does the other half, in the same
  order.
- With `torch.nn.utils.parameters_to_vector` and `vector_to_parameters` a whole model is one message. The
  server writes the averaged vector back into each p.grad, cut by `p.numel()`.
"""

from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import train
from helpers.exercises.nb08_synchronous_sgd.shared import (
    NO_GRADIENT_YET,
    Change,
    Models,
    average_grads,
    draw_rule,
    trained,
)
from helpers.exercises.shared.gradients import (
    GUARDED,
    PARITY,
    batches_of,
    draw_samples,
    draw_weights,
)
from helpers.trace.events import Trace
from helpers.views.plain import plural

SUM = "This is the sum of the workers' gradients: divide by their number, {workers}."
ONE = (
    "The gradient of one worker only reaches the optimizer: the mean over all {workers} is wanted."
)
LAST = "The workers' copies are one step old: the server sends its weights a last time."
UNCLEARED = "The gradients of the steps before are added to these: each step's begin from nothing."
SIZES = (
    "A message met a receive of another size. Does each receive name its sender, and do both sides go "
    "through the parameters in the same order, with tensors of their shape and dtype?"
)


def case(draw: Draw) -> Case:
    n, size, steps, rule = draw.ranks, draw.whole(1, 3), draw.whole(1, 4), draw_rule(draw)
    workers, pixels, classes = n - 1, draw.whole(1, 3), draw.whole(2, 3)
    starts = [draw_weights(draw, pixels, classes) for _ in range(n)]
    own = [draw_samples(draw, size * steps * (rank > 0), pixels, classes) for rank in range(n)]
    batches = [
        list(step) for step in zip(*(batches_of(*o, size, steps) for o in own[1:]), strict=True)
    ]
    alike, mean = [starts[0]] * workers, average_grads()
    server, *_ = trained(alike, rule, batches, mean)
    end = server["weights at the end"]
    right = [{"steps": "", **server}, *[{"steps": "", "weights at the end": end}] * workers]
    room = PARITY * max(largest(server), 1.0)
    judge = ByName(right, room)

    def gives(words: str, **ways: Any) -> list[Mistake]:
        """Give the mistake with the last weights sent, and with them still on the server."""

        def parts(at_the_end: str) -> list[Parts]:
            first, *_ = trained(alike, rule, **{"batches": batches, **ways})
            return [first, *[{"weights at the end": first[at_the_end]}] * workers]

        ends = "weights at the end", f"weights before step {steps}"
        return [judge.mistake(words, lambda e=e: parts(e)) for e in ends]  # type: ignore[misc]

    return Case(
        f"{plural(workers, 'worker')}, {plural(steps, 'step')} of {plural(size, 'sample')}",
        [(starts[r], rule, *own[r], size, steps, 0 if r else steps) for r in range(n)],
        right=judge,
        facts={
            "messages": [(steps + 1) * workers, *[steps] * workers],
            "bytes": end.nbytes,
            "workers": workers,
        },
    )


def only(worker: int) -> Change:
    """Give every model the gradient of one of them."""

    def change(step: int, models: Models) -> None:
        for ps in zip(*(model.parameters() for model in models), strict=True):
            for p in ps:
                p.grad = ps[worker].grad

    return change


def elsewhere(trace: Trace, case: Case) -> str:
    """Say which worker talks to another one."""
    for event in trace.calls:
        if event.rank != 0 and event.peer not in {0, None}:
            return (
                f"rank {event.rank} talks to rank {event.peer}: a worker talks to the server, rank 0, and to "
                "nobody else."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("send", "recv")),
        Holds(elsewhere, "workers talk to rank 0 alone"),
        Travels(
            "send",
            "weights go out and gradients come in once a step",
            lambda case, rank: case.facts["messages"][rank] * case.facts["bytes"],
            lambda case, rank: case.facts["messages"][rank] * 4,
        ),
    ),
    failed=(GUARDED, NO_GRADIENT_YET, Failed("", SIZES, died=True)),
    kind=Kind.MODULE,
    programme=train,
    reported=("steps", "samples"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
