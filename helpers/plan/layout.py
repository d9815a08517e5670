"""Describe the distribution of a model over GPUs: its four directions, and the related choices."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """DP x CP x TP x PP, in the terms of notebooks 08 to 16.

    Args:
        dp, tp, pp: The number of ranks in each direction.
        microbatch: Samples in a microbatch.
        zero: The stage of ZeRO (0: plain DDP).
        recompute: Whether only the input of each layer is kept, so that backward has to compute the rest
            again.
        interleave: The number of parts of the model on each rank (interleaved 1F1B; 1: plain 1F1B).
        gradient_bytes: Bytes of one gradient, stored and sent (2 or 4).
        cp: The number of ranks that share a sequence (context parallelism).
    """

    dp: int
    tp: int
    pp: int
    microbatch: int = 1
    zero: int = 1
    recompute: bool = False
    interleave: int = 1
    gradient_bytes: int = 2
    cp: int = 1

    @property
    def gpus(self) -> int:
        return self.copies * self.tp * self.pp

    @property
    def copies(self) -> int:
        """The number of ranks with the same weights: those of DP and CP, among which ZeRO shards them.

        In torchtitan's `parallel_dims.py`, too, FSDP's mesh has dp_shard x cp ranks.
        """
        return self.dp * self.cp

    def tokens(self, sequence: int) -> float:
        """Return the number of tokens of a microbatch on one rank."""
        return self.microbatch * sequence / self.cp

    def microbatches(self, batch: int) -> int:
        """Return the number of microbatches per replica. Raise ValueError if it is not a whole number."""
        count, rest = divmod(batch, self.dp * self.microbatch)
        if rest or not count:
            raise ValueError(
                f"{batch:,} samples cannot be dealt out evenly to {self.dp:,} replicas in microbatches "
                f"of {self.microbatch:,}. Choose a batch that {self.dp * self.microbatch:,} divides."
            )
        return count

    def __str__(self) -> str:
        cp = f"CP {self.cp} x " if self.cp > 1 else ""
        words = [f"DP {self.dp:,} x {cp}TP {self.tp} x PP {self.pp}"]
        words += [f"ZeRO-{self.zero}"] if self.zero else ["no sharding"]
        words += [f"microbatch {self.microbatch}"]
        words += ["recomputed"] if self.recompute else []
        words += [f"{self.interleave} parts a stage"] if self.interleave > 1 else []
        words += ["32-bit gradients"] if self.gradient_bytes == 4 else []
        return ", ".join(words)


def stage_layers(layers: int, layout: Layout) -> int:
    """Return the number of layers in the stage with the most layers."""
    return -(-layers // layout.pp)
