"""A dataclass at module level whose defaults come from other names of the cell."""

from dataclasses import dataclass, field, replace

LR = 0.25
NAMES = ("a", "b")


@dataclass
class Config:
    lr: float = LR
    names: list = field(default_factory=lambda: list(NAMES))


CONFIG = Config()


def main(rank, world_size):
    CONFIG.names.append(f"rank {rank}")
    return CONFIG.names, replace(CONFIG, lr=1.0).lr, Config().names
