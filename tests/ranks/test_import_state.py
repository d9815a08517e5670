"""A module of torch has the same import state on a rank as in a new process, at each launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from helpers.ranks import launcher
from helpers.ranks.import_state import import_state
from helpers.ranks.launcher import disconnect, launch


@pytest.fixture(autouse=True)
def new_servers() -> Iterator[None]:
    """Begin and end without a rank server that has learned the imports of programs."""
    disconnect()
    yield
    disconnect()


def reads_at_import(rank: int, world_size: int) -> Any:
    import torch._dynamo.config as config

    return config.verbose


def sets_then_imports(rank: int, world_size: int) -> Any:
    import os

    os.environ["TORCHDYNAMO_VERBOSE"] = "1"
    import torch._dynamo.config as config

    return config.verbose


def replaces_then_imports(rank: int, world_size: int) -> bool:
    import torch.utils._traceback as source

    source.format_frame = lambda: None  # type: ignore[assignment]
    import torch.fx.experimental.symbolic_shapes as copies

    return copies.format_frame is source.format_frame  # type: ignore[attr-defined]


def imports_only(rank: int, world_size: int) -> bool:
    import importlib
    import sys

    name = "torch.fx.experimental.symbolic_shapes"
    there = name in sys.modules
    importlib.import_module(name)
    return there


def values(fn: Callable[..., Any], **options: Any) -> list[Any]:
    fn.__module__ = "__main__"  # sent like a cell's function
    return launch(fn, 2, init=False, timeout=120, **options).values


@pytest.mark.extended
def test_launch_applies_import_variables_each_time() -> None:
    seen = [values(reads_at_import, env={"TORCHDYNAMO_VERBOSE": "1"}) for _ in range(2)]
    assert seen == [[True, True]] * 2
    assert values(reads_at_import) == [False, False]


@pytest.mark.extended
def test_imports_see_earlier_settings_and_replacements() -> None:
    assert values(imports_only) == [False, False]
    assert values(imports_only) == [True, True]  # the server has learned it
    for program in (sets_then_imports, replaces_then_imports):
        assert [values(program) for _ in range(2)] == [[True, True]] * 2
    assert values(imports_only) == [True, True]


@pytest.mark.extended
def test_environment_variable_enables_torch_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    def compiles(rank: int, world_size: int) -> None:
        import torch

        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))

    def joins(rank: int, world_size: int) -> None:
        import torch.distributed as dist

        dist.init_process_group("gloo")

    for way in ("env", "kernel"):
        env = {"TORCH_LOGS": "+dynamo", "TORCH_CPP_LOG_LEVEL": "INFO"}
        if way == "kernel":
            for name, value in env.items():
                monkeypatch.setenv(name, value)
            env = {}
        assert "torchdynamo start" in launch(compiles, 1, env=env, timeout=120).output[0]
        run = launch(joins, 2, env=env, init=False, timeout=120)
        assert "client socket has connected" in run.output[0] and not run.notes
    assert len(launcher._own_server.other_servers) == 1


@pytest.mark.extended
def test_reports_variable_set_too_late() -> None:
    env = [{"TORCH_CPP_LOG_LEVEL": "INFO", "TORCH_DISTRIBUTED_DEBUG": "INFO"}, {}]
    (note,) = launch(lambda rank, n: rank, 2, env=env).notes
    assert note.startswith("TORCH_CPP_LOG_LEVEL has no effect")


@pytest.mark.extended
def test_limits_number_of_servers() -> None:
    for level in range(4):
        values(reads_at_import, env={"TORCH_SOME_LEVEL": str(level)})
    assert len(launcher._own_server.other_servers) == 2


@pytest.mark.parametrize(
    ("source", "in_ranks"),
    [
        ("import torch._dynamo", False),
        ("import os; os.environ['TORCH_DISTRIBUTED_DEBUG'] = 'DETAIL'", False),
        ("import os; os.environ['RANK'], os.environ['TORCHELASTIC_RUN_ID']", False),
        ("import torch\ntorch.backends.cudnn.benchmark = True", False),
        ("import os; os.environ['TORCHINDUCTOR_FREEZING'] = '1'", True),
        ("import torch\ntorch.x = 1\nimport torch.fx", True),
        ("def f():\n    setattr(m, 'x', 1)\n    from torch.fx import y", True),
    ],
)
def test_recognizes_programs_preparing_imports(source: str, in_ranks: bool) -> None:
    code = compile(source, "<cell>", "exec")
    assert import_state(code, source.encode()).in_ranks is in_ranks
