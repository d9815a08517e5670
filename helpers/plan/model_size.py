"""Describe a transformer in numbers: its parameters, and the work and activations per token.

memory.py and step_time.py divide these among GPUs. Sources: J. Kaplan et al., "Scaling Laws for Neural
Language Models", 2020, section 2.1 (parameters and work); D. Narayanan et al., arXiv 2104.04473, formulas
(2) and (3); V. Korthikanti et al., arXiv 2205.05198, section 4 (activations).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """A decoder-only transformer.

    Args:
        sequence: Tokens in a sample.
        ffn: The width inside the MLP, or 0 for 4 x hidden.
        kv_heads: The number of heads with separate keys and values, or 0 for all heads.
        gated: If True, the model is like Llama, with three matrices in the MLP and a second table for the
            output, but without biases, learned positions and dropout. Otherwise it is like GPT.
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
    def layer_matrix_parameters(self) -> int:
        """The number of parameters in a layer's matrices; for GPT, 12 x hidden squared."""
        attention = 2 * self.hidden**2 + 2 * self.hidden * self.kv_width
        return attention + (3 if self.gated else 2) * self.hidden * self.ffn_width

    @property
    def layer_parameters(self) -> int:
        """The number of a layer's parameters including norms and, for GPT, biases, which add 13 x hidden.

        See Narayanan et al., formula (2).
        """
        return self.layer_matrix_parameters + (2 if self.gated else 13) * self.hidden

    @property
    def table_parameters(self) -> int:
        """The number of parameters in one table of the vocabulary and, for GPT, in the table of positions."""
        return (self.vocabulary + (0 if self.gated else self.sequence)) * self.hidden

    @property
    def parameters(self) -> int:
        """The total number of parameters: layers, the table, and the output's table unless it is shared."""
        tables = 2 if self.gated else 1
        return self.layers * self.layer_parameters + tables * self.table_parameters

    @property
    def scores_flops(self) -> int:
        """A token's forward work to compute the attention scores of a layer and to apply them.

        This is 4 x sequence x hidden, for every token with every other token, as counted in the papers. Work
        that a causal mask could save is not subtracted.
        """
        return 4 * self.sequence * self.hidden

    @property
    def layers_flops(self) -> int:
        """A token's forward work in all layers: 2 operations per matrix parameter, and the scores."""
        return self.layers * (2 * self.layer_matrix_parameters + self.scores_flops)

    @property
    def output_flops(self) -> int:
        """A token's forward work for the probabilities of all words."""
        return 2 * self.hidden * self.vocabulary

    def flops_per_token(self, recompute: bool = False) -> int:
        """Return the work of a training step for one token: forward, and backward with twice as much work.

        With `recompute` the layers' forward is added once more. This is formula (3) of Narayanan et al.,
        with the factor 96, or 72 without recomputation.
        """
        return (4 if recompute else 3) * self.layers_flops + 3 * self.output_flops

    @property
    def activation_bytes(self) -> int:
        """The bytes that a token leaves in a layer for backward; for GPT, 34 x hidden.

        They are 16-bit numbers: the inputs of the two norms and of the attention's and the MLP's matrices,
        queries, keys and values. Dropout masks take a byte. The scores are not kept, because FlashAttention
        or selective recomputation computes them again (Korthikanti et al., formula (6)).
        """
        attention = 2 * self.hidden + 2 * self.hidden + 4 * self.kv_width + 2 * self.hidden
        mlp = 2 * self.hidden + 2 * (3 if self.gated else 2) * self.ffn_width
        dropout = 0 if self.gated else 2 * self.hidden
        return 4 * self.hidden + attention + mlp + dropout
