"""22.2 Trainers and generators (20 min, ●●●●○, further)

- A block of the matrix is the intersection of some rows and some columns. Which trainer has this block, and
  which generator needs it? And which sends must not block, because a generator might only receive the weights
  later?
- Trainer: if step % every == 0, isend each block of part.tensor_split(generators, dim=1), also after the last
  step, and keep the Works. Generator: recv into each block of part.tensor_split(trainers), because these
  blocks are views. Put the version in front of the samples, so that one message contains both.
- Generator: version = -every; for batch in range(steps): while version < max(0, batch - most): receive all
  blocks, version += every; then send torch.cat([part.new_tensor([version]), generate(part, batch)]) to
  each trainer. At the end, keep receiving while version < steps. Trainer: recv each message into
  part.new_empty(size + 1); part = learn(part, [m[1:] for m in messages], step - int(messages[0][0])).
"""

import torch

from helpers.checks.author import *
from helpers.checks.rules_transfers import EachIsWaitedFor
from helpers.exercises.nb22_launchers_and_backends.in_ranks.roles import Role, run_role
from helpers.ranks.failures import Deadlock

SLACK_BYTES = 64
"""The number of bytes in which a message may state the step of its weights."""
AGES_ADVICE = (
    "If a trainer's ages differ, begin with them: pass `learn` the step minus the version that made the "
    "samples, and let a generator keep its weights as long as its next batch is at most `most` steps old. "
    "Otherwise compare the sent weights with W after that many steps, and check the samples' order."
)
ADVICE = {
    "age of each batch": AGES_ADVICE,
    "part": AGES_ADVICE,
    "batches": "These are the batches for which `generate` was called. Call it once for each batch, and send "
    "the result to every trainer.",
}


def case(draw: Draw) -> Case:
    n, dtype, generator = draw.ranks, draw.dtype(torch.float32, torch.float64), draw.generator()
    trainers = draw.of(*range(1, n))
    generators = n - trainers
    rows, columns = (k + draw.whole(1, k + 1) for k in (trainers, generators))
    every, late, size = draw.of(1, 2, 3), draw.of(0, 1, 2, 3), draw.whole(2, 5)
    steps, most = every * draw.of(2, 3), every - 1 + late

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    whole = random(rows, columns)
    own_rows, own_columns = whole.tensor_split(trainers), whole.tensor_split(generators, dim=1)
    across = random(size, columns)

    def role(part: torch.Tensor, *mixes: torch.Tensor) -> Role:
        return Role(trainers, part, steps, every, most, size, mixes)

    given = [role(part.clone(), random(len(part), size), across) for part in own_rows]
    for part in own_columns:
        mixes = [random(size, rows) for _ in range(steps)]
        given.append(role(torch.zeros(part.shape, dtype=dtype), *mixes))
    blocks = [[a.shape[0] * b.shape[1] * dtype.itemsize for b in own_columns] for a in own_rows]
    return Case(
        f"{plural(trainers, 'trainer')}, {plural(generators, 'generator')}, {steps} steps, every={every}, "
        f"most={most}, {dtype}",
        [(role,) for role in given],
        right=Reference(largest(whole), ADVICE),
        facts={
            "trainers": trainers,
            "every": every,
            "most": most,
            "steps": steps,
            "times": steps // every + 1,
        }
        | {"blocks": blocks, "samples": steps * size * dtype.itemsize},
        shown=f"{trainers}, part, steps={steps}, every={every}, most={most}, size={size}, generate, learn",
        telling=late > 0,
    )


def ranks_of_other_role(case: Case, rank: int) -> tuple[int, ...]:
    """Return the ranks of the other role."""
    trainers = int(case.facts["trainers"])
    return tuple(range(trainers, case.world_size)) if rank < trainers else tuple(range(trainers))


def find_wrong_traffic(trace: Trace, case: Case) -> str:
    """Return the rank that sends another rank more than the blocks or samples that it needs."""
    facts = case.facts
    for src in range(case.world_size):
        for dst in ranks_of_other_role(case, src):
            sends = [event for event in trace.of(src) if event.op == "send" and event.peer == dst]
            sent = sum(event.nbytes for event in sends)
            if src < facts["trainers"]:
                most = facts["times"] * facts["blocks"][src][dst - facts["trainers"]]
                what = f"its rows of that generator's columns, {facts['times']} times"
            else:
                most = facts["samples"] + facts["steps"] * SLACK_BYTES
                what = f"{facts['steps']} batches, each with its version"
            if sent > most:
                return f"rank {src} sends {sent:,} bytes to rank {dst}, but {most:,} are enough: {what}."
            if src >= facts["trainers"] and sent <= facts["samples"]:
                return (
                    f"rank {src} sends {sent:,} bytes to rank {dst}, which are only its samples. "
                    "Send their version, too, because a trainer in a real job can't know it."
                )
    return ""


def all_waits_are_receives(case: Case, run: Run) -> bool:
    """Return whether every waiting rank is waiting to receive a message."""
    waits = run.failure.diagnosis.waits if isinstance(run.failure, Deadlock) else ()
    return all(wait.event is not None and wait.event.op == "recv" for wait in waits)


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("send", "recv")),
        Peers(
            ranks_of_other_role, "trainers send only to generators, and generators only to trainers"
        ),
        Predicate(
            find_wrong_traffic,
            "blocks go directly to where they are needed, and samples carry their version",
        ),
        EachIsWaitedFor(),
    ),
    failed=(
        CrashAdvice(
            "contiguous",
            "A block of columns has gaps, but gloo sends one piece of memory: send `block.contiguous()`.",
        ),
        CrashAdvice(
            "must match except in dimension 1",
            "Trainers hold rows, so a generator receives rows of its columns: join them along dimension 0.",
        ),
        CrashAdvice(
            "",
            "Both sides must agree on each message. A block has the trainer's rows and the generator's "
            "columns; samples are `size` numbers of W's dtype, plus one more if they include their version.",
            applies_if_killed=True,
        ),
        HangAdvice(
            "A trainer receives the samples of every generator before a step, so these must go to every "
            "trainer. A generator must not wait for new weights while its old ones can make the next batch.",
            when=all_waits_are_receives,
        ),
        HangAdvice(
            "A send returns only after its receiver has begun to receive. A trainer must not wait until a "
            "generator receives its weights, because this generator may first send samples to it. Generators "
            "must receive every version that is sent."
        ),
    ),
    kind=Kind.MODULE,
    driver=run_role,
    reported=("age of each batch", "batches"),
    sizes=(2, 3, 4, 5, 6),
    count=18,
)
