"""23.4 Assemble a language-model trainer (30 min, ●●●●○)

- Run the check after each hole, because it tests each hole separately and reports which are wrong or empty.
  Before coding, write down which ranks have the same samples (the ranks of one tensor group) and which hold
  the same part of a weight (no two ranks).
- 1: chunk by the data coordinate. 2: call parallelize_module, checkpoint_wrapper and fully_shard for each
  block, then fully_shard for the model. 3: sum the targets of all microbatches, all_reduce the sum over data,
  and undo the mean that fully_shard takes. 4: complete each gradient's norm with full_tensor(), and take the
  norm of these norms. 5: call earlier.result() first.
- 2: model.blocks[i] = fully_shard(checkpoint_wrapper(block), mesh=mesh["data"]). 3: (summed_loss(model, part)
  * mesh["data"].size() / count).backward(). 4: torch.stack([p.grad.norm().full_tensor() for p in
  model.parameters()]).norm(). 5: pass the two results of get_state_dict(model, optimizer), as "model" and
  "optimizer", to dcp.async_save(..., checkpoint_id=folder / str(done), process_group=group).
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb23_capstone.in_ranks import trainer
from helpers.exercises.nb23_capstone.in_ranks.holes import NAMES, Bigrams, run_holes
from helpers.ranks.failures import RankFailed, RankTimeout

TOLERANCE = 1e-8
SAME_AFTER_TRAINING = 1e-5
SIZES = {1: ((1, 1),), 2: ((2, 1), (1, 2)), 4: ((2, 2), (4, 1))}
Sizes = tuple[int, int]


def hole(name: str) -> str:
    return f"hole {NAMES.index(name) + 1} ({name})"


def case(draw: Draw) -> Case:
    """Draw a mesh and inputs on which to try each function alone."""
    n = draw.ranks
    sizes = draw.of(*SIZES[n])
    data, tensor = sizes
    generator, microbatches = draw.generator(), draw.of(1, 3)  # never the size of a dimension

    def tokens(rows: int, ends: float) -> torch.Tensor:
        """Return windows of random tokens, a share of which is replaced with END."""
        drawn = torch.randint(1, 8, (rows, 7), generator=generator)
        return drawn.where(torch.rand(drawn.shape, generator=generator) > ends, trainer.END)

    samples = data * microbatches * draw.whole(1, 2)
    batch = torch.arange(samples)[:, None] * 10 + torch.arange(5)
    parts = [[tokens(2, draw.of(0.0, 0.4, 0.8)) for _ in range(microbatches)] for _ in range(data)]
    if data * microbatches > 1:  # a microbatch without a target
        parts[draw.whole(0, data - 1)][draw.whole(0, microbatches - 1)] = tokens(2, 1.0)
    rows = [draw.of(1, 2 * n, 4 * n + 1) for _ in range(2)] + [n * draw.whole(1, 2)]
    cuts: list[tuple[int, ...] | None] = [(0,), (0, 1), None]
    gradients = [
        (torch.randn(count, 2 * tensor, generator=generator, dtype=torch.float64), cut)
        for count, cut in zip(rows, cuts, strict=True)
    ]
    norm = float(torch.cat([g.flatten() for g, _ in gradients]).norm())
    limit = norm * draw.of(0.4, 0.4, 3.0)
    table = torch.randn(8, 8, generator=generator, dtype=torch.float64)
    first = draw.whole(1, 2)
    plan: dict[str, Any] = {
        "sizes": list(sizes),
        "batch": batch,
        "microbatches": microbatches,
        "layers": 2,
        "seed": draw.whole(0, 999),
        "windows": torch.randint(1, 8, (2 * data, 9), generator=generator),
        "parts": parts,
        "table": table,
        "gradients": [[g, cut and list(cut)] for g, cut in gradients],
        "limit": limit,
        "saves": [first, first + draw.whole(1, 2)],
    }

    def problem(values: list[Any]) -> Finding | None:
        return next(judge_each(values, plan), None)

    return Case(
        f"each hole alone on a mesh of {data} x {tensor}, {plural(microbatches, 'microbatch')}",
        [(plan,)] * n,
        right=AllRanks(lambda got: None, problem),
        like={},
        seconds=40.0,
        shown=f"data {data}, tensor {tensor}",
    )


def judge_each(values: Sequence[Mapping[str, Any]], plan: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield the problems with the functions, in the functions' order, and then the empty functions."""
    right, empty = [], []
    for name in NAMES:
        if all(value[name].get("empty") for value in values):
            empty.append(name)
            continue
        found = list(JUDGES[name]([value[name] for value in values], plan))
        for finding in found:
            yield Finding(f"{hole(name)}: {finding.what}", seen=finding.seen)
        if not found:
            right.append(name)
    if empty:
        so_far = f"right when tried alone: {', '.join(map(hole, right))}. " if right else ""
        yield Finding(f"{so_far}Empty: {', '.join(map(hole, empty))}", seen=("empty",))


def judge_share(got: Sequence[Any], plan: Mapping[str, Any]) -> Iterator[Finding]:
    batch, count, (data, tensor) = plan["batch"], plan["microbatches"], plan["sizes"]
    for rank, value in enumerate(got):
        if "type" in value:
            yield Finding(
                f"rank {rank} returns a {value['type']}, not a list of tensors",
                seen=("share type",),
            )
            return
    for rank, value in enumerate(got):
        parts, coordinate = value["parts"], rank // tensor
        own = batch.chunk(data)[coordinate]
        if same_parts(parts, own.chunk(count)):
            continue
        rows = [int(row) // 10 for part in parts for row in part.flatten()[::5]]
        what = f"rank {rank} (data {coordinate}, tensor {rank % tensor}) gets samples {join(rows)}"
        wanted = join([int(row) // 10 for row in own[:, 0]])
        what = f"{what} of {len(batch)}; expected: {wanted}"
        flat = torch.cat([part.reshape(-1, 5) for part in parts]) if rows else batch[:0]
        seen = "share other"
        if torch.equal(flat, own):
            what = (
                f"rank {rank} gets {plural(len(parts), 'part')} of "
                f"{join([len(p) for p in parts])} samples, "
            )
            what += f"not {plural(count, 'microbatch')} of {len(own) // count}"
            seen = "share microbatches"
        elif torch.equal(flat, batch) and data > 1:
            seen = "share whole"
        elif tensor > 1 and any(
            torch.equal(flat, batch.chunk(k)[r])
            for k, r in ((data * tensor, rank), (tensor, rank % tensor))
            if r < len(batch.chunk(k))
        ):
            seen = "share rank"
        yield Finding(what, seen=(seen,))
        return


def same_parts(got: Sequence[torch.Tensor], wanted: Sequence[torch.Tensor]) -> bool:
    return len(got) == len(wanted) and all(map(torch.equal, got, wanted))


def join(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"


def judge_shard(got: Sequence[Any], plan: Mapping[str, Any]) -> Iterator[Finding]:
    data, tensor = plan["sizes"]
    value = got[0]
    plain = [name for name, cut in value["cut"].items() if not cut]
    planned = [n for n in value["cut"] if n.split(".")[-2] in trainer.PLAN]
    if plain == list(value["cut"]):
        yield Finding("no parameter is a DTensor", seen=("shard nothing",))
        return
    uncut = [name for name in planned if "tensor" not in value["cut"][name]]
    if uncut:
        what = (
            f"{len(uncut)} of {len(planned)} planned weights are not split along tensor, "
            f"for example {uncut[0]}"
        )
        yield Finding(what, seen=("shard no tensor",))
        return
    twice = [n for n in value["cut"] if n not in planned and "tensor" in value["cut"][n]]
    if twice:
        what = f"{twice[0]} is split along tensor, although the plan does not list it"
        yield Finding(what, seen=("shard along tensor",))
        return
    if not value["root"]:
        what = (
            f"the model itself is not sharded, so {plain[0] if plain else 'no weight'} "
            f"is a whole copy on each rank"
        )
        yield Finding(what, seen=("shard no root",))
        return
    bare = [i for i, layers in enumerate(value["blocks"]) if "shards" not in layers]
    cuts = [cut for name, cut in value["cut"].items() if bare and f"blocks.{bare[0]}." in name]
    if not value["has run"] and cuts and all(cuts):
        what = (
            f"the weights of block {bare[0]} are shards, but `model.blocks[{bare[0]}]` is not the module "
            f"passed to fully_shard, so forward does not gather them"
        )
        yield Finding(what, seen=("shard unstored",))
        return
    if bare:
        yield Finding(f"fully_shard was not called for block {bare[0]}", seen=("shard no blocks",))
        return
    if any(runs == 1 for runs in value["runs"]):
        yield Finding(
            "backward recomputes no block"
            if max(value["runs"]) == 1
            else "backward does not recompute every block",
            seen=("shard no checkpoint",),
        )
        return
    if any(layers[:2] == ["recomputes", "shards"] for layers in value["blocks"]):
        what = "the recomputing wrapper is around fully_shard instead of inside it"
        yield Finding(what, seen=("shard order",))
        return
    if plain:
        yield Finding(f"{plain[0]} is not sharded", seen=("shard other",))
        return
    wanted = one_process_gradients(plan, value["names"])
    for rank, one in enumerate(got):
        if not same(wanted, one["gradients"], TOLERANCE):
            what = f"on rank {rank}, the gradients of one step differ from those of one process"
            yield Finding(what, seen=("shard gradients",))
            return


def one_process_gradients(plan: Mapping[str, Any], names: Sequence[str]) -> torch.Tensor:
    """Return the gradients of each data coordinate's summed loss, averaged over the data coordinates."""
    with in_float64():
        model = trainer.Decoder(plan["layers"], plan["seed"])
    trainer.summed_loss(model, plan["windows"]).backward()
    known = dict(model.named_parameters())
    grads = [known[name].grad for name in names if name in known]
    total = torch.cat([g.flatten() for g in grads if g is not None])
    return total / int(plan["sizes"][0])


class in_float64:
    """Uses float64 as the default dtype in a block, and restores the random state after it."""

    def __enter__(self) -> None:
        self.state, self.dtype = torch.get_rng_state(), torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)

    def __exit__(self, *_: Any) -> None:
        torch.set_default_dtype(self.dtype)
        torch.set_rng_state(self.state)


def judge_backward(got: Sequence[Any], plan: Mapping[str, Any]) -> Iterator[Finding]:
    data, tensor = plan["sizes"]
    sums, counts, grads = totals(plan)
    total = sum(map(sum, counts))
    if not total:
        return
    loss, grad = sum(map(sum, sums)) / total, sum_of([g for own in grads for g in own]) / total
    for rank, value in enumerate(got):
        mine = value["gradient"]
        if mine.shape != grad.shape:
            yield Finding(f"rank {rank} has no gradient after the call", seen=("backward none",))
            return
        if not same(grad, mine, TOLERANCE):
            ratio = float(mine.abs().sum() / grad.abs().sum())
            what = (
                f"rank {rank}'s gradient differs from that of one process (it is {ratio:.3g} "
                f"times as large)"
            )
            causes = tuple(explain_gradient(mine, plan)) or ("backward other",)
            yield Finding(what, seen=causes if len(causes) == 1 else ("backward factor",))
            return
    for rank, value in enumerate(got):
        if isinstance(value["loss"], str):
            yield Finding(
                f"rank {rank} returns a {value['loss']}, not the loss", seen=("backward returns",)
            )
            return
        if not same(loss, value["loss"], TOLERANCE):
            what = (
                f"the gradient is right, but rank {rank} returns the loss {value['loss']:.4g} "
                f"instead of {loss:.4g}"
            )
            yield Finding(what, seen=("backward loss",))
            return


def totals(
    plan: Mapping[str, Any],
) -> tuple[list[list[float]], list[list[int]], list[list[torch.Tensor]]]:
    """Return, for each data coordinate and microbatch, the summed loss, its targets, and its gradient."""
    sums: list[list[float]] = []
    counts: list[list[int]] = []
    grads: list[list[torch.Tensor]] = []
    for parts in plan["parts"]:
        sums.append([])
        counts.append([trainer.count_targets(part) for part in parts])
        grads.append([])
        for part in parts:
            model = Bigrams(plan["table"])
            loss = trainer.summed_loss(model, part)
            loss.backward()
            sums[-1].append(float(loss.detach()))
            grads[-1].append(grad_or_zeros(model.table))
    return sums, counts, grads


def grad_or_zeros(p: torch.Tensor) -> torch.Tensor:
    grad: torch.Tensor | None = p.grad
    return torch.zeros_like(p) if grad is None else grad


def sum_of(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    return torch.stack(list(tensors)).sum(0)


def explain_gradient(mine: torch.Tensor, plan: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the wrong formulas that result in this gradient."""
    data, tensor = plan["sizes"]
    _, counts, grads = totals(plan)
    total, micro = sum(map(sum, counts)), plan["microbatches"]
    own = [sum_of(g) for g in grads]  # of each data coordinate
    whole, own_counts = sum_of(own), [sum(c) for c in counts]
    means = [
        [g / max(c, 1) for g, c in zip(gs, cs, strict=True)]
        for gs, cs in zip(grads, counts, strict=True)
    ]
    per_rank = [g / max(c, 1) for g, c in zip(own, own_counts, strict=True)]
    of_means = sum_of([sum_of(g) for g in means])
    wrong = {
        "backward mean of means": [of_means / (data * micro), of_means / micro, of_means / data],
        "backward own count": [sum_of(per_rank) / data, sum_of(per_rank)],
        "backward not scaled": [whole / total / data],
        "backward sum": [whole, whole / data],
        "backward micro": [whole / total / micro, whole / total / micro / data],
        "backward counted twice": [whole / total / tensor, whole / total / tensor / data]
        if tensor > 1
        else [],
        "backward too much": [whole / total * k for k in {data, tensor, data * tensor} - {1}],
        "backward last": [sum_of([g[-1] for g in grads]) / total] if micro > 1 else [],
        "backward last count": [
            sum_of(
                [
                    sum_of(gs) / max(sum(c[k] for c in counts), 1)
                    for k, gs in enumerate(zip(*grads, strict=True))
                ]
            )
        ]
        if micro > 1
        else [],
    }
    yield from (
        name
        for name, gradients in wrong.items()
        if any(same(gradient, mine, TOLERANCE) for gradient in gradients)
    )


def judge_clip(got: Sequence[Any], plan: Mapping[str, Any]) -> Iterator[Finding]:
    data, tensor = plan["sizes"]
    gradients, limit = plan["gradients"], plan["limit"]
    flat = torch.cat([g.flatten() for g, _ in gradients])
    norm = float(flat.norm())
    scaled = flat * min(1.0, limit / norm)
    norms = [value["norm"] for value in got]
    for rank, value in enumerate(got):
        if same(scaled, value["gradients"], 1e-5):
            continue
        what = (
            f"the norm of all gradients is {norm:.4g} and the limit {limit:.4g}, but rank {rank} "
        )
        after = float(value["gradients"].norm())
        seen = "clip other"
        if same(flat, value["gradients"], TOLERANCE):
            what, seen = f"{what}leaves them as they were", "clip nothing"
        elif norm <= limit and same(flat * limit / norm, value["gradients"], 1e-5):
            what, seen = f"{what}enlarges them to the limit", "clip enlarges"
        else:
            what = f"{what}leaves them with a norm of {after:.4g}"
            numbers = [x for x in norms if isinstance(x, float)]
            if len({round(x, 6) for x in numbers}) > 1 or not same(
                torch.tensor(norm), torch.tensor(numbers[0] if numbers else 0.0), 1e-5
            ):
                is_local = len({round(x, 6) for x in numbers}) > 1
                kind = "local" if is_local else _norm_kind(numbers[0] if numbers else 0.0, plan)
                seen = f"clip {kind}"
        yield Finding(what, seen=(seen,))
        return
    for rank, value in enumerate(got):
        if isinstance(value["norm"], str):
            yield Finding(
                f"rank {rank} returns a {value['norm']}, not the norm", seen=("clip returns",)
            )
            return
        if abs(value["norm"] - norm) > 1e-5 * norm:
            what = f"rank {rank} returns {value['norm']:.4g}, but the norm of all gradients is {norm:.4g}"
            differ = len({round(x, 6) for x in norms if isinstance(x, float)}) > 1
            clipped = abs(value["norm"] - min(norm, limit)) < 1e-5 * norm
            kind = "after" if clipped else "local" if differ else _norm_kind(value["norm"], plan)
            yield Finding(what, seen=(f"clip {kind}",))
            return


def _norm_kind(norm: float, plan: Mapping[str, Any]) -> str:
    """Return "twice" if a norm counts gradients common to the tensor ranks more than once."""
    copies = [plan["sizes"][1] if cut and len(cut) == 1 else 1 for _, cut in plan["gradients"]]
    squares = [float(g.norm()) ** 2 for g, _ in plan["gradients"]]
    counted = math.sqrt(sum(n * square for n, square in zip(copies, squares, strict=True)))
    return "twice" if max(copies) > 1 and abs(norm - counted) < 1e-5 * counted else "norm"


def judge_save(got: Sequence[Any], plan: Mapping[str, Any]) -> Iterator[Finding]:
    saves = plan["saves"]
    value = got[0]
    for rank, one in enumerate(got):
        if any(one["returned"]):
            what = f"rank {rank} returns a {next(filter(None, one['returned']))}, not a future"
            yield Finding(
                what,
                seen=("save main thread" if "main thread" in one["noted"] else "save returns",),
            )
            return
        for name, what in OBSERVED.items():
            if name in one["noted"]:
                yield Finding(what, seen=(f"save {name}",))
                return
    wanted = sorted(map(str, saves))
    if value["checkpoints"] != wanted:
        what = (
            f"after saves at steps {join(saves)}, the checkpoints in `folder` are: "
            f"{', '.join(value['checkpoints']) or 'none'}"
        )
        yield Finding(what, seen=("save folder",))
        return
    if "error" in value:
        what = f"the script's `load` cannot read the checkpoint: {value['error']}"
        yield Finding(what, seen=("save names",))
        return
    if same(value["saved"] + 1, value["loaded"], TOLERANCE):
        what = "the checkpoint has the weights from after the call instead of those at the call"
        yield Finding(what, seen=("save late",))
    elif not same(value["saved"], value["loaded"], TOLERANCE):
        yield Finding("the loaded weights differ from those at the call", seen=("save weights",))
    elif value["optimizer steps"] != saves[-1]:
        what = f"the loaded optimizer has taken {value['optimizer steps']:g} steps instead of {saves[-1]}"
        yield Finding(what, seen=("save optimizer",))


OBSERVED = {
    "main thread": "the main thread writes the checkpoint, so training waits for the disk",
    "waits": "it waits for the save it has just started, so training waits for the disk",
    "two": "a save begins while the previous one is still being written",
    "group": "the writing thread doesn't communicate on `group`",
}
JUDGES: dict[str, Any] = {
    "share": judge_share,
    "shard": judge_shard,
    "backward": judge_backward,
    "clip": judge_clip,
    "save": judge_save,
}


# --- the whole script -----------------------------------------------------------------------------


def draw_whole_case(draw: Draw) -> Case:
    """Draw a training run that is killed on 2 x 2 ranks and continued on 2 x 1."""
    every, steps = 3, 12
    settings = {"steps": steps, "save_every": every, "seed": draw.whole(0, 999)}
    kill = [draw.whole(0, 3), draw.whole(2 * every, 3 * every - 2)]
    plan: dict[str, Any] = {"sizes": [2, 2], "next": [2, 1], "kill": kill, "settings": settings}

    def problem(values: list[Any]) -> Finding | None:
        ranks = [value for value in values[:2] if value]
        if len(ranks) < 2:
            return Finding("the job was not continued", seen=("whole failed",))
        return judge_whole(ranks[0], plan)

    return Case(
        f"the whole script under torchrun: 2 x 2, kill -9 in step {kill[1]}, continued on 2 x 1",
        [(plan,)] * 4,
        right=AllRanks(lambda got: None, problem),
        like=None,
        seconds=150.0,
        shown=f"{steps} steps, a checkpoint every {every}",
    )


def judge_whole(value: Mapping[str, Any], plan: Mapping[str, Any]) -> Finding | None:
    every, steps = plan["settings"]["save_every"], plan["settings"]["steps"]
    losses, weights = train_in_one_process(tuple(plan["settings"].items()))
    for where, made in (("2 x 2", value["first job"]), ("2 x 1", value["losses"])):
        for step, loss in made:
            if not same(losses[int(step)], loss, SAME_AFTER_TRAINING):
                what = (
                    f"on {where}, the loss of step {int(step)} is {loss:.6f}, but one process has "
                    f"{losses[int(step)]:.6f}"
                )
                return Finding(what, seen=("whole loss",))
    first = int(value["losses"][0][0]) if value["losses"] else steps
    if first % every or first < every or first > plan["kill"][1]:
        what = f"the job was killed in step {plan['kill'][1]}, but continues at step {first}"
        return Finding(what, seen=("whole resumed",))
    if not same(weights, value["weights"], SAME_AFTER_TRAINING):
        return Finding(
            "at the end, the weights differ from those of one process", seen=("whole weights",)
        )
    return None


@cache
def train_in_one_process(settings: tuple[tuple[str, int], ...]) -> tuple[list[float], torch.Tensor]:
    """Return the losses of all steps and the weights at the end, trained without any distribution."""
    chosen: Any = dict(settings)
    with in_float64():
        model, windows = trainer.Decoder(2, chosen["seed"]), trainer.packed_windows(chosen["seed"])
        optimizer, losses = torch.optim.AdamW(model.parameters(), lr=3e-3), []
        for step in range(chosen["steps"]):
            batch = windows[torch.arange(16 * step, 16 * step + 16) % len(windows)]
            loss = trainer.summed_loss(model, batch) / trainer.count_targets(batch)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(float(loss.detach()))
    return losses, torch.cat([p.detach().flatten() for p in model.parameters()])


def observe(case: Case, run: Run) -> Iterator[str]:
    """Yield the observations in a failed run."""
    failure = run.failure
    if isinstance(failure, RankTimeout) and "in backward:" in str(failure):
        yield "blocked in backward"
    if isinstance(failure, RankFailed):
        said = f"{failure.error.kind}: {failure.error.message}"
        # torch's words, which name the two meshes
        meshes = re.findall(r"DeviceMesh\(\(([^)]*)\)", said)
        if "different device mesh" in said:
            yield "sharded before cut"
        elif "overlapping meshes" in said and len(set(meshes)) == 1 and "data" in meshes[0]:
            yield "model before blocks"
        elif "overlapping meshes" in said or "Invariant encountered" in said:
            yield "not along data"
        elif "must have the same mesh" in said:
            yield "mixed meshes"


EXERCISE = Exercise(
    case,
    kind=Kind.SCRIPT,
    driver=run_holes,
    sizes=(1, 2, 2, 4, 4),
    count=5,
    last=draw_whole_case,
    observe=observe,
    points=20,
)
