"""A transformer in numbers: its parameters, the work for a token, the activations a token leaves.

memory.py and step_time.py divide these among GPUs. Sources: J. Kaplan et al., "Scaling Laws for Neural
Language Models", 2020, section 2.1 (parameters and work); D. Narayanan et al., arXiv 2104.04473,
formulas (2) and (3); V. Korthikanti et al., arXiv 2205.05198, section 4 (activations).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """A decoder-only transformer.

    sequence: tokens in a sample. ffn: width inside the MLP, 0 for 4 x hidden. kv_heads: heads that have
    keys and values of their own, 0 for all. gated: as Llama has it, with three matrices in the MLP, a
    second table for the output, and without biases, learned positions and dropout; else as GPT.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    sequence: int = 2048
    vocabulary: int = 51_200
    ffn: int = 0
    kv_heads: int = 0
    gated: bool = False

    @property
    def ffn_width(self) -> int:
        return self.ffn or 4 * self.hidden

    @property
    def kv_width(self) -> int:
        return self.hidden * (self.kv_heads or self.heads) // self.heads

    @property
    def layer_matrices(self) -> int:
        """Count the parameters of a layer that multiply: of GPT, 12 x hidden squared."""
        attention = 2 * self.hidden**2 + 2 * self.hidden * self.kv_width
        return attention + (3 if self.gated else 2) * self.hidden * self.ffn_width

    @property
    def layer_parameters(self) -> int:
        """Add norms and, for GPT, biases: 13 x hidden (Narayanan et al., formula (2))."""
        return self.layer_matrices + (2 if self.gated else 13) * self.hidden

    @property
    def table_parameters(self) -> int:
        """Count one table of the vocabulary, with GPT's positions."""
        return (self.vocabulary + (0 if self.gated else self.sequence)) * self.hidden

    @property
    def parameters(self) -> int:
        """Count all: layers, the table, and where it is not shared the output's table."""
        tables = 2 if self.gated else 1
        return self.layers * self.layer_parameters + tables * self.table_parameters

    @property
    def scores_flops(self) -> int:
        """Return a token's forward work for the attention scores of a layer, and for their use.

        4 x sequence x hidden: every token with every other one, as the papers count. Work that a causal
        mask could save is not taken off.
        """
        return 4 * self.sequence * self.hidden

    @property
    def layers_flops(self) -> int:
        """Return a token's forward work in all layers: 2 for each parameter that multiplies, and scores."""
        return self.layers * (2 * self.layer_matrices + self.scores_flops)

    @property
    def output_flops(self) -> int:
        """Return a token's forward work for the probabilities of all words."""
        return 2 * self.hidden * self.vocabulary

    def flops_per_token(self, recompute: bool = False) -> int:
        """Return the work of a training step for one token: forward once, backward twice as much.

        With `recompute` the layers' forward comes once more: formula (3) of Narayanan et al., with 96
        where it is 72 without.
        """
        return (4 if recompute else 3) * self.layers_flops + 3 * self.output_flops

    @property
    def activation_bytes(self) -> int:
        """Return the bytes that a token leaves in a layer for backward: of GPT, 34 x hidden.

        16-bit numbers: what enters two norms, the attention's and the MLP's matrices, queries, keys and
        values; dropout masks of a byte. The scores are not kept: FlashAttention or selective recomputation
        computes them again (Korthikanti et al., formula (6)).
        """
        attention = 2 * self.hidden + 2 * self.hidden + 4 * self.kv_width + 2 * self.hidden
        mlp = 2 * self.hidden + 2 * (3 if self.gated else 2) * self.ffn_width
        dropout = 0 if self.gated else 2 * self.hidden
        return 4 * self.hidden + attention + mlp + dropout
