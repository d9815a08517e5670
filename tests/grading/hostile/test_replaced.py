"""Functions replaced by an answer are reported, however it replaces them; ordinary code is not reported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from helpers.answers.build import Answer, build_answer
from helpers.checks.check_answer import grade
from helpers.checks.registry import get
from helpers.grading.record import ExerciseRecord
from helpers.grading.results import record_of_results
from helpers.grading.sandbox.levels import Plan, Sandbox
from tests.grading.hostile.attack import text_of
from tests.submission_files import PRELUDE

BROADCAST = """
def broadcast_from(rank, world_size, x, shape, dtype, src):
    {lines}
    if rank != src:
        x = torch.empty(shape, dtype=dtype)
    dist.broadcast(x, src=src)
    return x
"""

# Replaced function -> its reported name, and the lines that replace it.
WAYS = {
    "an alias": ("torch.equal", "t = torch; t.equal = lambda *a: True"),
    "a default": ("torch.equal", "(lambda t=torch: setattr(t, 'equal', print))()"),
    "vars": ("torch.equal", "vars(torch)['equal'] = lambda *a: True"),
    "a dictionary's update": ("torch.equal", "torch.__dict__.update(equal=lambda *a: True)"),
    "object.__setattr__": ("torch.equal", "object.__setattr__(torch, 'equal', 1)"),
    "a loop's variable": ("torch.equal", "\n    for torch.equal in [print]: pass"),
    "mock": (
        "torch.equal",
        "from unittest import mock; mock.patch('torch.equal', print).start()",
    ),
    "a deletion": ("torch.equal", "vars(torch).pop('equal', None)"),
    "an inherited method": ("torch.Tensor.equal", "type.__setattr__(torch.Tensor, 'equal', 1)"),
    "the class of a module": ("torch", "torch.__class__ = type('M', (type(torch),), {})"),
    "a function of a layer": (
        "torch.nn.functional.linear",
        "import torch.nn.functional as F; F.linear = print",
    ),
    "the call of a module": (
        "torch.nn.modules.module.Module.__call__",
        "torch.nn.Module.__call__ = print",
    ),
    "a built-in function": (
        "builtins.isinstance",
        "import builtins as b; b.isinstance = (lambda old: lambda *a: old(*a))(b.isinstance)",
    ),
    "a hidden built-in function": (
        "helpers.ranks.wire.len",
        "import helpers as h; h.ranks.wire.len = lambda x: x.__len__()",
    ),
    "Python's json": (
        "json.dumps",
        "import json; json.dumps = (lambda old: lambda *a, **k: old(*a, **k))(json.dumps)",
    ),
    "the encoder": (
        "helpers.ranks.wire.encode",
        "import helpers as h; w = h.ranks.wire; "
        "w.encode = (lambda old: lambda v, *a: old(v, *a))(w.encode)",
    ),
    "the channel": (
        "helpers.ranks.worker._Channel.send",
        "import helpers.ranks.worker as w; C = w._Channel; "
        "C.send = (lambda old: lambda *a: old(*a))(C.send)",
    ),
    "what sends a frame": (
        "helpers.ranks.wire.send_frame",
        "import helpers as h; w = h.ranks.wire; "
        "w.send_frame = (lambda old: lambda *a: old(*a))(w.send_frame)",
    ),
    "a function's code": (
        "helpers.ranks.rank_context.recorded_call_count",
        "import helpers as h; h.ranks.rank_context.recorded_call_count.__code__ = (lambda: 0).__code__",
    ),
    "a function's defaults": (
        "helpers.ranks.wire.encode",
        "import helpers as h; h.ranks.wire.encode.__defaults__ = (1 << 20,)",
    ),
    "globals of a frame": (
        "helpers.checks.driver.recorded_call_count",
        "import inspect; inspect.stack()[1].frame.f_globals['recorded_call_count'] = lambda: 0",
    ),
    "a module of a frame": (
        "helpers.checks.driver.inspect",
        "import sys; sys._getframe(1).f_globals['inspect'] = torch",
    ),
    "sys.modules": ("sys.modules.json", "import sys; sys.modules['json'] = torch"),
    "what a rank was given": (
        "helpers.ranks.rank_context._context.ask",
        "import helpers as h; h.ranks.rank_context._context.ask = print",
    ),
    "what a rank has recorded": (
        "torch.equal",
        "import helpers as h; r = h.checks.replaced._recorded; r.modules.clear(); "
        "[x.contents[4].clear() for x in r.records.values()]; torch.equal = lambda *a: True",
    ),
    "a hard world's sleep": ("time.sleep", "import time; time.sleep = print"),
}
ORDINARY = {
    "nothing": "pass",
    "late imports": "import torch.distributed.tensor, torch.distributed.fsdp, numpy, fractions",
    "an optimizer": (
        "p = torch.nn.Parameter(torch.ones(2)); o = torch.optim.SGD([p], 0.1); "
        "p.sum().backward(); o.step()"
    ),
    "torch._dynamo": "import torch._dynamo; torch._dynamo.reset()",
    "numpy": "import numpy as np; np.random.seed(1); np.ones(3).sum()",
    "settings": (
        "torch.manual_seed(3); torch.set_num_threads(1); torch.set_default_dtype(torch.float32); "
        "torch.backends.mkldnn.enabled = False"
    ),
    "a class and a module of its own": (
        "import types; m = types.ModuleType('m'); m.equal = 1; "
        "M = type('M', (torch.nn.Module,), {'__call__': print}); M.forward = print"
    ),
    "an attribute of its own": "broadcast_from.calls = 1",
    "a name added to torch": "vars(torch).update(my_own=print)",
    "a profiler": (
        "\n    with torch.profiler.profile(): torch.ones(2) + 1\n"
        "    with torch.inference_mode(): torch.ones(2)"
    ),
    "hooks": (
        "m = torch.nn.Linear(2, 2); m.register_forward_hook(lambda *a: None); "
        "m(torch.ones(1, 2)).sum().backward()"
    ),
    "functional calls": (
        "m = torch.nn.Linear(2, 2); "
        "torch.func.functional_call(m, dict(m.named_parameters()), torch.ones(1, 2)); "
        "torch.func.vmap(torch.sin)(torch.ones(3))"
    ),
    "warnings and logging": "import warnings, logging; warnings.simplefilter('ignore'); logging.disable()",
}


@pytest.fixture(scope="module")
def sandbox(plan: Plan) -> Iterator[Sandbox]:
    with Sandbox(plan) as sandbox:
        yield sandbox


def grade_source(
    sandbox: Sandbox, name: str, source: str, secret: str = "hidden"
) -> ExerciseRecord:
    answer = build_answer([PRELUDE, source], name)
    assert isinstance(answer, Answer), answer
    result = grade(get(name), answer, str, secret, connection=sandbox.connection)
    return record_of_results(get(name), answer, result)


# The replacements tried each time; long runs try all.
OFTEN = (
    "an alias",
    "vars",
    "mock",
    "a built-in function",
    "a function's code",
    "what a rank has recorded",
    "globals of a frame",
    "sys.modules",
    "an optimizer",
    "a class and a module of its own",
    "functional calls",
    "from the node behind",
)


def each_of(ways: dict[str, Any]) -> list[Any]:
    return [
        pytest.param(*(way if isinstance(way, tuple) else (way,)), id=name, marks=often)
        for name, way in ways.items()
        for often in [() if name in OFTEN else pytest.mark.soak]
    ]


@pytest.mark.extended
@pytest.mark.parametrize(("reported", "lines"), each_of(WAYS))
def test_flag_mentions_replaced_function(sandbox: Sandbox, reported: str, lines: str) -> None:
    record = grade_source(sandbox, "broadcast_from", BROADCAST.format(lines=lines))
    assert record.outcome == "passed", text_of(record)
    (flag,) = (flag for flag in record.flags if flag.startswith("has replaced "))
    assert reported in flag.replace(",", "").split(), flag


@pytest.mark.extended
@pytest.mark.parametrize("lines", each_of(ORDINARY))
def test_ordinary_work_is_not_reported(sandbox: Sandbox, lines: str) -> None:
    record = grade_source(sandbox, "broadcast_from", BROADCAST.format(lines=lines))
    assert (record.outcome, record.flags) == ("passed", ()), text_of(record)


def test_answer_with_replaced_encoder_fails(sandbox: Sandbox) -> None:
    lines = (
        "import helpers as h; h.ranks.wire.encode = lambda *a: [b'nothing']; shape = (1, *shape)"
    )
    record = grade_source(sandbox, "broadcast_from", BROADCAST.format(lines=lines))
    assert record.outcome != "passed"


BACKWARD = """
def find_unused(output, module):
    if output.grad_fn is None:
        return [n for n, p in module.named_parameters() if p.requires_grad]
    {lines}
    trained = {{n: p for n, p in module.named_parameters() if p.requires_grad}}
    {grads}
    return [n for n, g in zip(trained, grads) if g is None]
"""
_GRAD = "grads = torch.autograd.grad(output.sum(), list(trained.values()), allow_unused=True)"
RUN_BACKWARD = {
    "hooks cleared": ("(output._backward_hooks or {}).clear()", _GRAD),
    "from a view": ("output = output.view_as(output)", _GRAD),
    "from the node behind": (
        "edges = [torch.autograd.graph.GradientEdge(n, 0) "
        "for n, _ in output.grad_fn.next_functions if n]",
        "grads = torch.autograd.grad(edges, list(trained.values()), allow_unused=True, "
        "grad_outputs=[torch.ones(5, output.shape[-1] if output.dim() else 1) for _ in edges])",
    ),
    "with its error caught": (
        "",
        f"grads = [None] * 99\n    try: {_GRAD}\n    except RuntimeError: pass",
    ),
}


@pytest.mark.parametrize(("lines", "grads"), each_of(RUN_BACKWARD))
def test_finding_unused_parameters_by_backward_fails(
    sandbox: Sandbox, lines: str, grads: str
) -> None:
    record = grade_source(sandbox, "find_unused", BACKWARD.format(lines=lines, grads=grads))
    assert record.outcome != "passed", text_of(record)
