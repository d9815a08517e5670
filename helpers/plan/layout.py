"""How a model lies on GPUs: the three directions, and the choices that go with them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """DP x TP x PP, with the words of notebooks 08 to 15.

    microbatch: samples in one. zero: which stage of ZeRO (0: plain DDP). recompute: keep only each
    layer's input, and compute the rest again in backward. interleave: parts of the model that each rank
    has in turn (interleaved 1F1B; 1: plain). gradient_bytes: of one gradient, stored and sent (2 or 4).
    """

    dp: int
    tp: int
    pp: int
    microbatch: int = 1
    zero: int = 1
    recompute: bool = False
    interleave: int = 1
    gradient_bytes: int = 2

    @property
    def gpus(self) -> int:
        return self.dp * self.tp * self.pp

    def microbatches(self, batch: int) -> int:
        """Return how many microbatches of a batch each replica has. Raise ValueError if it is not whole."""
        count, rest = divmod(batch, self.dp * self.microbatch)
        if rest or not count:
            raise ValueError(
                f"{batch:,} samples cannot be dealt out evenly to {self.dp:,} replicas in microbatches "
                f"of {self.microbatch:,}. Choose a batch that {self.dp * self.microbatch:,} divides."
            )
        return count

    def __str__(self) -> str:
        words = [f"DP {self.dp:,} x TP {self.tp} x PP {self.pp}"]
        words += [f"ZeRO-{self.zero}"] if self.zero else ["no sharding"]
        words += [f"microbatch {self.microbatch}"]
        words += ["recomputed"] if self.recompute else []
        words += [f"{self.interleave} parts a stage"] if self.interleave > 1 else []
        words += ["32-bit gradients"] if self.gradient_bytes == 4 else []
        return ", ".join(words)


def stage_layers(layers: int, layout: Layout) -> int:
    """Return the layers of the fullest stage."""
    return -(-layers // layout.pp)
