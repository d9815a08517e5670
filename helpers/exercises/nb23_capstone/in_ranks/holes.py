"""Try the five functions missing from the script of 23.4: each alone, then all of them under torchrun.

A worker reports facts by the function's name. Only the launching process knows the right facts.
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # imported before functions are watched, because it replaces some of torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import CheckpointWrapper
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

from helpers.checks.scripts import (
    ROOT,
    Source,
    compose,
    report_of,
    run_with_forked_workers,
)
from helpers.exercises.nb19_checkpoints.in_ranks.while_training import WriteRecorder
from helpers.exercises.nb23_capstone.in_ranks import trainer
from helpers.exercises.nb23_capstone.in_ranks.whole import copy_whole, whole
from helpers.exercises.shared.in_ranks.attempts import folder_of_script, join
from helpers.jobs.torchrun import JobOptions, start_job

NAMES = ("share", "shard", "backward", "clip", "save")
"""The functions, in the order of the holes."""
AGENT_S = 60.0
"""Time limit for a real agent, which usually needs 6 s."""
ALONE_S = 30.0
"""The limit of processor time for workers that try each function alone."""
WAIT = timedelta(seconds=40)


def run_holes(answer: Source, rank: int, world_size: int, plan: dict[str, Any]) -> dict[str, Any]:
    """Try each function alone on a mesh, or all of them in the whole script with a kill and a restart."""
    if "kill" in plan:
        return _run_whole(answer, plan)
    script = compose(answer, try_each, (plan,))
    return run_with_forked_workers(script, math.prod(plan["sizes"]), timeout_s=ALONE_S)


# --- the whole script -----------------------------------------------------------------------------


def _run_whole(answer: Source, plan: dict[str, Any]) -> dict[str, Any]:
    """Run two real jobs, the first of which is killed. Return the second job's report, with all losses."""
    found: dict[str, Any] = {}
    first: list[list[float]] = []
    folder = ""
    for sizes, kill in ((plan["sizes"], plan["kill"]), (plan["next"], None)):
        nproc = sizes[0] * sizes[1]
        script = compose(
            answer, train_whole, ({**plan, "sizes": sizes, "kill": kill, "in": folder},)
        )
        folder = folder or str(script.parent)
        asked = JobOptions(script, nproc, env={"PYTHONPATH": ROOT}, timeout=AGENT_S)
        with start_job(asked) as job:
            found = report_of(job.wait(), script, nproc)
        losses = _read_losses(script.parent / "losses")
        if kill:
            first = losses
            if [step for step, _ in losses][-1:] != [kill[1]]:
                break  # it failed, or has returned, before the kill
    known = {
        "first job": first,
        "checkpoints": sorted(p.name for p in Path(folder, "steps").glob("*")),
    }
    values = [value and {**value, **known} for value in found["values"]]
    return {**found, "values": values + [None] * (4 - len(values))}


def _read_losses(path: Path) -> list[list[float]]:
    """Return the steps and losses written by rank 0, one on each line."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def train_whole(answer: Any, plan: dict[str, Any]) -> dict[str, Any]:
    """Run the script in a worker of a real agent. The killed rank kills itself in the planned step."""
    torch.set_default_dtype(torch.float64)
    here = folder_of_script()
    folder = Path(plan["in"] or here)
    (folder / "steps").mkdir(exist_ok=True)
    kill, losses = plan["kill"], []
    dist.init_process_group("gloo", timeout=WAIT)

    def on_step(step: int, loss: float) -> None:
        losses.append([step, loss])
        if dist.get_rank() == 0:
            with (here / "losses").open("a", encoding="utf-8") as file:
                file.write(json.dumps([step, loss]) + "\n")
        if kill and step == kill[1]:
            dist.barrier()  # every rank has taken this step
            if dist.get_rank() == kill[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    model, speed = trainer.train(
        answer, tuple(plan["sizes"]), folder / "steps", on_step=on_step, **plan["settings"]
    )
    weights = copy_whole(model.parameters())
    dist.destroy_process_group()
    told = {"seed": plan["settings"]["seed"], "steps": plan["settings"]["steps"]}
    return {"losses": losses, "weights": weights, "speed": speed, **told}


# --- each function alone --------------------------------------------------------------------------


def try_each(answer: Any, plan: dict[str, Any]) -> dict[str, Any]:
    """Try the functions one after another; report each function's results, or that it is empty."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    join(folder_of_script() / "rendezvous", rank, size)
    mesh = init_device_mesh("cpu", tuple(plan["sizes"]), mesh_dim_names=("data", "tensor"))
    found: dict[str, Any] = {}
    for name in NAMES:
        function = getattr(answer, name, None)
        if not callable(function):
            found[name] = {"empty": True}
            continue
        try:
            found[name] = _TRIALS[name](function, mesh, plan)
        except NotImplementedError:
            found[name] = {"empty": True}
    dist.barrier()
    dist.destroy_process_group()
    return found


def try_share(
    function: Callable[..., Any], mesh: DeviceMesh, plan: dict[str, Any]
) -> dict[str, Any]:
    got = function(plan["batch"].clone(), mesh, plan["microbatches"])
    if not isinstance(got, (list, tuple)) or not all(isinstance(t, torch.Tensor) for t in got):
        return {"type": type(got).__name__}
    return {"parts": [part.clone() for part in got]}


def try_shard(
    function: Callable[..., Any], mesh: DeviceMesh, plan: dict[str, Any]
) -> dict[str, Any]:
    """Shard a decoder, run one forward and backward, and describe the modules and parameters."""
    model = trainer.Decoder(plan["layers"], plan["seed"])
    runs = [0] * plan["layers"]
    for i, block in enumerate(model.blocks):

        def count(*_: Any, i: int = i) -> None:
            runs[i] += 1

        block.get_submodule("attention_norm").register_forward_hook(count)
    function(model, mesh, dict(trainer.PLAN))
    data = mesh["data"]
    own = plan["windows"].chunk(data.size())[data.get_local_rank()]
    has_run = True
    try:
        trainer.summed_loss(model, own).backward()
    except RuntimeError:
        if all(isinstance(block, FSDPModule) for block in model.blocks):
            raise
        has_run = False  # perhaps because no hook gathers a block's shards
    parameters = {
        name.replace("_checkpoint_wrapped_module.", ""): p for name, p in model.named_parameters()
    }
    return {
        "root": isinstance(model, FSDPModule),
        "blocks": [_describe_block(block) for block in model.blocks],
        "runs": runs,
        "cut": {
            name: list(p.device_mesh.mesh_dim_names or ()) if isinstance(p, DTensor) else []
            for name, p in parameters.items()
        },
        "names": list(parameters),
        "has run": has_run,
        "gradients": copy_whole(p.grad for p in parameters.values() if p.grad is not None)
        if has_run
        else torch.zeros(0),
    }


def _describe_block(block: nn.Module) -> list[str]:
    """Return the layers around a block, outermost first: "shards" and "recomputes"."""
    layers = []
    while True:
        if isinstance(block, FSDPModule):
            layers.append("shards")
        if not isinstance(block, CheckpointWrapper):
            return layers
        layers.append("recomputes")
        block = block._checkpoint_wrapped_module


class Bigrams(nn.Module):
    """A table of scores for each pair of tokens."""

    def __init__(self, table: torch.Tensor) -> None:
        super().__init__()
        self.table = nn.Parameter(table.clone())

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table[tokens]


def try_backward(
    function: Callable[..., Any], mesh: DeviceMesh, plan: dict[str, Any]
) -> dict[str, Any]:
    """Call `function` with a sharded table of scores and this data coordinate's microbatches."""
    model = Bigrams(plan["table"])
    fully_shard(model, mesh=mesh["data"])
    parts = [part.clone() for part in plan["parts"][mesh["data"].get_local_rank()]]
    got = function(model, parts, mesh)
    grad = model.table.grad
    return {
        "loss": _number(got),
        "gradient": torch.zeros(0) if grad is None else whole(grad).detach().clone(),
    }


def _number(got: Any) -> float | str:
    if isinstance(got, DTensor):
        got = got.full_tensor()
    if isinstance(got, torch.Tensor) and got.numel() == 1:
        return float(got)
    return float(got) if isinstance(got, (int, float)) else type(got).__name__


def try_clip(
    function: Callable[..., Any], mesh: DeviceMesh, plan: dict[str, Any]
) -> dict[str, Any]:
    """Call `function` with gradients sharded over data, over both dimensions, and as by the wrappers."""
    model = nn.Module()
    for i, (gradient, cut) in enumerate(plan["gradients"]):
        if cut is None:
            layer = nn.Linear(gradient.shape[1], gradient.shape[0], bias=False)
            layer.weight = nn.Parameter(gradient.clone())
            parallelize_module(layer, mesh["tensor"], ColwiseParallel())
            fully_shard(layer, mesh=mesh["data"])
            # its placements have a private kind, so it is a copy of a weight that the wrappers have sharded
            layer.weight.grad = layer.weight.detach().clone()
            model.add_module(f"p{i}", layer)
            continue
        line = mesh["data"] if len(cut) == 1 else mesh
        places = [Shard(dim) for dim in cut]
        parameter = nn.Parameter(distribute_tensor(torch.zeros_like(gradient), line, places))
        parameter.grad = distribute_tensor(gradient.clone(), line, places)
        model.register_parameter(f"p{i}", parameter)
    got = function(model, plan["limit"])
    return {
        "norm": _number(got),
        "gradients": copy_whole(p.grad for p in model.parameters() if p.grad is not None),
    }


def try_save(
    function: Callable[..., Any], mesh: DeviceMesh, plan: dict[str, Any]
) -> dict[str, Any]:
    """Save twice while the weights change, then load the newest checkpoint into a model with a new layout."""
    group, (first, second) = dist.new_group(), plan["saves"]
    folder = folder_of_script() / "steps"
    folder.mkdir(exist_ok=True)
    dist.barrier()
    writes = WriteRecorder(second)
    writes.group = group
    writes.watch()
    model = Bigrams(plan["table"])
    fully_shard(model, mesh=mesh["data"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    saving: Any = None
    returned = []
    for step in range(second):
        writes.calls.append(step)
        trainer.summed_loss(model, plan["windows"]).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step + 1 in (first, second):
            saved = copy_whole(model.parameters())
            earlier = saving if hasattr(saving, "result") else None
            saving = function(model, optimizer, step + 1, folder, group, earlier)
            returned.append(type(saving).__name__ if not hasattr(saving, "result") else "")
            is_synchronous = "main thread" in writes.observations
            if is_synchronous and hasattr(saving, "done") and not saving.done():
                # otherwise it would wait forever
                return {"returned": returned, "noted": ["main thread"]}
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(1.0)  # training continues
    if hasattr(saving, "result"):
        saving.result()
    writes.end()
    dist.barrier()
    told: dict[str, Any] = {
        "returned": returned,
        "noted": sorted(writes.observations - {"at the end"}),
        "writes": writes.writes_begun,
        "checkpoints": sorted(path.parent.name for path in folder.glob("*/.metadata")),
        "files": sorted(p.name for p in folder.iterdir()),
    }
    if not told["checkpoints"]:
        return told
    fresh = Bigrams(torch.zeros_like(plan["table"]))
    other = torch.optim.AdamW(fresh.parameters(), lr=0.01)
    try:
        told["done"] = trainer.load(fresh, other, folder)
    except (Exception, CheckpointException) as error:  # the answer wrote these files
        reasons = re.findall(r"\w+Error: .*", str(error)) or [type(error).__name__]
        return {**told, "error": reasons[-1][:300]}
    state = other.state[fresh.table]
    told["saved"], told["loaded"] = saved, copy_whole(fresh.parameters())
    told["optimizer steps"] = float(state["step"]) if "step" in state else -1.0
    return told


_TRIALS: dict[str, Callable[..., dict[str, Any]]] = {
    "share": try_share,
    "shard": try_shard,
    "backward": try_backward,
    "clip": try_clip,
    "save": try_save,
}
