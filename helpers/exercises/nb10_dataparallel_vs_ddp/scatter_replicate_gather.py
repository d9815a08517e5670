"""10.1 DataParallel by hand (20 min, ●●●○○, further)

- Four lines are enough, one for each step. Through which of these steps must the gradient flow back?
- For each chunk, you need a `deepcopy(module)` and a dict of `p.clone()` by name. `functional_call(replica,
  parameters, (chunk,))` runs in a thread. Start all threads before waiting for the first.
- chunks = x.chunk(workers); for each of them (deepcopy(module), {name: p.clone() for name, p in
  module.named_parameters()}); with ThreadPoolExecutor(len(chunks)) as pool: outputs = pool.map(run,
  replicas, chunks); return torch.cat(list(outputs)).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from helpers.checks.author import *
from helpers.exercises.nb10_dataparallel_vs_ddp.in_ranks import (
    WatchedModule,
    plan_tensors,
    run_on_threads,
)


def case(draw: Draw) -> Case:
    workers = draw.of(1, 2, 3, 4)
    count = draw.of(workers * draw.whole(1, 4), workers * draw.whole(1, 3) + 1, max(1, workers - 1))
    plan = {"seed": draw.rng.randrange(1 << 30), "workers": workers, "rows": count}
    chunks = len(plan_tensors(plan)[0].chunk(workers))
    return Case(
        f"{plural(workers, 'worker')}, {count} rows",
        [(plan,)],
        right=judge_result(plan),
        like=dict.fromkeys(RESULT_KEYS),
        facts={"workers": workers, "rows": count, "chunks": chunks},
        init=False,
    )


RESULT_KEYS = ("output", "together", "grads", "rows", "modules", "own_memory", "memories")


def judge_result(plan: Mapping[str, Any]) -> Callable[[Any, int], Finding | str]:
    """Return the function that describes the problem with a result of `run_on_threads`, or returns ""."""
    x, weights = plan_tensors(plan)
    module = WatchedModule(plan["seed"])
    output = module(x)
    (output * weights).sum().backward()
    grads = {name: p.grad for name, p in module.named_parameters()}
    chunks = [len(part) for part in x.chunk(plan["workers"])]

    def judge(got: Any, rank: int) -> Finding | str:
        return (
            _check_replicas(got, chunks)
            or _check_output(got["output"], output.detach(), chunks)
            or _check_gradients(got["grads"], grads)
        )

    return judge


def _check_replicas(got: Mapping[str, Any], chunks: list[int]) -> Finding | str:
    if not got["rows"]:
        return "no replica's forward was called: each thread must call one replica with its chunk."
    if got["rows"] != chunks:
        more = ""
        if got["rows"] == [sum(chunks)]:
            more = (
                " All rows went to one module. (torch's own nn.DataParallel does that too where "
                "there is no GPU.)"
            )
        return (
            f"the forwards got {_short_list(got['rows'])} rows; `x.chunk(workers)` gives chunks of "
            f"{_short_list(chunks)}, one for each replica.{more}"
        )
    if not got["together"]:
        return Finding(
            "the replicas did not run at the same time: the forward of one had ended, or timed out, before "
            "another's began.",
            f"Start {plural(len(chunks), 'thread')}, and only then wait for the first result.",
        )
    if got["modules"] != len(chunks):
        return (
            "two threads were in the same module object. `functional_call` puts the parameters into "
            "the module for as long as its forward takes, so each thread needs a module of its own: "
            "`deepcopy(module)`."
        )
    if got["memories"] != len(chunks) or not got["own_memory"]:
        return (
            "replicas share memory with each other or with `module`. On a GPU each of them needs a copy of "
            "its "
            "own: deepcopy the module and `clone()` every parameter, biases too, for each replica."
        )
    return ""


def _check_output(got: Any, wanted: torch.Tensor, chunks: Sequence[int]) -> str:
    if got is None:
        return "nothing is returned: return the gathered output."
    if isinstance(got, (list, tuple)):
        return "a list is returned: concatenate its parts with `torch.cat`."
    if not (problem := difference(wanted, got)):
        return ""
    alike = isinstance(got, torch.Tensor) and got.shape == wanted.shape
    if alike and all(any(torch.allclose(row, other) for other in wanted) for row in got):
        return (
            "the rows are right, but in the wrong order. Threads end in any order (here the last chunk "
            "is the first to end): gather in the order of the chunks."
        )
    if isinstance(got, torch.Tensor) and _has_some_chunks(got, wanted, chunks):
        return (
            f"the output has {plural(len(got), 'row')}, not {len(wanted)}: these are outputs of some workers "
            "only. Gather the outputs of all workers, after waiting for each of them: join every thread."
        )
    if isinstance(got, torch.Tensor) and got.shape != wanted.shape:
        return (
            f"the output's shape is {tuple(got.shape)}, not {tuple(wanted.shape)}: concatenate the chunks' "
            "outputs along the rows, `torch.cat`."
        )
    return f"the output is not that of `module(x)`: {problem}."


def _has_some_chunks(got: torch.Tensor, wanted: torch.Tensor, chunks: Sequence[int]) -> bool:
    """Return whether a tensor consists of the outputs of some chunks, but not of all, in any order."""
    if got.shape[1:] != wanted.shape[1:] or not 0 < len(got) < len(wanted):
        return False
    missing, rest = list(wanted.split([*chunks])), got
    while len(rest):
        index = next(
            (
                index
                for index, part in enumerate(missing)
                if len(part) <= len(rest) and not difference(part, rest[: len(part)])
            ),
            None,
        )
        if index is None:
            return False
        rest = rest[len(missing.pop(index)) :]
    return True


def _check_gradients(got: Any, wanted: Mapping[str, torch.Tensor | None]) -> str:
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


def _short_list(counts: list[int]) -> str:
    return ", ".join(map(str, counts[:8])) + (", ..." if len(counts) > 8 else "")


EXERCISE = Exercise(
    case,
    kind=Kind.MODULE,
    driver=run_on_threads,
    reported=("together", "rows", "modules", "own_memory", "memories"),
    sizes=(1,),
)
