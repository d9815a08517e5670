"""What the ranks run around `rpc_parameter_server`: a server which the answer drives, and trainers.

Each trainer leaves a mark in a folder that the world shares whenever its gradient is asked for.
"""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed.rpc as rpc

_PATIENCE_S = 2.5
"""How long a trainer waits for the others to be asked as well, before it says that it was alone."""


@dataclass(frozen=True)
class Gradient:
    """The gradient of this trainer's own loss: half the squared distance to its own target.

    Travels by pickle; what it does depends on the trainer that it is called on.
    """

    targets: torch.Tensor
    folder: str

    def __call__(self, weights: torch.Tensor) -> torch.Tensor:
        me, folder = rpc.get_worker_info().id, Path(self.folder)
        asked = len(list(folder.glob(f"{me}-*")))
        (folder / f"{me}-{asked}").touch()
        others = [folder / f"{r}-{asked}" for r in range(1, len(self.targets))]
        deadline = time.monotonic() + _PATIENCE_S
        while me and not all(other.exists() for other in others):
            if time.monotonic() > deadline or (folder / "alone").exists():
                (folder / "alone").touch()
                break
            time.sleep(0.001)
        return weights - self.targets[me]


def serve(
    answer: Callable[..., Any],
    rank: int,
    world_size: int,
    weights: torch.Tensor,
    targets: torch.Tensor,
    steps: int,
    lr: float,
) -> dict[str, Any] | None:
    """Call the answer on rank 0, the server, while the trainers wait for its calls."""
    # each rank's own temp folder lies in one that the whole world shares
    folder = Path(tempfile.gettempdir()).parent / "rpc"
    folder.mkdir(exist_ok=True)
    warnings.filterwarnings("ignore", message="You are using a Backend")  # RPC's own inner calls
    names = ["server", *(f"trainer{r}" for r in range(1, world_size))]
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=4, init_method=f"file://{folder}/store"
    )
    rpc.init_rpc(names[rank], rank=rank, world_size=world_size, rpc_backend_options=options)
    try:
        if rank:
            return None
        given = weights.clone()
        value = answer(names[1:], given, Gradient(targets, str(folder)), steps, lr)
        return {"weights": value, "kept": given.equal(weights), **_told(folder, world_size)}
    finally:
        rpc.shutdown()


def _told(folder: Path, world_size: int) -> dict[str, Any]:
    asked: Sequence[int] = [len(list(folder.glob(f"{r}-*"))) for r in range(world_size)]
    return {"asked": list(asked), "alone": (folder / "alone").exists()}
