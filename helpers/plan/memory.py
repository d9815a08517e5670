"""Compute the memory of the GPU that needs the most memory, as in notebook 12.

This memory is the sum of weights, gradients, optimizer state and activations. search.py uses it to find
layouts that fit. Sources: S. Rajbhandari et al., arXiv 1910.02054, section 3.1 (the 2, 2 and 12 bytes) and 5
(ZeRO); Megatron-Core's page "Distributed Optimizer" (18 bytes with 32-bit gradients); V. Korthikanti et al.,
arXiv 2205.05198, section 4 (activations).
"""

from __future__ import annotations

from dataclasses import dataclass

from helpers.plan.layout import Layout, stage_layers
from helpers.plan.model_size import Model


@dataclass(frozen=True)
class Memory:
    """Bytes on the GPU that needs the most memory."""

    weights: int
    gradients: int
    optimizer: int
    activations: int

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.optimizer + self.activations

    def parts(self) -> dict[str, int]:
        """Return {name: bytes}, in the order of drawing."""
        return {
            "weights": self.weights,
            "gradients": self.gradients,
            "optimizer state": self.optimizer,
            "activations": self.activations,
        }


def memory_of(model: Model, layout: Layout, batch: int) -> Memory:
    """Return the bytes of a GPU in the first stage, which holds the most microbatches and so the most bytes.

    These are the three counts of notebook 12 for the N parameters of this GPU, divided by dp x cp if ZeRO
    shards them: 16 bytes per parameter with 16-bit gradients, or 18 with 32-bit gradients. ZeRO-3 gathers one
    layer's weights and gradients, as in that notebook.
    """
    own = stage_parameters(model, layout)
    share = -(-own // layout.copies)
    whole = -(-model.layer_parameters // layout.tp) if layout.zero == 3 and layout.copies > 1 else 0
    return Memory(
        weights=2 * ((share if layout.zero >= 3 else own) + whole),
        gradients=layout.gradient_bytes * ((share if layout.zero >= 2 else own) + whole),
        optimizer=12 * (share if layout.zero >= 1 else own),
        activations=activations(model, layout, batch),
    )


def stage_parameters(model: Model, layout: Layout) -> int:
    """Return the number of parameters on a GPU of the first stage: its layers and the table, cut by TP."""
    if layout.pp == 1:
        return -(-model.parameters // layout.tp)
    layers = stage_layers(model.layers, layout) * model.layer_parameters
    return -(-(layers + model.table_parameters) // layout.tp)


def activations(model: Model, layout: Layout, batch: int) -> int:
    """Return the bytes that the first stage keeps for backward, all cut by TP (sequence parallelism) and CP.

    1F1B holds as many microbatches as there are stages, so the first stage keeps about as many bytes as one
    microbatch leaves in the whole model. Interleaving adds (p - 1) / (p v) of this. With recomputation, each
    layer's input (2 bytes x hidden) is kept, and all activations of one layer while it is computed. With only
    one stage, the output's 32-bit probabilities are added (Korthikanti et al., formulas (4) to (6), section
    4.3).
    """
    tokens = layout.tokens(model.sequence)
    layers = stage_layers(model.layers, layout) * _in_flight(layout, batch)
    each = 2 * model.hidden if layout.recompute else model.activation_bytes
    once = model.activation_bytes if layout.recompute else 0
    once += 4 * model.vocabulary if layout.pp == 1 else 0
    return round(tokens * (layers * each + once) / layout.tp)


def _in_flight(layout: Layout, batch: int) -> float:
    most = layout.pp + (layout.pp - 1) / layout.interleave if layout.interleave > 1 else layout.pp
    return min(most, layout.microbatches(batch))
