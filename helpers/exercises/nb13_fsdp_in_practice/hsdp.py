"""13.4 HSDP: shard inside, replicate between (12 min, ●●●○○, further)

- A mesh has a row for each host. Along which of its two dimensions should you shard the weights, and along
  which should you copy them? And which sum of gradients can wait until the last microbatch?
- init_device_mesh("cpu", (hosts, per_host), mesh_dim_names=("replicate", "shard")): the first dimension
  replicates, and the second one shards. `set_requires_all_reduce` affects only the calls between hosts.
- for each layer with parameters, then the model: fully_shard(module, mesh=mesh). for i, (x, y) in
  enumerate(batches): model.set_requires_all_reduce(i == len(batches) - 1); mse_loss(model(x), y).backward().
"""

import torch

from helpers.checks.author import *
from helpers.exercises.nb12_zero_and_fsdp.shared import draw_state, largest_shard
from helpers.exercises.nb13_fsdp_in_practice.in_ranks import run_hybrid

MESH_ADVICE = (
    "The first of the mesh's two dimensions replicates and the second shards: (hosts, per_host), with a "
    "name for each."
)


def case(draw: Draw) -> Case:
    n, count = draw.ranks, draw.of(2, 2, 3)
    per_host = draw.of(*(k for k in (2, 3) if n % k == 0))
    kinds = draw.of("Linear Tanh Linear", "Linear Linear", "Flatten Linear Sigmoid Linear").split()
    widths = [draw.whole(4, 9) for _ in range(kinds.count("Linear") + 1)]
    dtype, generator = draw.dtype(torch.float32, torch.float64), draw.generator()

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)

    state = draw_state(draw, kinds, widths, dtype)
    samples = draw.whole(1, 3)
    batches = [
        [(random(samples, widths[0]), random(samples, widths[-1])) for _ in range(count)]
        for _ in range(n)
    ]
    shard = (
        sum(largest_shard(len(w), per_host) * w[0].numel() for w in state.values()) * dtype.itemsize
    )
    return Case(
        f"{n // per_host} hosts of {per_host}, {', '.join(kinds)}, {plural(count, 'microbatch')}",
        [(kinds, state, batches[r], per_host, shard) for r in range(n)],
        right=Reference(8.0),
        facts={"per_host": per_host, "shard": shard, "scatters": count * kinds.count("Linear")},
        seconds=20.0,
    )


def crosses_hosts(event: Event, per_host: int) -> bool:
    """Return whether a call's group has ranks on more than one host."""
    return len({rank // per_host for rank in event.group_ranks}) > 1


def find_gather_between_hosts(trace: Trace, case: Case) -> str:
    for event in trace.calls:
        if event.op != "all_reduce" and crosses_hosts(event, case.facts["per_host"]):
            ranks = ", ".join(map(str, event.group_ranks))
            return (
                f"rank {event.rank} calls {event.op} with ranks {ranks}, which are on different hosts. "
                f"Weights are gathered, and gradients scattered, inside a host. {MESH_ADVICE}"
            )
    return ""


def find_excess_between_hosts(trace: Trace, case: Case) -> str:
    for rank in range(case.world_size):
        calls = [e for e in trace.calls.of(rank) if crosses_hosts(e, case.facts["per_host"])]
        handed, most = sum(e.nbytes for e in calls), case.facts["shard"]
        if handed > most:
            return (
                f"rank {rank} passes {handed:,} bytes to calls between hosts, but {most:,} are enough: its "
                "shard of the gradients, once. Nothing needs to be sent between hosts before the last "
                "microbatch."
            )
    return ""


EXERCISE = Exercise(
    case,
    (
        OnlyCalls(("all_gather", "reduce_scatter", "all_reduce")),
        Predicate(find_gather_between_hosts, "gathers and scatters stay inside a host"),
        Predicate(find_excess_between_hosts, "a shard is sent between hosts once"),
        Calls(
            "reduce_scatter",
            "scatters",
            why="Each layer is a separate group and scatters in each microbatch, so that no rank keeps whole "
            "gradients.",
        ),
    ),
    failed=(
        HangAdvice("Every rank must make the same calls, and all ranks must create the mesh."),
    ),
    kind=Kind.MODULE,
    driver=run_hybrid,
    reported=("sharded", "share", "root"),
    sizes=(4, 4, 4, 6),
    count=12,
)
