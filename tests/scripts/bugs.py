"""Thirty ordinary bugs, each a small edit of a script, and the lines that an explanation must name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.scripts.shapes import SHAPES, Ending, Shape

HANG, SILENT, CRASH = "hang", "silent", "crash"


@dataclass(frozen=True)
class Bug:
    """A bug.

    Attributes:
        kind: "hang", "silent" or "crash".
        edits: Parts of the script, each with the text that replaces it.
        lines: Parts of the lines that an explanation must name, all of them.
        rank: The rank that it must name; None if all ranks have the same fault.
    """

    kind: str
    script: str
    about: str
    edits: tuple[tuple[str, str], ...]
    lines: tuple[str, ...]
    rank: int | None = None

    @property
    def shape(self) -> Shape:
        return next(shape for shape in SHAPES if shape.name == self.script)

    def text(self) -> str:
        """Return the script with the bug. Raise ValueError if an edit does not fit exactly once."""
        text = self.shape.text
        for old, new in self.edits:
            if text.count(old) != 1:
                raise ValueError(f"{self.about}: {old!r} occurs {text.count(old)} times")
            text = text.replace(old, new)
        return text

    def line_numbers(self) -> list[int]:
        lines = self.text().splitlines()
        numbers = [[i for i, line in enumerate(lines, 1) if part in line] for part in self.lines]
        if not all(numbers):
            raise ValueError(f"{self.about}: no line for one of {self.lines}")
        return [found[0] for found in numbers]

    def is_named(self, ending: Ending) -> tuple[bool, bool]:
        """Return whether the text names the rank, and whether it names all lines."""
        text, name = ending.text, re.escape(Path(f"{self.script}.py").name)
        has_lines = all(
            re.search(rf'{name}"?, line {number}\b', text) for number in self.line_numbers()
        )
        rank = (
            r"\[?rank ?\d+|ranks \d+"
            if self.rank is None
            else rf"rank ?{self.rank}\b|ranks? [\d, and]*\b{self.rank}\b"
        )
        return bool(re.search(rank, text, re.IGNORECASE)), has_lines


def _bug(
    kind: str,
    script: str,
    about: str,
    *edits: tuple[str, str],
    lines: tuple[str, ...],
    rank: int | None = None,
) -> Bug:
    return Bug(kind, script, about, edits, lines, rank)


BUGS = (
    # hangs
    _bug(
        HANG,
        "eval_rank0",
        "barrier inside `if rank == 0`",
        (
            "\n        dist.barrier()\n    dist.destroy",
            "\n            dist.barrier()\n    dist.destroy",
        ),
        lines=("            dist.barrier()", "loss = (model(x)"),
        rank=0,
    ),
    _bug(
        HANG,
        "hf_loop",
        "metrics gathered on the main process only",
        (
            "            metrics = self.evaluate()\n            if self.is_main_process:\n",
            "            if self.is_main_process:\n                metrics = self.evaluate()\n",
        ),
        lines=("dist.all_gather(parts, tensor)",),
        rank=0,
    ),
    _bug(
        HANG,
        "nanogpt",
        "barrier that depends on the local loss",
        (
            "    if mean < best:\n        best = mean\n",
            "    if total < best:\n        best = total\n",
        ),
        ("best = 1e9", "best = 1e9 if rank == 0 else -1e9"),
        lines=("dist.barrier()",),
        rank=0,
    ),
    _bug(
        HANG,
        "sampler",
        "ranks with different numbers of batches, then a metric",
        (
            "    for inputs, targets in loader:\n",
            "    for number, (inputs, targets) in enumerate(loader):\n"
            "        if number == 3 - rank:\n            break\n",
        ),
        lines=("loss.backward()", "dist.all_reduce(total)"),
    ),
    _bug(
        HANG,
        "pipeline",
        "a stage receives in a different order",
        (
            "        if not is_last:\n            dist.send(output.detach(), dst=rank + 1)\n",
            "        if not is_last:\n            dist.recv(torch.empty(5, WIDTH), src=rank + 1)\n"
            "            dist.send(output.detach(), dst=rank + 1)\n",
        ),
        lines=("dist.recv(received, src=rank - 1)", "dist.recv(torch.empty(5, WIDTH)"),
        rank=0,
    ),
    _bug(
        HANG,
        "subgroups",
        "a mean over a group, for which only one member asks",
        (
            "    dist.all_reduce(loss.detach_(), op=dist.ReduceOp.AVG, group=group)\n"
            "    if rank == team * half:\n",
            "    if rank == team * half:\n"
            "        dist.all_reduce(loss.detach_(), op=dist.ReduceOp.AVG, group=group)\n",
        ),
        lines=("dist.all_reduce(loss.detach_()",),
        rank=0,
    ),
    _bug(
        HANG,
        "rl_roles",
        "the learner expects one round more",
        ("for number in range(ROUNDS):", "for number in range(ROUNDS + 1):"),
        lines=("dist.recv(rollout, src=actor)", "dist.barrier()"),
        rank=0,
    ),
    _bug(
        HANG,
        "async_ops",
        "each rank broadcasts from itself",
        ("dist.broadcast(settings, src=0)", "dist.broadcast(settings, src=rank)"),
        ("    energy = field", "    dist.barrier()\n    energy = field"),
        lines=("dist.broadcast(settings, src=rank)",),
    ),
    _bug(
        HANG,
        "resume",
        "barrier after a print on rank 0",
        (
            '            print(f"step {step}: {loss.item():.4f}")\n',
            '            print(f"step {step}: {loss.item():.4f}")\n            dist.barrier()\n',
        ),
        lines=("            dist.barrier()", "loss = (ddp(x)"),
        rank=0,
    ),
    _bug(
        HANG,
        "scheduler",
        "early stopping by the local loss",
        (
            "    patience = 0 if value < best else patience + 1\n",
            "    patience = 0 if loss.item() < best else patience + 1\n",
        ),
        ("    best = min(best, value)", "    best = min(best, loss.item() / (1 + 9 * rank))"),
        lines=("dist.barrier()", "loss.backward()"),
    ),
    _bug(
        HANG,
        "tensor_parallel",
        "rank 0 evaluates a tensor parallel model",
        (
            '        print(f"step {step}: {loss.item():.4f}")',
            '        print(f"step {step}: {model(x).sum().item():.4f}")',
        ),
        lines=("return self.second(",),
        rank=0,
    ),
    _bug(
        HANG,
        "logging_args",
        "an error that is caught on one rank",
        (
            '        value = float(json.loads(records[step])["value"])\n    except json.JSONDecodeError:\n'
            '        logger.warning("record %d is broken", step)\n        value = 0.0\n',
            '        value = float(json.loads(records[step].replace(": 2", ": 2" + "}" * rank))["value"])\n'
            '    except json.JSONDecodeError:\n        logger.warning("record %d is broken", step)\n'
            "        continue\n",
        ),
        lines=("dist.all_reduce(gradient", "dist.barrier()"),
        rank=0,
    ),
    # silent faults
    _bug(
        SILENT,
        "sampler",
        "no sampler: each rank draws from all samples",
        (
            "loader = DataLoader(dataset, batch_size=8, sampler=sampler)",
            "loader = DataLoader(dataset, batch_size=8, shuffle=True)",
        ),
        lines=("loss = (model(inputs)",),
    ),
    _bug(
        SILENT,
        "sampler",
        "forgotten set_epoch",
        ("    sampler.set_epoch(epoch)\n", ""),
        lines=("for inputs, targets in loader:",),
    ),
    _bug(
        SILENT,
        "resume",
        "a checkpoint loaded on rank 0 after DDP",
        (
            "    if checkpoint is not None:\n"
            '        model.load_state_dict(checkpoint["model"])\n    ddp = DDP(model)\n',
            "    ddp = DDP(model)\n    if checkpoint is not None and rank == 0:\n"
            '        model.load_state_dict(checkpoint["model"])\n',
        ),
        lines=('model.load_state_dict(checkpoint["model"])',),
        rank=0,
    ),
    _bug(
        SILENT,
        "ema",
        "different weights at the start",
        ("torch.manual_seed(11)", "torch.manual_seed(11 + rank)"),
        lines=("dist.all_reduce(parameter.grad)",),
    ),
    _bug(
        SILENT,
        "accumulate",
        "no_sync around all micro-batches",
        ("is_last = micro_batch == MICRO_BATCHES - 1", "is_last = micro_batch == MICRO_BATCHES"),
        lines=("optimizer.step()",),
    ),
    _bug(
        SILENT,
        "async_ops",
        "a reduction that is never waited for",
        ("    summing.wait()\n", ""),
        lines=("summing = dist.all_reduce(energy, async_op=True)",),
    ),
    _bug(
        SILENT,
        "async_ops",
        "a buffer changed while isend runs",
        ("    for work in works:\n", "    outgoing *= 0.5\n    for work in works:\n"),
        lines=("dist.isend(outgoing[1:], right, tag=1)",),
    ),
    _bug(
        SILENT,
        "scheduler",
        "a scheduler that follows the local loss",
        ("    scheduler.step(value)", "    scheduler.step(loss.item())"),
        lines=("optimizer.step()",),
    ),
    _bug(
        SILENT,
        "ema",
        "clipping before the reduction",
        (
            "    average_gradients()\n    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)\n",
            "    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)\n    average_gradients()\n",
        ),
        lines=("torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)",),
    ),
    _bug(
        SILENT,
        "eval_rank0",
        "a loss divided by the world size under DDP",
        ("            loss.backward()", "            (loss / dist.get_world_size()).backward()"),
        lines=("(loss / dist.get_world_size()).backward()",),
    ),
    # crashes
    _bug(
        CRASH,
        "logging_args",
        "float64 on one rank",
        (
            "    gradient = weight - value - rank\n",
            "    gradient = weight - value - rank\n    if rank == 1:\n        gradient = gradient.double()\n",
        ),
        lines=("dist.all_reduce(gradient",),
        rank=1,
    ),
    _bug(
        CRASH,
        "fsdp_loop",
        "a key that one rank's samples lack",
        (
            '    return {"x": x, "y": x.flip(-1)}',
            '    return {"x": x, "y": x.flip(-1)} if rank == 0 else {"x": x}',
        ),
        lines=('loss = (model(batch["x"])',),
        rank=1,
    ),
    _bug(
        CRASH,
        "recipe",
        "a file that one rank looks for elsewhere",
        (
            "        saved = torch.load(self.path)",
            '        saved = torch.load(self.path + "1" * dist.get_rank())',
        ),
        lines=("saved = torch.load(self.path",),
        rank=1,
    ),
    _bug(
        CRASH,
        "loader_workers",
        "a worker that fails on one rank",
        (
            "        image[0, index % 6] += 1.0\n",
            "        image[0, index % 6] += 1.0\n"
            '        if index == 7:\n            raise OSError("image 7 is broken")\n',
        ),
        lines=("for images, labels in loader:", 'raise OSError("image 7 is broken")'),
    ),
    _bug(
        CRASH,
        "subgroups",
        "gather_list on all ranks",
        ("for _ in range(world_size)] if rank == 0 else None", "for _ in range(world_size)]"),
        lines=("dist.gather(loss.reshape(1), gathered, dst=0)",),
        rank=1,
    ),
    _bug(
        CRASH,
        "gan",
        "parameters that one rank does not use",
        (
            "generator = DDP(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)))",
            "class Maker(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            "        self.first, self.extra = nn.Linear(4, 2), nn.Linear(2, 2)\n\n"
            "    def forward(self, x):\n        return self.first(x)\n\n\ngenerator = DDP(Maker())",
        ),
        lines=("fake = generator(noise)",),
    ),
    _bug(
        CRASH,
        "autocast",
        "a rank that the system kills",
        (
            "    optimizer.step()\n",
            "    optimizer.step()\n    if step == 2 and rank == 1:\n        os.kill(os.getpid(), 9)\n",
        ),
        lines=("loss.backward()",),
        rank=1,
    ),
    _bug(
        CRASH,
        "nanogpt",
        "a parameter that one rank freezes",
        ("model = DDP(model)\n", "model.head.bias.requires_grad_(rank == 0)\nmodel = DDP(model)\n"),
        lines=("model = DDP(model)",),
    ),
)
