"""Compute the time of a training step: computing, bubble, and the traffic of TP, CP, PP and DP.

search.py sorts layouts by this time. Sources: D. Narayanan et al., arXiv 2104.04473, sections 2 and 3
(bubble, traffic of TP and PP); S. Rajbhandari et al., arXiv 1910.02054, section 7 (traffic of ZeRO); A.
Chowdhery et al., arXiv 2204.02311, appendix B (MFU).
"""

from __future__ import annotations

from dataclasses import dataclass

from helpers.plan.cluster import Cluster
from helpers.plan.layout import Layout, stage_layers
from helpers.plan.memory import stage_parameters
from helpers.plan.model_size import Model


@dataclass(frozen=True)
class StepTime:
    """Seconds of one step on the slowest stage. dp_s: the traffic that is not hidden behind computing."""

    compute_s: float
    bubble_s: float
    tp_s: float
    cp_s: float
    pp_s: float
    dp_s: float

    @property
    def total_s(self) -> float:
        return self.compute_s + self.bubble_s + self.tp_s + self.cp_s + self.pp_s + self.dp_s

    def parts(self) -> dict[str, float]:
        """Return {name: seconds}, in the order of drawing. CP's seconds are left out if they are 0."""
        return {
            "compute": self.compute_s,
            "bubble": self.bubble_s,
            "TP traffic": self.tp_s,
            "PP traffic": self.pp_s,
            "DP traffic": self.dp_s,
            **({"CP traffic": self.cp_s} if self.cp_s else {}),
        }


def step_time(model: Model, cluster: Cluster, layout: Layout, batch: int) -> StepTime:
    """Return the time of one step with `batch` samples in total.

    A microbatch occupies a stage for t seconds, forward and backward, with computing and the traffic of TP,
    CP and PP. A stage processes m microbatches, and waits for the time of another (p - 1) / v, the bubble.
    """
    m = layout.microbatches(batch)
    compute = microbatch_compute_s(model, cluster, layout)
    tp, cp, pp = (f(model, cluster, layout) for f in (_tp_s, _cp_s, _pp_s))
    bubble = (layout.pp - 1) / layout.interleave * (compute + tp + cp + pp)
    dp = max(0.0, dp_traffic_s(model, cluster, layout, m) - _hidden_s(compute, layout, m))
    return StepTime(m * compute, bubble, m * tp, m * cp, m * pp, dp)


def microbatch_compute_s(model: Model, cluster: Cluster, layout: Layout) -> float:
    """Return the seconds for a microbatch on the stage with the most layers, forward and backward.

    The output's work is assumed to be distributed evenly over the stages. The attention scores are computed
    again even without recomputation.
    """
    layers = stage_layers(model.layers, layout)
    layer = model.layers_flops / model.layers
    again = layer if layout.recompute else model.scores_flops
    work = layers * (3 * layer + again) + 3 * model.output_flops / layout.pp
    tokens = layout.tokens(model.sequence)
    return tokens * work / layout.tp / (cluster.achievable * cluster.peak_flops)


def _tp_s(model: Model, cluster: Cluster, layout: Layout) -> float:
    """Return the seconds of TP's all_reduces for one microbatch on one stage. They are never hidden.

    Each layer needs two of them in forward and two in backward and, with recomputation, two more for the
    second forward. Each sends one 16-bit number per token and hidden unit (Narayanan et al., section 3.2).
    """
    nbytes = 2 * layout.tokens(model.sequence) * model.hidden
    calls = (6 if layout.recompute else 4) * stage_layers(model.layers, layout)
    in_host = min(layout.tp, cluster.gpus_per_host)
    return calls * 2 * cluster.ring_s(nbytes, layout.tp, in_host)


def _cp_s(model: Model, cluster: Cluster, layout: Layout) -> float:
    """Return the seconds of CP's collectives for one microbatch on one stage. They are never hidden.

    Forward gathers the 16-bit keys and values of the whole sequence in each layer, cut by TP, and waits for
    them (Llama 3, arXiv 2407.21783, section 3.3.2). Each rank keeps only the part that it computed, so
    backward gathers them again, and reduce-scatters their gradients (Transformer Engine,
    `AttnFuncWithCPAndKVAllGather`). With recomputation, the second forward also gathers them.
    """
    nbytes = 2 * 2 * layout.microbatch * model.sequence * model.kv_width / layout.tp
    calls = (4 if layout.recompute else 3) * stage_layers(model.layers, layout)
    return calls * cluster.ring_s(nbytes, layout.cp, _in_host(cluster, layout, layout.cp))


def _pp_s(model: Model, cluster: Cluster, layout: Layout) -> float:
    """Return the seconds of a microbatch's two messages, an activation and its gradient, cut by TP.

    With interleaving, each part sends two messages (Narayanan et al., sections 2.2.2 and 4.1).
    """
    if layout.pp == 1:
        return 0.0
    nbytes = 2 * layout.tokens(model.sequence) * model.hidden / layout.tp
    inside = layout.gpus <= cluster.gpus_per_host
    return 2 * layout.interleave * cluster.message_s(nbytes, inside)


def dp_traffic_s(model: Model, cluster: Cluster, layout: Layout, microbatches: int) -> float:
    """Return the seconds of DP's traffic, hidden or not. Ranks of CP take part in this traffic.

    Traffic is counted in trips around the ring, each with all gradients or all 16-bit weights of this GPU.
    Per step, DDP sends gradients in two trips. ZeRO-1 sends gradients in one trip and weights in another.
    ZeRO-2 does not keep whole gradients, so it scatters them for each microbatch. ZeRO-3 also gathers the
    weights twice for each microbatch (Rajbhandari et al., section 7). ZeRO-2 and ZeRO-3 send layer by layer,
    because they hold no more than one layer at a time. DDP and ZeRO-1 are assumed to send all data in one
    call.
    """
    m = microbatches
    of_gradients, of_weights = {0: (2, 0), 1: (1, 1), 2: (m, 1), 3: (m, 2 * m)}[layout.zero]
    calls = stage_layers(model.layers, layout) if layout.zero >= 2 else 1
    in_host = _in_host(cluster, layout, layout.copies)
    own = stage_parameters(model, layout)
    gradients = cluster.ring_s(layout.gradient_bytes * own, layout.copies, in_host, calls)
    weights = cluster.ring_s(2 * own, layout.copies, in_host, calls)
    return of_gradients * gradients + of_weights * weights


def _in_host(cluster: Cluster, layout: Layout, members: int) -> int:
    """Return the number of members of a group of CP, or of CP and DP, that share a host.

    Ranks are counted TP first, then CP, DP and PP, so CP and DP fill the rest of a host.
    """
    return max(1, min(members, cluster.gpus_per_host // layout.tp))


def _hidden_s(compute: float, layout: Layout, microbatches: int) -> float:
    """Return the seconds of computing that are assumed to be able to hide DP traffic.

    DDP and ZeRO-1 send during the last microbatch's backward, which is two thirds of its time. ZeRO-2 and
    ZeRO-3 send in every microbatch: ZeRO-2 in backward, ZeRO-3 in forward and backward.
    """
    if layout.zero < 2:
        return compute * 2 / 3
    return microbatches * compute * (1.0 if layout.zero == 3 else 2 / 3)


def utilization(model: Model, cluster: Cluster, seconds: float, batch: int) -> float:
    """Return the MFU: the step's necessary work, divided by the GPUs' possible work at their peak.

    Recomputed work does not count as necessary.
    """
    work = batch * model.sequence * model.flops_per_token()
    return work / (seconds * cluster.gpus * cluster.peak_flops)
