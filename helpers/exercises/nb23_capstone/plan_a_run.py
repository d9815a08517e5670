"""23.5 Plan a run (20 min, ●●●●○, further)

- How many layouts are there in all? Two loops, over tp and pp, are enough, because they determine dp. Which
  layouts do the three conditions exclude?
- First, write two small functions of (dp, tp, pp), one for the bytes and one for the seconds, and compare
  them with the worked example. Then collect (seconds, layout, bytes) for all layouts that fit. The `min` of
  these tuples is the fastest layout.
- m = batch // dp; n = N / (tp * pp); nbytes = 4 * n + 12 * n / dp + 34 * s * h * L / pp * min(m, pp) / tp;
  slot = 6 * n * s / flops + 4 * (L / pp) * 2 * (tp - 1) / tp * 2 * s * h / host_bandwidth; seconds = (m +
  pp - 1) * slot + 2 * (dp - 1) / dp * 2 * n / network_bandwidth.
"""

import math
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb23_capstone.shared import Mesh, Task
from helpers.views.plain import short_bytes

RECORDED_RUNS = (
    ("many GPUs", 4_982_398_976, 24, 4096, 8192, 4096, 8, 2_470_164_336, 221, 369, 171, 128),
    ("many GPUs", 4_867_723_264, 24, 4096, 8192, 4096, 8, 2_180_677_410, 350, 373, 122, 128),
    ("many samples", 7_591_116_800, 24, 5120, 8192, 256, 8, 20_218_101_802, 356, 382, 174, 1040),
    ("many samples", 15_292_139_520, 48, 5120, 8192, 512, 8, 36_890_402_993, 311, 326, 115, 2000),
    ("a tight fit", 51_635_683_328, 64, 8192, 8192, 2048, 8, 86_693_585_441, 429, 254, 189, 2048),
    ("a tight fit", 64_592_764_928, 80, 8192, 4096, 2048, 8, 28_455_494_958, 234, 273, 63, 1024),
    ("a slow network", 27_209_232_384, 60, 6144, 4096, 2048, 4, 106_854_628_654, 254, 383, 11, 3072),
    ("a slow network", 27_332_597_760, 60, 6144, 8192, 3072, 4, 212_932_646_038, 405, 430, 8, 3072),
    ("16,384 GPUs", 237_081_915_392, 96, 14_336, 4096, 16_384, 8, 78_299_192_600, 300, 465, 108, 4096),
    ("16,384 GPUs", 386_773_925_888, 120, 16_384, 4096, 16_384, 8, 166_801_601_629, 290, 413, 194, 4096),
    ("1,536 GPUs", 38_666_510_336, 48, 8192, 8192, 1536, 8, 17_495_590_191, 317, 290, 86, 1024),
    ("1,536 GPUs", 59_372_866_560, 96, 7168, 8192, 1536, 8, 34_927_890_238, 422, 398, 180, 2048),
    ("hosts of 6", 48_967_815_168, 48, 9216, 4096, 1920, 6, 78_596_950_133, 338, 269, 156, 1920),
    ("hosts of 6", 61_336_876_032, 60, 9216, 8192, 1920, 6, 84_947_966_303, 285, 375, 124, 1920),
    ("too large for all", 604_154_654_720, 120, 20_480, 8192, 1024, 8, 91_866_784_052, 398, 365, 69, 512),
    ("too large for all", 604_094_545_920, 120, 20_480, 4096, 1024, 8, 73_756_232_734, 203, 420, 118, 1024),
    ("not a byte to spare", 103_218_397_184, 128, 8192, 8192, 1024, 8, 89_326_011_200, 367, 385, 70, 1024),
    ("not a byte to spare", 51_757_875_200, 64, 8192, 4096, 1024, 8, 16_203_077_504, 257, 258, 64, 512),
    ("single GPUs", 154_919_059_456, 192, 8192, 4096, 384, 1, 844_254_329_033, 296, 352, 1, 6144),
    ("single GPUs", 103_224_565_760, 128, 8192, 4096, 768, 1, 560_610_074_676, 435, 351, 1, 6144),
    ("a host or less", 1_222_705_152, 24, 2048, 8192, 1, 8, 33_635_011_916, 326, 252, 14, 8),
    ("a host or less", 1_256_759_296, 24, 2048, 4096, 2, 8, 19_913_570_403, 369, 385, 13, 30),
)  # fmt: skip
"""Runs to plan: a name; parameters, layers, hidden, sequence; GPUs, GPUs per host, bytes of memory,
TFLOP/s, GB/s in a host and between hosts; samples of a batch.

The runs were drawn until the second best layout was at least 1 % slower and one of these conditions held: a
forbidden layout would be the fastest ("many GPUs", "many samples", "hosts of 6"), the two fastest layouts did
not fit ("a tight fit", "16,384 GPUs", "1,536 GPUs", "hosts of 6"), or the best layout had 96 stages or more
("single GPUs").
"""


def case(draw: Draw) -> Case:
    # a common factor of all speeds changes all seconds, but not the order of the layouts
    label, task = scale_recorded_run(draw.of(*RECORDED_RUNS), draw.whole(70, 140))
    return Case(
        f"{label}: {plural(task.cluster['gpus'], 'GPU')}, {task.batch:,} samples",
        [(dict(task.model), dict(task.cluster), task.batch)],
        right=lambda got, rank: find_problem(task, got),
    )


def scale_recorded_run(run: tuple[Any, ...], percent: int) -> tuple[str, Task]:
    """Return the name of a recorded run, and the run with its cluster at a drawn percentage of its speed."""
    label, parameters, layers, hidden, sequence, gpus, per_host, memory, flops, *speeds, batch = run
    model = {"parameters": parameters, "layers": layers, "hidden": hidden, "sequence": sequence}
    cluster = {
        "gpus": gpus,
        "gpus_per_host": per_host,
        "memory": memory,
        "flops": flops * percent * 10**10,
        "host_bandwidth": speeds[0] * percent * 10**7,
        "network_bandwidth": speeds[1] * percent * 10**7,
    }
    return label, Task(model, cluster, batch)


def fastest_layout(task: Task) -> Mesh | None:
    """Return the fastest layout that fits."""
    fitting = [mesh for mesh in task.meshes() if task.nbytes(mesh) <= task.cluster["memory"]]
    return min(fitting, key=task.seconds, default=None)


def find_problem(task: Task, got: Any) -> Finding | None:
    """Return the first problem, in the order form, conditions, bytes, seconds, choice."""
    best, room = fastest_layout(task), task.cluster["memory"]
    if got is None:
        if best is None:
            return None
        need = f"{format_mesh(best)} fits, with {short_bytes(task.nbytes(best))} of {short_bytes(room)}"
        return Finding(f"it returns None, but {need}. Return None only if no layout fits")
    if not_so := find_wrong_form(got):
        wanted = "Return ((dp, tp, pp), seconds, nbytes), or None if nothing fits."
        return Finding(not_so, wanted)
    mesh: Mesh = (int(got[0][0]), int(got[0][1]), int(got[0][2]))
    seconds, nbytes = float(got[1]), float(got[2])
    if not_so := find_broken_condition(task, mesh):
        return Finding(not_so)
    if not is_close(nbytes, right := task.nbytes(mesh)):
        terms = ", ".join(f"{name} {n:,.0f}" for name, n in task.byte_terms(mesh).items())
        what = f"for {format_mesh(mesh)}, nbytes is {nbytes:,.0f} instead of {right:,.0f} ({terms})"
        return Finding(what)
    if not is_close(seconds, right := task.seconds(mesh)):
        terms = ", ".join(f"{name} {s:.4g} s" for name, s in task.slot_terms(mesh).items())
        what = (
            f"for {format_mesh(mesh)}, nbytes is right, but seconds is {seconds:.6g} "
            f"instead of {right:.6g} (a slot: {terms}; "
            f"{task.slots(mesh):,.0f} slots; DP traffic {task.traffic(mesh):.4g} s)"
        )
        return Finding(what)
    if task.nbytes(mesh) > room:
        need = short_bytes(task.nbytes(mesh))
        what = (
            f"{format_mesh(mesh)} does not fit: it needs {need}, but a GPU has {short_bytes(room)}"
        )
        return Finding(what, "" if best else "If no layout fits, return None.")
    if mesh == best or best is None:
        return None
    return Finding(
        f"{format_mesh(mesh)} fits, and its numbers are right, but {format_mesh(best)} also fits and takes "
        f"{task.seconds(best):.4g} s instead of {task.seconds(mesh):.4g} s"
    )


def find_wrong_form(got: Any) -> str:
    """Return the difference of a value from the form ((dp, tp, pp), seconds, nbytes), or ""."""
    if not isinstance(got, (tuple, list)) or len(got) != 3:
        return "it does not return three values"
    mesh, *numbers = got
    if not isinstance(mesh, (tuple, list)) or len(mesh) != 3:
        return "the first returned value is not a tuple of three numbers"
    try:
        whole = all(float(n) == int(n) for n in mesh)
        finite = all(math.isfinite(float(n)) for n in numbers)
    except (TypeError, ValueError, OverflowError):
        return "the returned values are not all numbers"
    if not whole or any(n < 1 for n in mesh):
        return f"dp, tp and pp are {', '.join(map(str, mesh))}, not positive whole numbers"
    return "" if finite else "seconds or nbytes is not finite"


def find_broken_condition(task: Task, mesh: Mesh) -> str:
    """Return the condition that a layout does not meet, or ""."""
    (dp, tp, pp), hosts_of, layers = mesh, task.cluster["gpus_per_host"], task.model["layers"]
    if dp * tp * pp != (gpus := task.cluster["gpus"]):
        return f"{format_mesh(mesh)} uses {dp * tp * pp:,} GPUs, but it should use all {gpus:,}"
    if hosts_of % tp:
        leaves = f"TP {tp} {'exceeds' if tp > hosts_of else 'does not divide'} the {hosts_of} GPUs of a host"
        return f"{leaves}: `tp` must divide `gpus_per_host`, or groups would wait for the network"
    if layers % pp:
        return f"{layers} layers cannot be split into {pp} equal stages: `pp` must divide `layers`"
    if task.batch % dp:
        what = f"{task.batch:,} samples cannot be split equally among {dp:,} replicas"
        return f"{what}: `dp` must divide `batch`"
    return ""


def is_close(got: float, right: float) -> bool:
    return math.isclose(got, right, rel_tol=1e-6)


def format_mesh(mesh: Mesh) -> str:
    return f"(dp, tp, pp) = {mesh}"


EXERCISE = Exercise(case, kind=Kind.LOCAL, sizes=(1,))
