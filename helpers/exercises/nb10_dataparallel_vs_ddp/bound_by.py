"""10.2 Why is it slow? (25 min, ●●●○○)

- Compute one number first: the bytes of the weights that this GPU has in an MLP. Two of the five parts move
  these bytes.
- weights = 2 * matrices * hidden * ffn * experts / ep / tp; rows = 2 * batch * hidden, the bytes of one row
  of numbers for each token. `all_reduce` sums these rows over tp, and `exchange` sends `active` copies of
  them out and back.
- compute = 2 * batch * active * matrices * hidden * ffn / tp / flops; memory = weights / memory bandwidth;
  gather = (n - 1) / n * weights / network; all_reduce = 2 * (t - 1) / t * rows / host; exchange = 2 * (e -
  1) / e * active * rows / network. Then `max(seconds, key=seconds.get)`.
"""

import math
from collections.abc import Mapping
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb10_dataparallel_vs_ddp.shared import short_repr
from helpers.plan.model_size import Model
from helpers.plan.presets import ACHIEVABLE_SHARE, LLAMA_70B, LLAMA_405B, a100, h100
from helpers.plan.published import NARAYANAN_2021

PARTS = ("compute", "memory", "gather", "all_reduce", "exchange")
TELLING_MARGIN = 1.02
"""The minimum ratio of the longest part to the second longest, so that rounding cannot change the name."""

H100_MEMORY = 3.35e12
"""The bandwidth in bytes per second (NVIDIA, data sheet of the H100 SXM)."""
A100_MEMORY = 2.039e12
"""The bandwidth in bytes per second (NVIDIA, data sheet of the A100 SXM with 80 GB)."""

Numbers = dict[str, float]


def case(draw: Draw) -> Case:
    kind = draw.of("published", "dense", "experts", "few tokens", "single GPU")
    while True:
        label, model, gpu, links, batch = draw_task(draw, kind)
        seconds = part_seconds(model, gpu, links, batch)
        longest, second = sorted(seconds.values())[:-3:-1]
        if longest >= TELLING_MARGIN * second:
            break
    return Case(
        f"{label}, {plural(batch, 'token')}",
        [(model, gpu, links, batch)],
        right=lambda got, rank: find_problem(model, gpu, links, batch, got),
        facts={"bound": max(seconds, key=lambda part: seconds[part])},
        telling=kind != "single GPU",
    )


def draw_task(draw: Draw, kind: str) -> tuple[str, Numbers, Numbers, Numbers, int]:
    """Return a name, and the four arguments of the answer."""
    if kind == "published":
        return draw_published(draw)
    hidden = 128 * draw.whole(8, 128)
    model: Numbers = {
        "hidden": hidden,
        "ffn": 128 * draw.whole(8, 416),
        "matrices": draw.of(2, 3),
        "experts": 1,
        "active": 1,
    }
    gpu: Numbers = {
        "flops": draw.whole(100, 2500) * 1e12,
        "memory": draw.whole(1000, 8000) * 1e9,
    }
    links: Numbers = {
        "fsdp": draw.of(2, 8, 48, 256),
        "tp": draw.of(1, 2, 4, 8),
        "ep": 1,
        "host": draw.whole(200, 900) * 1e9,
        "network": draw.whole(10, 100) * 1e9,
    }
    batch = draw.of(1024, 4096, 3 * 8192, 65_536)
    if kind == "experts":
        ep = draw.of(4, 8, 16, 32)
        model |= {"experts": ep * draw.of(1, 2, 8), "active": draw.of(2, 4)}
        model["ffn"] = 128 * draw.whole(8, 64)
        links |= {"ep": ep, "tp": draw.of(1, 2), "fsdp": draw.of(1, 2, 8)}
    if kind == "few tokens":
        batch = draw.whole(1, 200)
        links |= {"fsdp": 1, "tp": draw.of(1, 8)}
    if kind == "single GPU":
        links |= {"fsdp": 1, "tp": 1}
        batch = draw.of(1, 64, 4096)
    return f"{kind}: hidden {hidden:,}", model, gpu, links, batch


def draw_published(draw: Draw) -> tuple[str, Numbers, Numbers, Numbers, int]:
    """Return a published run with its layout.

    GPT: table 1 of Narayanan et al. 2021. Llama 3 405B: table 4 of arXiv 2407.21783, whose weights are
    gathered once for all microbatches. Llama 3.1 70B: table 4 of torchtitan's
    `benchmarks/llama3_h100_202412_torchtitan.md`. DeepSeek-V3: arXiv 2412.19437, section 3.2, only its routed
    experts, as if each copy of a token were sent separately over the network.
    """
    name = draw.of("GPT", "GPT", "Llama 405B", "Llama 70B", "DeepSeek-V3")
    if name == "GPT":
        run = draw.of(*NARAYANAN_2021)
        links = links_of(a100(8), tp=run.tp)
        batch = run.microbatch * run.model.sequence
        label = f"published: {run.model.parameters / 1e9:.1f}B"
        return label, mlp_of(run.model), gpu_of(a100(8), A100_MEMORY), links, batch
    gpu = gpu_of(h100(8), H100_MEMORY)
    if name == "Llama 405B":
        return f"published: {name}", mlp_of(LLAMA_405B), gpu, links_of(h100(8), tp=8), 8192
    if name == "Llama 70B":
        links = links_of(h100(8), fsdp=32, tp=8)
        return f"published: {name}", mlp_of(LLAMA_70B), gpu, links, 16 * 8192
    experts: Numbers = {
        "hidden": 7168,
        "ffn": 2048,
        "matrices": 3,
        "experts": 256,
        "active": 8,
    }
    return f"published: {name}", experts, gpu, links_of(h100(8), ep=64), 4096


def mlp_of(model: Model) -> Numbers:
    """Return the numbers of a dense MLP."""
    return {
        "hidden": model.hidden,
        "ffn": model.ffn_width,
        "matrices": 3 if model.gated else 2,
        "experts": 1,
        "active": 1,
    }


def gpu_of(cluster: Any, memory: float) -> Numbers:
    return {"flops": ACHIEVABLE_SHARE * cluster.peak_flops, "memory": memory}


def links_of(cluster: Any, fsdp: int = 1, tp: int = 1, ep: int = 1) -> Numbers:
    bandwidths = {"host": cluster.host_bandwidth, "network": cluster.network_bandwidth}
    return {"fsdp": fsdp, "tp": tp, "ep": ep, **bandwidths}


def part_seconds(
    model: Mapping[str, float], gpu: Mapping[str, float], links: Mapping[str, float], batch: int
) -> Numbers:
    """Return the seconds of each part of the MLP's forward (notebook 10)."""
    h, f, m = model["hidden"], model["ffn"], model["matrices"]
    n, t, e = links["fsdp"], links["tp"], links["ep"]
    weights, rows = weight_bytes(model, links), 2 * batch * h
    return {
        "compute": 2 * batch * model["active"] * m * h * f / t / gpu["flops"],
        "memory": weights / gpu["memory"],
        "gather": (n - 1) / n * weights / links["network"],
        "all_reduce": 2 * (t - 1) / t * rows / links["host"],
        "exchange": 2 * (e - 1) / e * model["active"] * rows / links["network"],
    }


def weight_bytes(model: Mapping[str, float], links: Mapping[str, float]) -> float:
    """Return the bytes of the weights with which one GPU computes."""
    experts = model["experts"] / links["ep"]
    return 2 * model["matrices"] * model["hidden"] * model["ffn"] * experts / links["tp"]


def find_problem(
    model: Numbers, gpu: Numbers, links: Numbers, batch: int, got: Any
) -> Finding | None:
    """Return the first problem, in the order form, each part's seconds, name."""
    wanted = "Return (name, seconds): a part's name, and a dict with the seconds of all five parts."
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        return Finding(f"the result isn't a pair, but {short_repr(got)}", wanted)
    name, seconds = got
    if not isinstance(seconds, Mapping):
        return Finding(f"the result's second value isn't a dict, but {short_repr(seconds)}", wanted)
    if missing := [part for part in PARTS if part not in seconds]:
        near = [str(key) for key in seconds if str(key).replace("-", "_") in missing]
        told = (f"Use the task's spelling of the keys instead of {near[0]!r}.",) if near else ()
        return Finding(f"the dict has no {' and no '.join(missing)}", (*told, wanted))
    if len(seconds) > len(PARTS):
        others = ", ".join(str(part) for part in seconds if part not in PARTS)
        return Finding(f"the dict has other keys besides the five parts: {others}", wanted)
    for part, right in part_seconds(model, gpu, links, batch).items():
        value = as_number(seconds[part])
        if isinstance(seconds[part], str):
            words = f"the seconds of `{part}` are the string {short_repr(seconds[part])}"
            return Finding(words, "Return numbers without a unit.")
        if value is None:
            return Finding(f"the seconds of `{part}` are {short_repr(seconds[part])}", wanted)
        if not math.isclose(value, right, rel_tol=1e-6, abs_tol=1e-15):
            return Finding(
                f"`{part}` takes {value:.6g} s; expected: {right:.6g} s",
                explain_part(part, value, right, model, gpu, links),
            )
    bound = max(seconds, key=lambda part: float(seconds[part]))
    if name == bound:
        return None
    said = f"all seconds are right, and `{bound}` takes longest, but the name is {short_repr(name)}"
    return Finding(said, wanted if name not in PARTS else "")


def explain_part(
    part: str, value: float, right: float, model: Numbers, gpu: Numbers, links: Numbers
) -> tuple[str, ...]:
    """Return advice if a wrong number of seconds is a known multiple of the right number."""
    own = model["experts"] / links["ep"]
    ratio = value / right if right else 0.0
    tp, ep, active = links["tp"], links["ep"], model["active"]
    causes = {
        "compute": [
            (0.5, "each weight takes two operations, a multiplication and an addition."),
            (tp, "tensor parallelism divides the products among the tp GPUs."),
            (model["experts"] / active, "a token uses only `active` experts, not all of them."),
            (1 / active, "each token is multiplied with the weights of `active` experts."),
        ],
        "memory": [
            (0.5, "a weight takes two bytes."),
            (2.0, "a weight takes two bytes."),
            (tp, "each of the tp GPUs has only its part of every matrix."),
            (ep, "this GPU has only experts / ep experts."),
            (1 / own, "this GPU reads the weights of all its experts, experts / ep of them."),
        ],
        "gather": [
            (0.5, "a weight takes two bytes."),
            (links["fsdp"] / max(1, links["fsdp"] - 1), "a GPU already has its shard."),
            (2.0, "a gather takes one trip around the ring; an all-reduce takes two."),
            (links["network"] / links["host"], "the gather uses the network."),
            (tp, "each of the tp GPUs has only its part of every matrix."),
            (ep, "this GPU has only experts / ep experts."),
        ],
        "all_reduce": [
            (0.25, "an all-reduce takes two trips, and a number takes 2 bytes."),
            (active, "the output is summed once, not for each expert."),
            (links["host"] / links["network"], "a tp group is inside a host."),
        ],
        "exchange": [
            (1 / active, "each token is sent as `active` copies."),
            (0.25, "copies are sent and returned, and a number takes 2 bytes."),
            (1 / tp, "each GPU of a tp group sends all copies."),
            (links["network"] / links["host"], "the exchange uses the network."),
        ],
    }
    fitting = [words for known, words in causes[part] if known != 1 and math.isclose(ratio, known)]
    halves = math.isclose(ratio, 0.5) and part in ("all_reduce", "exchange")
    # several causes may fit one ratio, so no cause is stated as a fact
    return (*([half_as_long(part)] if halves else ()), *(f"Check this: {each}" for each in fitting))


def half_as_long(part: str) -> str:
    return (
        f"Your `{part}` is half as long as it should be. Either one of the two trips is missing, or the "
        "factor of 2 bytes per number is."
    )


def as_number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
    return number if math.isfinite(number) else None


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,), keeps_input=True)
