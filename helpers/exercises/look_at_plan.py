"""What is wrong with a plan for a training run, in words: the conditions, then bytes, seconds, choice."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from helpers.exercises.run_costs import (
    Mesh,
    Task,
    byte_terms,
    dp_seconds,
    nbytes_of,
    seconds_of,
    slot_terms,
    slots,
)
from helpers.views.plain import short_bytes

_CLOSE = 1e-6


@dataclass(frozen=True)
class RunPlanIs:
    """The best layout of a task with its seconds and bytes; None where nothing fits."""

    task: Task
    best: Mesh | None

    def __call__(self, value: Any) -> str:
        if value is None and self.best is None:
            return ""
        if value is None:
            return (
                f"None came back, but {_mesh(self.best)} fits.{_needs(self.task, self.best)} Have all "
                "layouts been tried?"
            )
        if problem := _shape(value):
            return problem if self.best else "no layout fits here: return None, and nothing else."
        dp, tp, pp = (int(n) for n in value[0])
        mesh = (dp, tp, pp)
        return (
            _order(self.task, mesh, float(value[1]), float(value[2]))
            or _conditions(self.task, mesh)
            or _bytes(self.task, mesh, float(value[2]))
            or _seconds(self.task, mesh, float(value[1]))
            or self._choice(mesh)
        )

    def _choice(self, mesh: Mesh) -> str:
        memory = self.task.cluster["memory"]
        if (need := nbytes_of(self.task, mesh)) > memory:
            none = " No layout does: return None." if self.best is None else ""
            return (
                f"{_mesh(mesh)} needs {short_bytes(need)} and a GPU has {short_bytes(memory)}: it does not "
                f"fit.{none}"
            )
        if mesh == self.best or self.best is None:
            return ""
        return (
            f"{_mesh(mesh)} fits, and its numbers are right, but {_mesh(self.best)} fits too and takes "
            f"{seconds_of(self.task, self.best):.4g} s, not {seconds_of(self.task, mesh):.4g} s. Have all "
            "layouts been tried, and the least seconds taken?"
        )


def _shape(value: Any) -> str:
    three = (
        "three things must come back, ((dp, tp, pp), seconds, nbytes), or None where nothing fits"
    )
    if not isinstance(value, (tuple, list)) or len(value) != 3:
        return f"{three}."
    mesh, *numbers = value
    if not isinstance(mesh, (tuple, list)) or len(mesh) != 3:
        return f"{three}; the first of them is a tuple of three numbers."
    try:
        whole = [float(n) == int(n) for n in mesh]
        finite = [math.isfinite(float(n)) for n in numbers]
    except (TypeError, ValueError, OverflowError):
        return f"{three}: numbers all of them."
    if not all(whole):
        return "dp, tp and pp are whole numbers: `//` instead of `/`."
    if any(n < 1 for n in mesh):
        return "dp, tp and pp are 1 or more."
    return "" if all(finite) else "seconds and nbytes must be finite numbers."


def _order(task: Task, mesh: Mesh, seconds: float, nbytes: float) -> str:
    """Say whether the numbers are those of a layout of which the mesh has the sizes in another order."""
    orders = ((mesh[i], mesh[j], mesh[3 - i - j]) for i in range(3) for j in range(3) if i != j)
    fits = {
        o
        for o in orders
        if _same(nbytes, nbytes_of(task, o)) and _same(seconds, seconds_of(task, o))
    }
    if not fits or mesh in fits:
        return ""
    return f"these are the numbers of {_mesh(fits.pop())}: give the three sizes in the order (dp, tp, pp)."


def _conditions(task: Task, mesh: Mesh) -> str:
    dp, tp, pp = mesh
    gpus, hosts_of = task.cluster["gpus"], task.cluster["gpus_per_host"]
    if dp * tp * pp != gpus:
        return f"{_mesh(mesh)} is {dp * tp * pp:,} GPUs; there are {gpus:,}, and all of them work."
    if tp < hosts_of and hosts_of % tp:
        return (
            f"with TP {tp} some groups would lie in two hosts of {hosts_of} GPUs: `tp` must divide "
            "`gpus_per_host`."
        )
    if hosts_of % tp:
        return (
            f"TP {tp} leaves the host: `tp` must divide its {hosts_of} GPUs, as its all_reduces would wait "
            "for the network otherwise."
        )
    layers = task.model["layers"]
    if layers % pp:
        return f"{layers} layers cannot be cut into {pp} equal stages: `pp` must divide `layers`."
    if task.batch % dp:
        return (
            f"{task.batch:,} samples cannot be shared by {dp:,} replicas: `dp` must divide `batch`."
        )
    return ""


def _bytes(task: Task, mesh: Mesh, got: float) -> str:
    right = nbytes_of(task, mesh)
    if _same(got, right):
        return ""
    said = f"for {_mesh(mesh)}, nbytes is {got:,.0f}; {right:,.0f} is right"
    why = next((words for value, words in _byte_slips(task, mesh) if _same(got, value)), "")
    terms = ", ".join(f"{name} {n:,.0f}" for name, n in byte_terms(task, mesh).items())
    return f"{said}: {why}." if why else f"{said} ({terms})."


def _byte_slips(task: Task, mesh: Mesh) -> Iterator[tuple[float, str]]:
    dp, _, pp = mesh
    whole, state, kept = byte_terms(task, mesh).values()
    m = task.batch // dp
    yield whole + state, "the activations are missing"
    yield (
        whole + state + kept / min(m, pp),
        "activations of one microbatch; 1F1B holds min(m, pp) of them on the first stage",
    )
    yield (
        whole + state + kept / min(m, pp) * pp,
        "a stage cannot hold more microbatches than there are: min(m, pp), not pp",
    )
    yield (
        whole + state + kept / min(m, pp) * m,
        "1F1B holds at most pp microbatches: min(m, pp), not m",
    )
    yield (
        whole + state + kept * mesh[1],
        "tensor parallelism cuts the activations, too: divide by tp",
    )
    yield (
        whole + state + kept * pp,
        "a stage keeps the activations of its own layers only: layers / pp",
    )
    yield whole + state * dp + kept, "ZeRO-1 shards the optimizer's 12 bytes: divide them by dp"
    yield whole / dp + state + kept, "ZeRO-1 shards only the optimizer's 12 bytes, not the other 4"
    yield whole / 2 + state + kept, "2 bytes for the weight and 2 for its gradient make 4"
    pair = mesh[1] * pp
    yield whole * pair + state * pair + kept, "each GPU has N / (tp * pp) parameters, not all N"


def _seconds(task: Task, mesh: Mesh, got: float) -> str:
    right = seconds_of(task, mesh)
    if _same(got, right):
        return ""
    said = f"for {_mesh(mesh)}, nbytes is right, but seconds is {got:.6g}; {right:.6g} is right"
    why = next((words for value, words in _time_slips(task, mesh) if _same(got, value)), "")
    slot = slot_terms(task, mesh)
    terms = ", ".join(f"{name} {s:.4g} s" for name, s in slot.items())
    terms = f"a slot: {terms}; {slots(task, mesh):,.0f} slots; DP traffic {dp_seconds(task, mesh):.4g} s"
    return f"{said}: {why}." if why else f"{said} ({terms})."


def _time_slips(task: Task, mesh: Mesh) -> Iterator[tuple[float, str]]:
    dp, tp, pp = mesh
    compute, tensor = slot_terms(task, mesh).values()
    traffic, n = dp_seconds(task, mesh), slots(task, mesh)
    slot, m = compute + tensor, task.batch // dp
    yield m * slot + traffic, "the bubble is missing: m + pp - 1 slots, not m"
    yield (m + pp) * slot + traffic, "m + pp - 1 slots, one fewer than yours"
    yield (task.batch + pp - 1) * slot + traffic, "a replica has m = batch / dp microbatches"
    yield n * slot, "the DP traffic is missing"
    yield n * compute + traffic, "the TP traffic is missing"
    yield (
        n * slot + traffic / 2,
        "an all_reduce goes around the ring twice, 2 (dp - 1) / dp of its bytes",
    )
    yield (
        n * (compute + tensor / 2) + traffic,
        "an all_reduce goes around the ring twice, 2 (tp - 1) / tp",
    )
    yield n * (slot + traffic), "the gradients travel once a step, not in every slot"
    yield n * compute + tensor + traffic, "TP's all_reduces come in every slot"
    yield n * (compute + tensor * pp) + traffic, "a stage has layers / pp layers of TP traffic"
    yield (
        n * (compute + tensor * task.cluster["host_bandwidth"] / task.cluster["network_bandwidth"])
        + (traffic),
        "TP stays in its host: host_bandwidth",
    )
    links = task.cluster["network_bandwidth"] / task.cluster["host_bandwidth"]
    yield n * slot + traffic * links, "the replicas are in different hosts: network_bandwidth"
    yield n * slot + traffic * tp * pp, "a GPU has N / (tp * pp) gradients to send"
    yield n * (compute / 3 + tensor) + traffic, "forward and backward: 6 for each parameter, not 2"
    if dp > 1:
        yield n * slot + traffic * dp / (dp - 1), "a ring of dp passes (dp - 1) / dp of its bytes"


def _same(got: float, right: float) -> bool:
    return math.isclose(got, right, rel_tol=_CLOSE)


def _needs(task: Task, mesh: Mesh | None) -> str:
    if mesh is None:
        return ""
    return (
        f" It needs {short_bytes(nbytes_of(task, mesh))} of {short_bytes(task.cluster['memory'])}."
    )


def _mesh(mesh: Mesh | None) -> str:
    dp, tp, pp = mesh or (0, 0, 0)
    return f"(dp, tp, pp) = ({dp}, {tp}, {pp})"
