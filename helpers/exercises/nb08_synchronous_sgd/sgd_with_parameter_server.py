"""8.6 A parameter server (20 min, ●●●●○, further)

- Write down one step: what does the server send, what does a worker send, and who calls optimizer.step()?
- Server, each step: send every parameter to every worker, receive every worker's gradients, average over the
  workers, step. After the last step, send the weights once more. A worker does the other half, in the same
  order.
- With `torch.nn.utils.parameters_to_vector` and `vector_to_parameters` a whole model is one message. The
  server writes the averaged vector back into each p.grad, cut by `p.numel()`.
"""

from helpers.checks.author import *
from helpers.exercises.nb08_synchronous_sgd.in_ranks import Training, run_training
from helpers.exercises.nb08_synchronous_sgd.shared import NO_GRADIENT_ADVICE, draw_rule
from helpers.exercises.shared.gradients import (
    NO_GRAD_ADVICE,
    PARITY_MARGIN,
    draw_samples,
    draw_weights,
)

SIZES_ADVICE = (
    "A message does not have the size of the tensor that receives it. Name the sender in each recv, and go "
    "through the parameters in the same order on both sides, with tensors of the same shape and dtype."
)


def case(draw: Draw) -> Case:
    n, size, steps, rule = draw.ranks, draw.whole(1, 3), draw.whole(1, 4), draw_rule(draw)
    workers, pixels, classes = n - 1, draw.whole(1, 3), draw.whole(2, 3)
    starts = [draw_weights(draw, pixels, classes) for _ in range(n)]
    own = [draw_samples(draw, size * steps * (rank > 0), pixels, classes) for rank in range(n)]
    return Case(
        f"{plural(workers, 'worker')}, {plural(steps, 'step')} of {plural(size, 'sample')}",
        [(Training(starts[r], rule, *own[r], size, steps, 0 if r else steps),) for r in range(n)],
        right=Reference(margin=PARITY_MARGIN, ignore=("samples", "losses", "buffer")),
        facts={
            "messages": [(steps + 1) * workers, *[steps] * workers],
            "bytes": sum(w.nbytes for w in starts[0]),
            "workers": plural(workers, "worker"),
        },
    )


def find_wrong_peer(trace: Trace, case: Case) -> str:
    """Return which worker communicates with another worker instead of the server."""
    for event in trace.calls:
        if event.rank != 0 and event.peer not in {0, None}:
            return (
                f"rank {event.rank} communicates with rank {event.peer}: a worker communicates only with the "
                "server, rank 0."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("send", "recv")),
        Predicate(find_wrong_peer, "workers communicate only with rank 0"),
        Calls(
            "send",
            most=lambda case, rank: case.facts["messages"][rank] * 4,
            total=lambda case, rank: case.facts["messages"][rank] * case.facts["bytes"],
            text="weights are sent and gradients received once a step",
        ),
    ),
    failed=(NO_GRAD_ADVICE, NO_GRADIENT_ADVICE, CrashAdvice("", SIZES_ADVICE, died=True)),
    kind=Kind.MODULE,
    driver=run_training,
    reported=("steps", "samples"),
    sizes=(2, 3, 4, 5, 6, 7, 8),
)
