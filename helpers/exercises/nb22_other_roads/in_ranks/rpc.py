"""Run answers of 22.2: an RPC server and its trainers.

Whenever a trainer is asked for its gradient, it writes the weights that it received to a file in a
folder that all ranks share.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed.rpc as rpc
import torch.distributed.rpc.api as api
from torch import equal

from helpers.ranks.inside import launch_folder

_APART_S = 0.02
"""How much later each trainer answers than the previous one: enough time to use the first answer early."""
_PATIENCE_S = 2.5
"""How long a trainer waits until the others are asked as well.

After that it reports that it was asked alone.
"""


@dataclass(frozen=True)
class Gradient:
    """The gradient of this trainer's own loss: half the squared distance to its own target.

    It is sent by pickle. The result depends on the trainer that computes it.
    """

    targets: torch.Tensor
    folder: str

    def __call__(self, weights: torch.Tensor) -> torch.Tensor:
        me, folder = rpc.get_worker_info().id, Path(self.folder)
        asked = len(list(folder.glob(f"{me}-*")))
        (folder / f"{me}-{asked}").write_text(repr(weights.tolist()), encoding="utf-8")
        others = [folder / f"{r}-{asked}" for r in range(1, len(self.targets))]
        deadline = time.monotonic() + _PATIENCE_S
        while me and not all(other.exists() for other in others):
            if time.monotonic() > deadline or (folder / "alone").exists():
                (folder / "alone").touch()
                break
            time.sleep(0.001)
        time.sleep(_APART_S * max(0, me - 1))
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
    folder = launch_folder() / "rpc"
    folder.mkdir(exist_ok=True)
    # RPC's own internal calls cause this warning
    warnings.filterwarnings("ignore", message="You are using a Backend")
    names = ["server", *(f"trainer{r}" for r in range(1, world_size))]
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=4, init_method=f"file://{folder}/store"
    )
    rpc.init_rpc(names[rank], rank=rank, world_size=world_size, rpc_backend_options=options)
    try:
        if rank:
            return None
        given = weights.clone()
        changed = _watch_what_is_sent()
        value = answer(names[1:], given, Gradient(targets, str(folder)), steps, lr)
        told = {**_told(folder, world_size), "changed": bool(changed)}
        return {"weights": value, "kept": equal(given, weights), **told}
    finally:
        rpc.shutdown()


def _watch_what_is_sent() -> list[torch.Tensor]:
    """Watch the tensors of each `rpc_async`; return a list of those that change before the answer arrives.

    Every way to import `rpc_async` and `rpc_sync` ends in this one function of torch.
    """
    changed: list[torch.Tensor] = []
    invoke: Any = vars(api)["_invoke_rpc_python_udf"]

    def watched(to: Any, pickled: bytes, tensors: list[torch.Tensor], *more: Any) -> Any:
        sent = [(tensor, tensor._version) for tensor in tensors]
        shown: torch.futures.Future[Any] = torch.futures.Future()

        # a separate future, which gets the answer only after the comparison: a caller that waits for it may
        # change what was sent
        def pass_on(answered: torch.futures.Future[Any]) -> None:
            changed.extend(tensor for tensor, version in sent if tensor._version != version)
            try:
                shown.set_result(answered.value())
            except Exception as error:
                shown.set_exception(error)

        invoke(to, pickled, tensors, *more).add_done_callback(pass_on)
        return shown

    vars(api)["_invoke_rpc_python_udf"] = watched
    return changed


def _told(folder: Path, world_size: int) -> dict[str, Any]:
    asked: Sequence[int] = [len(list(folder.glob(f"{r}-*"))) for r in range(world_size)]
    steps = [
        {path.read_text(encoding="utf-8") for path in folder.glob(f"*-{k}")}
        for k in range(max(asked))
    ]
    return {
        "asked": list(asked),
        "alone": (folder / "alone").exists(),
        "unlike": any(len(weights) > 1 for weights in steps),
    }
