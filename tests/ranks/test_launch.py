"""launch() on real ranks: its results, and the objects that it sends."""

from __future__ import annotations

import os
import random
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist

from helpers.ranks.failures import CannotSend, LaunchError, RankFailed, Stopped
from helpers.ranks.launcher import connect, disconnect, launch
from helpers.ranks.world import MAX_OUTPUT
from helpers.trace.log import Logs


def total(rank: int, world_size: int, x: float = 1.0) -> torch.Tensor:
    t = torch.full((3,), x * (rank + 1))
    dist.all_reduce(t)
    return t


@pytest.mark.extended
@pytest.mark.extended
@pytest.mark.extended
@pytest.mark.parametrize(
    "world_size",
    [pytest.param(1, marks=pytest.mark.extended), 3, pytest.param(8, marks=pytest.mark.extended)],
)
def test_all_ranks_share_one_group(world_size: int) -> None:
    run = launch(total, world_size)
    expected = torch.full((3,), world_size * (world_size + 1) / 2)
    assert all(torch.equal(value, expected) for value in run.values)
    assert run.ok and len(run.values) == world_size


@pytest.mark.extended
def test_sums_over_lazy_connections() -> None:
    assert launch(total, 32).values[31][0] == 32 * 33 / 2


def test_passes_common_and_individual_arguments() -> None:
    def return_arguments(rank: int, world_size: int, a: str, b: int) -> tuple[int, str, int]:
        return rank, a, b

    run = launch(return_arguments, 3, args=("x",), per_rank=[(10,), (11,), (12,)])
    assert run.values == [(0, "x", 10), (1, "x", 11), (2, "x", 12)]


def test_ranks_run_closures_lambdas_and_classes() -> None:
    factor = 7

    class Scale:
        def __init__(self, by: int) -> None:
            self.by = by

        def __call__(self, x: int) -> int:
            return x * self.by

    scale = Scale(factor)
    assert launch(lambda rank, n: scale(rank) + factor, 2).values == [7, 14]


def test_sets_common_and_individual_environments() -> None:
    def read(rank: int, world_size: int) -> tuple[str | None, str]:
        return os.environ.get("COLOUR"), os.environ["RANK"]

    assert launch(read, 2, env={"COLOUR": "red"}).values == [("red", "0"), ("red", "1")]
    assert launch(read, 2, env=[{"COLOUR": "a"}, {}]).values == [("a", "0"), (None, "1")]


def test_reads_c10d_debug_level_each_launch() -> None:
    def level(rank: int, world_size: int) -> str:
        return str(dist.get_debug_level())

    assert launch(level, 1, env={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}).values[0].endswith("DETAIL")
    assert launch(level, 1).values[0].endswith("OFF")


def test_launch_without_init_creates_no_group() -> None:
    def joined(rank: int, world_size: int) -> bool:
        return dist.is_initialized()

    assert launch(joined, 2, init=False).values == [False, False]
    assert launch(joined, 2).values == [True, True]


def test_rank_resembles_fresh_process() -> None:
    def read_environment(rank: int, world_size: int) -> tuple[object, ...]:
        import sys

        fds = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))
        return (
            random.random(),
            float(np.random.rand()),
            (float(torch.rand(1)), torch.initial_seed()),
            torch.get_num_threads(),
            tempfile.gettempdir(),
            fds,
            sorted(name for name in sys.modules["__main__"].__dict__ if not name.startswith("__")),
            os.getsid(0) == os.getpid(),
        )

    first, second = (launch(read_environment, 2, init=False).values for _ in range(2))
    values = [*first, *second]
    assert len({v[0] for v in values}) == 4, "python's random state is shared"
    assert len({v[1] for v in values}) == 4, "numpy's random state is shared"
    assert len({v[2] for v in values}) == 4, "torch's random state is shared"
    assert all(v[3] == 1 for v in values)
    assert {v[4] for v in values} == {tempfile.gettempdir()}, "not one temp directory for all"
    # 0, 1, 2; its channel; its log; the file for fatal signals; the listing itself
    assert all(len(v[5]) <= 7 for v in values), values[0][5]
    assert all(v[6] == [] for v in values), "names that no cell has defined"
    assert all(v[7] for v in values)


def test_returns_values_of_many_kinds() -> None:
    def give(rank: int, world_size: int) -> dict[str, object]:
        return {
            "tensor": torch.arange(3, dtype=torch.bfloat16),
            "nested": [(1, None), {"a": {2.5}}],
            "array": np.eye(2),
            "numbers": (float("inf"), 2**100, 1j),
            "text": "é\n",
            "bytes": b"\x00\xff",
            "dtype": torch.float16,
        }

    value = launch(give, 1).values[0]
    assert torch.equal(value["tensor"], torch.arange(3, dtype=torch.bfloat16))
    assert value["nested"] == [(1, None), {"a": {2.5}}]
    assert np.array_equal(value["array"], np.eye(2))
    assert value["numbers"] == (float("inf"), 2**100, 1j)
    assert (value["text"], value["bytes"], value["dtype"]) == ("é\n", b"\x00\xff", torch.float16)


@pytest.mark.extended
def test_returns_200_megabytes() -> None:
    def give(rank: int, world_size: int) -> torch.Tensor:
        return torch.arange(50_000_000, dtype=torch.int32)

    value = launch(give, 1).values[0]
    assert value.numel() * 4 == 200_000_000 and int(value[-1]) == 49_999_999


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: os, "value is a module"),
        (lambda: socket.socket(), "a socket.socket"),
        (lambda: {"model": [torch.nn.Linear(1, 1)]}, r"value\['model'\]\[0\] is .*state_dict"),
        (lambda: lambda: 1, "a function. Return what it computes"),
    ],
)
def test_reports_unreturnable_part_of_value(make: object, names: str) -> None:
    with pytest.raises(RankFailed, match=names) as caught:
        launch(lambda rank, n: make(), 2)  # type: ignore[operator]
    assert caught.value.error.kind == "CannotReturn"


def test_reports_unsendable_variable() -> None:
    with socket.socket() as connection:
        with pytest.raises(CannotSend, match="connection cannot be sent .* socket") as caught:
            launch(lambda rank, n: connection.fileno(), 2)
        assert caught.value.name == "connection"
        with pytest.raises(CannotSend, match=r"args\[1\]"):
            launch(lambda rank, n, a, b: a, 2, args=(1, connection))
        with pytest.raises(CannotSend, match=r"per_rank\[1\]\[0\]"):
            launch(total, 2, per_rank=[(1.0,), (connection,)])


@pytest.mark.parametrize(
    ("world_size", "says"),
    [
        (0, "from 1 to"),
        (-1, "from 1 to"),
        (10_000, "from 1 to"),
        ("4", "Write 4"),
        (2.0, "a float"),
        (True, "a bool"),
        (None, "NoneType"),
    ],
)
def test_refuses_impossible_world_sizes(world_size: object, says: str) -> None:
    with pytest.raises(LaunchError, match=says):
        launch(total, world_size)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"per_rank": [(1,)]}, "one tuple of arguments for each of 2 ranks; got 1"),
        ({"per_rank": [1, 2]}, r"per_rank\[0\] must be a tuple"),
        ({"args": 5}, "args must be a tuple"),
        ({"env": [{}]}, "one mapping for each of 2"),
        ({"backend": "mpi"}, "'auto', 'gloo' or 'nccl'"),
        ({"on_failure": "ignore"}, "'return' or 'go on'"),
    ],
)
def test_refuses_impossible_options(options: dict[str, object], says: str) -> None:
    with pytest.raises(LaunchError, match=says):
        launch(total, 2, **options)  # type: ignore[arg-type]


def test_rejects_call_result_as_function() -> None:
    with pytest.raises(LaunchError, match="launch\\(f\\), not launch\\(f\\(\\)\\)"):
        launch(5, 2)  # type: ignore[arg-type]


def test_rejects_nccl_without_gpus() -> None:
    if torch.cuda.device_count() >= 2:
        pytest.skip("there are GPUs enough")
    with pytest.raises(LaunchError, match="NCCL needs one GPU for each rank"):
        launch(total, 2, backend="nccl")


def test_preserves_output_order_across_layers() -> None:
    def talk(rank: int, world_size: int) -> None:
        for i in range(100):
            print("line", i)
        os.write(1, b"from the descriptor\n")
        os.write(2, b"from stderr\n")

    run = launch(talk, 3)
    lines = [*(f"line {i}" for i in range(100)), "from the descriptor", "from stderr"]
    assert [output.splitlines() for output in run.output] == [lines] * 3


@pytest.mark.extended
def test_truncated_output_keeps_both_ends() -> None:
    def flood(rank: int, world_size: int) -> str:
        if rank == 0:
            for i in range(200_000):
                print(f"{i:>9} " + "é" * 35)  # invalid text if cut in the middle of a letter
        dist.barrier()
        print("the last line")
        return "done"

    run = launch(flood, 2)
    assert run.values == ["done", "done"] and run.output[1] == "the last line\n"
    lines = run.output[0].splitlines()
    assert lines[0].split()[0] == "0" and lines[-1] == "the last line"
    gap = next(i for i, line in enumerate(lines) if line.startswith("..."))
    assert [int(line.split()[0]) for line in lines[:gap]] == list(range(gap))
    rest = [int(line.split()[0]) for line in lines[gap + 1 : -1]]
    assert rest == list(range(rest[0], 200_000))
    left_out = (rest[0] - gap) * len(f"{0:>9} {'é' * 35}\n".encode())
    assert lines[gap].startswith(f"... ({left_out:,} bytes omitted here")
    assert MAX_OUTPUT * 0.99 < len(run.output[0].encode()) < MAX_OUTPUT + 200


def test_truncates_single_endless_line() -> None:
    def flood(rank: int, world_size: int) -> None:
        print("a" * 80_000 + "b" * 80_000, end="")

    first, gap, last = launch(flood, 1).output[0].split("\n")
    assert (first, last) == ("a" * 50_000, "b" * 50_000) and "(60,000 bytes omitted" in gap


def test_rejects_launch_inside_rank() -> None:
    def nested(rank: int, world_size: int) -> None:
        launch(total, 2)

    with pytest.raises(RankFailed, match="inside a rank"):
        launch(nested, 1)


def test_ends_child_processes_with_rank() -> None:
    import psutil

    def daemonise(rank: int, world_size: int) -> int:
        import subprocess

        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        return child.pid

    pids = launch(daemonise, 2).values
    deadline = time.monotonic() + 5  # successful ranks exit in the background
    while [pid for pid in pids if psutil.pid_exists(pid)]:
        assert time.monotonic() < deadline, "a daemon has outlived its rank"
        time.sleep(0.02)


@pytest.mark.sample(1)
@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_stop_during_close_releases_everything(
    before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Press Stop when only half of the world's resources are closed."""
    really_close = Logs.close
    presses = [signal.SIGINT]

    def close(logs: Logs) -> None:
        if before and presses:
            signal.raise_signal(presses.pop())
        really_close(logs)
        if presses:
            signal.raise_signal(presses.pop())

    monkeypatch.setattr(Logs, "close", close)
    with pytest.raises(Stopped):
        launch(total, 3)
    assert not presses
    assert launch(total, 3).ok


def compiles(rank: int, world_size: int) -> None:
    torch.compile(torch.nn.Linear(2, 2))(torch.ones(1, 2))


@pytest.mark.extended
def test_stops_before_ranks_have_started() -> None:
    disconnect()  # A new server has not imported the compiler yet.
    connect().wait_until_ready()
    stop = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    stop.start()
    with pytest.raises(Stopped):
        launch(compiles, 2, timeout=60)
    assert launch(lambda rank, n: rank, 2, timeout=60).values == [0, 1]


def leaves_during_report(rank: int, world_size: int, path: str, pipe: str) -> None:
    from helpers.ranks import status

    report_begins, find_threads = os.open(pipe, os.O_RDWR), status.quiet_threads

    def slow(*threads: Any) -> Any:
        os.write(report_begins, b"x")
        time.sleep(1.0)
        return find_threads(*threads)

    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world_size)
    if rank == 0:
        status.quiet_threads = slow
    else:
        os.read(report_begins, 1)
    dist.barrier()
    dist.destroy_process_group()


@pytest.mark.extended
def test_report_in_progress_frees_objects_before_end(tmp_path: Path) -> None:
    """The last rank's FileStore removes the file, unless a report still refers to the store."""
    file, pipe = tmp_path / "meeting", tmp_path / "pipe"
    os.mkfifo(pipe)
    launch(leaves_during_report, 2, args=(str(file), str(pipe)), init=False, timeout=20)
    assert not file.exists()
