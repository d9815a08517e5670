"""23.4 Plan a run (20 min, ●●●●○, further)

- How many layouts are there at all? Two loops, over tp and pp, give the third number. Which of them does one
  of the three conditions forbid?
- Write two small functions of (dp, tp, pp) first, one for the bytes and one for the seconds, and compare them
  with the worked example. Then collect (seconds, layout, bytes) of all that fit: `min` of such tuples is the
  fastest.
- m = batch // dp; n = N / (tp * pp); nbytes = 4 * n + 12 * n / dp + 34 * s * h * L / pp * min(m, pp) / tp;
  slot = 6 * n * s / flops + 4 * (L / pp) * 2 * (tp - 1) / tp * 2 * s * h / host_bandwidth; seconds = (m +
  pp - 1) * slot + 2 * (dp - 1) / dp * 2 * n / network_bandwidth.
"""

import math
from itertools import permutations
from typing import Any, NamedTuple

from helpers.checks.author import *
from helpers.exercises.nb23_capstone.shared import Mesh, Task
from helpers.views.plain import plural, short_bytes

CLEAR = 1.01
"""By how much the second best layout is slower at least: no answer hangs on a rounding."""


class Scenario(NamedTuple):
    """What a case is about; sizes are drawn from these choices until the case is that.

    fits: which layouts do: "all", "none", "some" (the two fastest not among them), or "just" (the best one
    needs all of the memory). tempting: the condition without which a layout that it forbids would be
    the fastest; or "deep": the best layout has more than 64 stages.
    """

    label: str
    layers: tuple[int, ...]
    hidden: tuple[int, ...]
    gpus: tuple[int, ...]
    per_host: int
    batch: tuple[int, ...]
    network: tuple[int, int]
    fits: str
    tempting: str = ""


FAST, SLOW = (60, 200), (5, 15)
SCENARIOS = (
    Scenario("many GPUs", (24, 32), (4096, 5120), (4096,), 8, (128, 256), FAST, "all", "dp > batch"),
    Scenario("many samples", (24, 48), (4096, 5120), (256, 512), 8, (1040, 2000), FAST, "all", "dp < batch"),
    Scenario("a tight fit", (64, 80), (8192, 9216), (1024, 2048), 8, (1024, 2048), FAST, "some"),
    Scenario("a slow network", (48, 60), (6144, 7168), (2048, 3072), 4, (1536, 3072), SLOW, "all"),
    Scenario("16,384 GPUs", (96, 120), (14_336, 16_384), (16_384,), 8, (2048, 4096), FAST, "some"),
    Scenario("1,536 GPUs", (48, 72, 96), (7168, 8192), (1536,), 8, (512, 1024, 2048), FAST, "some"),
    Scenario("hosts of 6", (48, 60), (8192, 9216), (1920, 3840), 6, (960, 1920), FAST, "some", "tp"),
    Scenario("too large for all", (96, 120), (20_480, 24_576), (1024,), 8, (512, 1024), FAST, "none"),
    Scenario("not a byte to spare", (64, 128), (8192,), (512, 1024), 8, (512, 1024), FAST, "just"),
    Scenario("single GPUs", (96, 128, 192), (8192,), (384, 768), 1, (6144, 12_288), (1, 5), "all", "deep"),
    Scenario("a host or less", (12, 24), (1024, 2048), (1, 2, 6, 8), 8, (8, 30, 64), SLOW, "all"),
)  # fmt: skip


def case(draw: Draw) -> Case:
    scenario = draw.of(*SCENARIOS)
    task = drawn(draw, scenario)
    return Case(
        f"{scenario.label}: {plural(task.cluster['gpus'], 'GPU')}, {task.batch:,} samples",
        [(dict(task.model), dict(task.cluster), task.batch)],
        right=lambda got, rank: problem(task, got),
    )


def drawn(draw: Draw, scenario: Scenario) -> Task:
    """Draw until the case is what its label says, and the best layout is clearly the best."""
    choose = draw.rng.choice
    while True:
        layers, hidden = choose(scenario.layers), choose(scenario.hidden)
        model = {
            "parameters": 12 * layers * hidden**2 + draw.whole(0, 50_000) * hidden,
            "layers": layers,
            "hidden": hidden,
            "sequence": choose((4096, 8192)),
        }
        cluster = {
            "gpus": choose(scenario.gpus),
            "gpus_per_host": scenario.per_host,
            "memory": 0,
            "flops": draw.whole(200, 450) * 10**12,
            "host_bandwidth": draw.whole(250, 500) * 10**9,
            "network_bandwidth": draw.whole(*scenario.network) * 10**9,
        }
        task = Task(model, cluster, choose(scenario.batch))
        cluster["memory"] = memory(draw, task, scenario.fits)
        times = sorted(map(task.seconds, fitting(task)))
        clear = len(times) < 2 or times[1] >= CLEAR * times[0]
        if cluster["memory"] and clear and tempts(task, scenario.tempting):
            return task


def memory(draw: Draw, task: Task, fits: str) -> int:
    """Give a memory in which all, none or some layouts fit; 0 where "some" or "just" cannot be."""
    order = sorted(task.meshes(), key=task.seconds)
    needs = [task.nbytes(mesh) for mesh in order]
    if fits == "all":
        return int(max(needs)) + draw.whole(1, 10**9)
    if fits == "none":
        return int(min(needs) * draw.rng.uniform(0.6, 0.95))
    if fits == "just":  # powers of two, so that every way to compute gives the same number
        two = [i for i, mesh in enumerate(order) if all(n & (n - 1) == 0 for n in mesh)]
        best = [i for i in two if i and needs[i] < min(needs[:i]) and needs[i].is_integer()]
        return int(needs[draw.rng.choice(best)]) if best else 0
    some = sorted(need for need in needs if need < 0.98 * min(needs[:2]))
    upper = some[len(some) // 2 :]
    return int(draw.rng.choice(upper) * draw.rng.uniform(1.001, 1.02)) if len(some) > 2 else 0


def fitting(task: Task, forgotten: str = "") -> list[Mesh]:
    return [m for m in task.meshes(forgotten) if task.nbytes(m) <= task.cluster["memory"]]


def best_of(task: Task) -> Mesh | None:
    return min(fitting(task), key=task.seconds, default=None)


def tempts(task: Task, tempting: str) -> bool:
    """Say whether an answer that forgets the condition would choose a layout that it forbids."""
    condition, _, more = tempting.partition(" ")
    best = best_of(task)
    if not condition or best is None:
        return not condition
    if condition == "deep":  # a search may stop at a depth that seems large
        return best[2] > 64
    forbidden = set(fitting(task, condition)) - set(task.meshes())
    if more:
        forbidden = {mesh for mesh in forbidden if (mesh[0] > task.batch) == (">" in more)}
    least = min(map(task.seconds, forbidden), default=math.inf)
    # hosts of 6: the best tp is no power of two either
    return least * CLEAR < task.seconds(best) and (condition != "tp" or best[1] % 3 == 0)


# --- what is wrong with a plan, the most basic first ----------------------------------------------


def problem(task: Task, got: Any) -> Finding | None:
    """Say what is wrong: the form, the conditions, the bytes, the seconds, the choice."""
    best, room = best_of(task), task.cluster["memory"]
    if got is None:
        if best is None:
            return None
        need = f"{said(best)} fits, with {short_bytes(task.nbytes(best))} of {short_bytes(room)}"
        return Finding(
            f"None came back, but {need}. Either a path of the function has no `return`, or no layout "
            "passed your conditions and your bytes"
        )
    if not_so := form(got):
        return Finding(not_so, THREE if best else NONE)
    mesh: Mesh = (int(got[0][0]), int(got[0][1]), int(got[0][2]))
    seconds, nbytes = float(got[1]), float(got[2])
    if found := order(task, mesh, seconds, nbytes) or conditions(task, mesh):
        return found
    if not close(nbytes, right := task.nbytes(mesh)):
        terms = ", ".join(f"{name} {n:,.0f}" for name, n in task.byte_terms(mesh).items())
        what = f"for {said(mesh)}, nbytes is {nbytes:,.0f}; {right:,.0f} is right ({terms})"
        return Finding(what)
    if not close(seconds, right := task.seconds(mesh)):
        terms = ", ".join(f"{name} {s:.4g} s" for name, s in task.slot_terms(mesh).items())
        what = (
            f"for {said(mesh)}, nbytes is right, but seconds is {seconds:.6g}; {right:.6g} is right (a slot: "
            f"{terms}; {task.slots(mesh):,.0f} slots; DP traffic {task.traffic(mesh):.4g} s)"
        )
        return Finding(what)
    if task.nbytes(mesh) > room:
        need = short_bytes(task.nbytes(mesh))
        what = f"{said(mesh)} needs {need} and a GPU has {short_bytes(room)}: it does not fit"
        return Finding(what, NO_ROOM if best else (NONE, NO_ROOM))
    if mesh == best or best is None:
        return None
    return Finding(
        f"{said(mesh)} fits, and its numbers are right, but {said(best)} fits too and takes "
        f"{task.seconds(best):.4g} s, not {task.seconds(mesh):.4g} s",
        TRIED,
    )


TRIED = (
    "Try all layouts, also with sizes that are not powers of two, and take the one with the fewest "
    "seconds."
)
THREE = "Return three things, ((dp, tp, pp), seconds, nbytes), or None where nothing fits."
NONE = "Where no layout fits, return None."
NO_ROOM = "Consider only layouts that need at most `memory` bytes."


def form(got: Any) -> str:
    """Say what is not of the form ((dp, tp, pp), seconds, nbytes)."""
    if not isinstance(got, (tuple, list)) or len(got) != 3:
        return "what comes back is not three things"
    mesh, *numbers = got
    if not isinstance(mesh, (tuple, list)) or len(mesh) != 3:
        return "the first thing that comes back is not a tuple of three numbers"
    try:
        whole = all(float(n) == int(n) for n in mesh)
        finite = all(math.isfinite(float(n)) for n in numbers)
    except (TypeError, ValueError, OverflowError):
        return "what comes back are not numbers"
    if not whole or any(n < 1 for n in mesh):
        return f"dp, tp and pp are {', '.join(map(str, mesh))}: not whole numbers from 1 on"
    return "" if finite else "seconds or nbytes is not finite"


def order(task: Task, mesh: Mesh, seconds: float, nbytes: float) -> Finding | None:
    """Say whether the numbers are those of a layout of which the mesh has the sizes in another order."""
    orders: list[Any] = list(permutations(mesh))
    fits = [o for o in orders if close(nbytes, task.nbytes(o)) and close(seconds, task.seconds(o))]
    if not fits or mesh in fits:
        return None
    what = f"{said(mesh)} came back with the numbers of {said(fits[0])}"
    return Finding(what, "Return the sizes in the order (dp, tp, pp).")


def conditions(task: Task, mesh: Mesh) -> Finding | None:
    """Say which condition a layout does not meet."""
    (dp, tp, pp), hosts_of, layers = mesh, task.cluster["gpus_per_host"], task.model["layers"]
    if dp * tp * pp != (gpus := task.cluster["gpus"]):
        return Finding(
            f"{said(mesh)} is {dp * tp * pp:,} GPUs; there are {gpus:,}, and all of them are used"
        )
    if hosts_of % tp:
        leaves = f"TP {tp} {'leaves' if tp > hosts_of else 'does not divide'} the host of {hosts_of} GPUs"
        return Finding(
            f"{leaves}: `tp` must divide `gpus_per_host`, or groups wait for the network"
        )
    if layers % pp:
        return Finding(f"{layers} layers are not {pp} equal stages: `pp` must divide `layers`")
    if task.batch % dp:
        what = f"{task.batch:,} samples are not equal parts for {dp:,} replicas"
        return Finding(f"{what}: `dp` must divide `batch`")
    return None


def close(got: float, right: float) -> bool:
    return math.isclose(got, right, rel_tol=1e-6)


def said(mesh: Mesh) -> str:
    return f"(dp, tp, pp) = {mesh}"


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,))
