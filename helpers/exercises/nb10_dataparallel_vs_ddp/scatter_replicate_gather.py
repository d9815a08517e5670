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
            more = " All rows went to one module. (torch's nn.DataParallel also does this if there's no GPU.)"
        return (
            f"the replicas' forwards received {_short_list(got['rows'])} rows; `x.chunk(workers)` returns "
            f"chunks of {_short_list(chunks)} rows, one for each replica.{more}"
        )
    if not got["together"]:
        return Finding(
            "the replicas didn't run at the same time: one replica's forward ended (or timed out) before "
            "another's began.",
            f"Start {plural(len(chunks), 'thread')}, and only then wait for the first result.",
        )
    if got["modules"] != len(chunks):
        return (
            "two threads used the same module object. Each thread needs a separate replica, for example "
            "because a forward may change the module's buffers: `deepcopy(module)`."
        )
    if got["memories"] != len(chunks) or not got["own_memory"]:
        return (
            "the replicas share memory with each other or with `module`. On GPUs, each replica needs a "
            "separate copy, so deepcopy the module and `clone()` every parameter, including biases, for "
            "each replica."
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
            "the rows are right, but in the wrong order. Threads finish in any order (here the last chunk "
            "finishes first), so gather the outputs in the order of the chunks."
        )
    if isinstance(got, torch.Tensor) and _has_some_chunks(got, wanted, chunks):
        return (
            f"the output has {plural(len(got), 'row')}, not {len(wanted)}: some workers' outputs are "
            "missing. Join every thread, and then gather the outputs of all workers."
        )
    if isinstance(got, torch.Tensor) and got.shape != wanted.shape:
        return (
            f"the output's shape is {tuple(got.shape)}, not {tuple(wanted.shape)}: concatenate the chunks' "
            "outputs along the rows with `torch.cat`."
        )
    return f"the output differs from `module(x)`: {problem}."


def _has_some_chunks(got: torch.Tensor, wanted: torch.Tensor, chunks: Sequence[int]) -> bool:
    """Return whether a tensor consists of the outputs of some chunks, but not of all chunks, in any order."""
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
        return "your function has added or removed parameters of `module`: change only the copies."
    trained = [name for name, grad in wanted.items() if grad is not None]
    if all(got[name] is None for name in trained):
        return (
            "the output is right, but the parameters of `module` get no gradient, because it stays in the "
            "copies. Use `functional_call` to run each replica with `p.clone()` of the module's "
            "parameters."
        )
    for name, grad in wanted.items():
        if grad is None and got[name] is not None:
            return f"`{name}` is frozen but got a gradient: don't change `requires_grad`."
        if grad is not None and (problem := difference(grad, got[name])):
            return (
                f"the output is right, but the gradient of `{name}` isn't: {problem}. It should be the sum "
                "over all replicas, so each replica must compute with a clone of the module's parameter."
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
