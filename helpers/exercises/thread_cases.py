"""The cases of `scatter_replicate_gather`, and what its replicas and its output must have been."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from helpers.exercises.compare import difference
from helpers.exercises.model import Case
from helpers.exercises.thread_programmes import Watched, rows
from helpers.ranks.failures import RankFailed
from helpers.ranks.run import Run
from helpers.views.plain import plural


def thread_cases(rng: random.Random) -> Iterator[Case]:
    """Give rows that divide and rows that do not, fewer rows than workers, and one worker."""
    for workers, count in ((2, 6), (3, 7), (4, 5), (3, 2), (1, 4)):
        plan = {"seed": rng.randrange(1 << 30), "workers": workers, "rows": count}
        yield Case(
            f"{plural(workers, 'worker')}, {count} rows",
            1,
            [(plan,)],
            [as_one_module(plan)],
            init=False,
        )


def as_one_module(plan: Mapping[str, Any]) -> Callable[[Any], str]:
    """Make the function that tells what is wrong with what `on_threads` found, or ""."""
    x, weights = rows(plan)
    module = Watched(plan["seed"])
    output = module(x)
    (output * weights).sum().backward()
    grads = {name: p.grad for name, p in module.named_parameters()}
    chunks = [len(part) for part in x.chunk(plan["workers"])]

    def find(got: Any) -> str:
        return (
            _replicas(got, chunks)
            or _output(got["output"], output.detach())
            or _gradients(got["grads"], grads)
        )

    return find


def look_at_replicas(case: Case, run: Run) -> str:
    """Say what an answer that crashed mostly took for granted."""
    if not isinstance(run.failure, RankFailed) or run.failure.error.kind != "IndexError":
        return ""
    (plan,) = case.inputs[0]
    count = len(rows(plan)[0].chunk(plan["workers"]))
    if count == plan["workers"]:
        return ""
    return (
        f"`x.chunk({plan['workers']})` of {plan['rows']} rows gives {plural(count, 'chunk')}: it can "
        "give fewer than it was asked for. Go through the chunks, not through `range(workers)`."
    )


def _replicas(got: Mapping[str, Any], chunks: list[int]) -> str:
    if not got["rows"]:
        return "no replica's forward was called: each thread calls one replica with its chunk."
    if got["rows"] != chunks:
        more = ""
        if got["rows"] == [sum(chunks)]:
            more = (
                " All rows went to one module. (torch's own nn.DataParallel does that too where "
                "there is no GPU.)"
            )
        return (
            f"the forwards got {_list(got['rows'])} rows; `x.chunk(workers)` gives chunks of "
            f"{_list(chunks)}, one for each replica.{more}"
        )
    if not got["together"]:
        return (
            "the replicas did not run at the same time: the forward of one had ended, or was given "
            f"up, before another's began. Start {plural(len(chunks), 'thread')}, and only then wait "
            "for the first result."
        )
    if len(set(got["modules"])) < len(chunks):
        return (
            "two threads were in the same module object. `functional_call` puts the parameters into "
            "the module for as long as its forward takes, so each thread needs a module of its own: "
            "`deepcopy(module)`."
        )
    if got["memories"] < len(chunks) or not all(got["own_memory"]):
        return (
            "replicas compute with the same memory. On a GPU each of them needs a copy of its own: "
            "`clone()` each parameter for each replica."
        )
    return ""


def _output(got: Any, wanted: torch.Tensor) -> str:
    if got is None:
        return "nothing comes back: return the gathered output."
    if isinstance(got, (list, tuple)):
        return "a list comes back: gather its parts with `torch.cat`."
    if not (problem := difference(wanted, got)):
        return ""
    alike = isinstance(got, torch.Tensor) and got.shape == wanted.shape
    if alike and all(any(torch.allclose(row, other) for other in wanted) for row in got):
        return (
            "the rows are right, but in another order. Threads end in any order (here the last chunk "
            "is the first to end): gather in the order of the chunks."
        )
    if isinstance(got, torch.Tensor) and got.shape[:1] != wanted.shape[:1]:
        return (
            f"the output's shape is {tuple(got.shape)}, not {tuple(wanted.shape)}: the chunks' outputs "
            "stand one behind the other, `torch.cat`."
        )
    return f"the output is not that of `module(x)`: {problem}."


def _gradients(got: Any, wanted: Mapping[str, torch.Tensor | None]) -> str:
    if got is None:
        return (
            "the output is right, but it has no graph, so backward cannot run. Leave out detach(), "
            "no_grad() and numpy."
        )
    if set(got) != set(wanted):
        return "`module` has other parameters afterwards than before: change the copies only."
    trained = [name for name, grad in wanted.items() if grad is not None]
    if all(got[name] is None for name in trained):
        return (
            "the output is right, but the parameters of `module` get no gradient: it stays in the "
            "copies. Let replicas compute with `p.clone()` of the module's own p, by `functional_call`."
        )
    for name, grad in wanted.items():
        if grad is None and got[name] is not None:
            return f"`{name}` is frozen and got a gradient: leave `requires_grad` as it is."
        if grad is not None and (problem := difference(grad, got[name])):
            return (
                f"the output is right, the gradient of `{name}` is not: {problem}. It is the sum over "
                "all replicas, each of which needs its link to the module's own parameter."
            )
    return ""


def _list(counts: list[int]) -> str:
    return ", ".join(map(str, counts[:8])) + (", ..." if len(counts) > 8 else "")
