"""Every kind of failure of ranks, caused for real."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist

from helpers.jobs.ports import free_port
from helpers.ranks import launcher
from helpers.ranks.failures import Deadlock, RankDied, RankFailed, RankTimeout
from helpers.ranks.launcher import launch


def failing(fn: Callable[[int, int], object], world_size: int = 3, **options: object) -> Exception:
    run = launch(fn, world_size, on_failure="return", **options)  # type: ignore[arg-type]
    assert run.failure is not None and run.failure.run is run
    return run.failure


def test_reports_exception_while_others_wait() -> None:
    def fail(rank: int, world_size: int) -> None:
        if rank == 1:
            {}["missing"]
        dist.barrier()

    failure = failing(fail)
    assert isinstance(failure, RankFailed)
    assert (failure.rank, failure.error.kind) == (1, "KeyError")
    assert failure.error.frames[-1].source.strip() == '{}["missing"]'
    assert all("helpers/" not in place.file for place in failure.error.frames)


@pytest.mark.extended
def test_reports_nothing_during_rank_termination() -> None:
    """If rank 0 ends first, a rank waiting for it may print a C++ stack trace and leave its call."""

    def join(rank: int, world_size: int) -> None:
        dist.init_process_group("gloo")

    for _ in range(3):
        env = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), "WORLD_SIZE": 5}
        run = launch(join, 4, init=False, env=env, on_failure="return")
        assert isinstance(run.failure, Deadlock)
        assert run.output == [""] * 4

    def receive(rank: int, world_size: int) -> None:
        dist.recv(torch.ones(1), src=(rank + 1) % world_size)

    for _ in range(3):
        run = launch(receive, 4, on_failure="return")
        assert isinstance(run.failure, Deadlock)
        assert [event.end_ns for event in run.trace] == [None] * 4


def test_first_failure_is_root_cause() -> None:
    def fail(rank: int, world_size: int) -> None:
        if rank == 2:
            raise ValueError("the cause")
        time.sleep(0.2)
        raise RuntimeError("another one")

    failure = failing(fail)
    assert isinstance(failure, RankFailed) and failure.rank == 2
    assert "the cause" in failure.title
    assert "rank 0 raised as well, RuntimeError: another one" in str(failure)


def test_reports_exited_peer_before_consequences() -> None:
    def fail(rank: int, world_size: int) -> None:
        if rank == 1:
            os._exit(3)
        dist.recv(torch.ones(1), 1)

    failure = failing(fail, 2)
    assert isinstance(failure, RankDied) and failure.rank == 1


def test_reports_mismatched_dtype_before_size() -> None:
    def talk(rank: int, world_size: int) -> None:
        if rank == 0:
            dist.send(torch.ones(1, dtype=torch.int64), 1)
        else:
            dist.recv(torch.ones(1), 0)

    failure = failing(talk, 2)
    assert isinstance(failure, RankDied)
    assert "sends int64" in str(failure) and "receives into float32" in str(failure)


def test_reports_equal_errors_once() -> None:
    failure = failing(lambda rank, n: 1 // 0)
    assert isinstance(failure, RankFailed) and failure.rank == 0
    assert "(the same on ranks 1, 2)" in str(failure)


def test_launch_raises_by_default() -> None:
    with pytest.raises(RankFailed) as caught:
        launch(lambda rank, n: 1 // 0, 2)
    assert caught.value.run is not None and not caught.value.run.ok


@pytest.mark.parametrize("code", [2, "a text"])
def test_reports_sys_exit_with_error_code(code: object) -> None:
    def leave(rank: int, world_size: int) -> None:
        if rank == 1:
            sys.exit(code)  # type: ignore[arg-type]
        dist.barrier()

    failure = failing(leave)
    assert isinstance(failure, RankFailed) and failure.error.kind == "SystemExit"


@pytest.mark.parametrize("code", [None, 0])
def test_ignores_sys_exit_without_error_code(code: object) -> None:
    run = launch(lambda rank, n: sys.exit(code), 2)  # type: ignore[arg-type]
    assert run.ok and run.values == [None, None]


def test_reports_exit_code_of_os_exit() -> None:
    def leave(rank: int, world_size: int) -> None:
        if rank == 1:
            os._exit(3)
        dist.barrier()

    failure = failing(leave)
    assert isinstance(failure, RankDied)
    assert (failure.rank, failure.signal, failure.exitcode) == (1, "", 3)


def test_reports_line_of_segmentation_fault() -> None:
    def crash(rank: int, world_size: int) -> None:
        if rank == 1:
            ctypes.string_at(0)
        dist.barrier()

    failure = failing(crash)
    assert isinstance(failure, RankDied)
    assert (failure.rank, failure.signal) == (1, "SIGSEGV")
    assert "ctypes.string_at(0)" in str(failure)


@pytest.mark.parametrize(
    ("number", "says"), [(signal.SIGKILL, "killed from outside"), (signal.SIGALRM, "A timer of")]
)
def test_reports_fatal_signal_of_rank(number: signal.Signals, says: str) -> None:
    def wait(rank: int, world_size: int) -> None:
        if rank == 1:
            os.kill(os.getpid(), number)
        dist.barrier()

    failure = failing(wait)
    assert isinstance(failure, RankDied)
    assert (failure.rank, failure.signal) == (1, number.name)
    assert says in str(failure)


def test_deadlock_mentions_handled_exception() -> None:
    def leave_by_finally(rank: int, world_size: int) -> None:
        try:
            if rank == 1:
                raise ValueError("bad\nsample")
            dist.all_reduce(torch.ones(1))
        finally:
            dist.barrier()

    failure = failing(leave_by_finally, 2)
    assert isinstance(failure, Deadlock)
    assert "while handling ValueError: bad sample" in str(failure)
    assert str(failure).count("handling") == 1


def test_oversized_message_abort_reports_both_calls() -> None:
    def mismatch(rank: int, world_size: int) -> None:
        if rank == 0:
            dist.send(torch.ones(5), 1)
        else:
            dist.recv(torch.ones(3), 0)

    failure = failing(mismatch, 2)
    assert isinstance(failure, RankDied)
    assert (failure.rank, failure.signal) == (1, "SIGABRT")
    assert "rank 0 sends 5 float32" in str(failure) and "receives into 3 float32" in str(failure)


def test_reports_nonexistent_peer() -> None:
    def talk(rank: int, world_size: int) -> None:
        if rank == 1:
            dist.send(torch.ones(1), 5)

    failure = failing(talk, 2)
    assert isinstance(failure, RankFailed) and failure.error.kind == "ValueError"
    assert "send names rank 5" in str(failure) and "only 2 ranks, 0 to 1" in str(failure)


def test_diagnoses_early_return() -> None:
    def early(rank: int, world_size: int) -> int | None:
        if rank == 2:
            return 5
        dist.barrier()
        return None

    failure = failing(early)
    assert isinstance(failure, Deadlock) and failure.diagnosis.kind == "rank_left"
    assert failure.diagnosis.guilty == (2,)
    assert failure.run is not None and failure.run.values[2] == 5


@pytest.mark.extended
def test_run_survives_frame_without_line_number() -> None:
    def count(rank: int, world_size: int) -> int:
        for i in range(10**7):
            if i == -1:  # while jumping back from here, the frame has no line number
                pass
        return rank

    assert launch(count, 2).values == [0, 1]


@pytest.mark.extended
def test_endless_loop_consumes_budget() -> None:
    def loop(rank: int, world_size: int) -> None:
        while rank == 1:
            pass
        dist.barrier()

    failure = failing(loop, timeout=1.5)
    assert isinstance(failure, RankTimeout)
    assert "in its own code" in failure.waits[1].state and failure.waits[0].call == "barrier"


def test_restarts_killed_rank_server() -> None:
    def slow(rank: int, world_size: int) -> None:
        time.sleep(20)

    launch(lambda rank, n: None, 1)
    server = launcher.connect().pid
    threading.Timer(0.5, os.kill, (server, signal.SIGKILL)).start()
    failure = failing(slow)
    assert isinstance(failure, RankDied) and "rank server was killed" in str(failure)
    run = launch(lambda rank, n: rank, 2)
    assert run.values == [0, 1] and "a new one was started" in run.notes[0]
    os.kill(launcher.connect().pid, signal.SIGKILL)
    run = launch(lambda rank, n: rank, 2)
    assert run.values == [0, 1] and "a new one was started" in run.notes[0]
    assert not launch(lambda rank, n: rank, 2).notes


def test_stop_ends_ranks_and_permits_relaunch() -> None:
    def hang(rank: int, world_size: int) -> None:
        time.sleep(60)

    threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt, match="all 3 ranks were terminated"):
        launch(hang, 3)
    assert launch(lambda rank, n: rank, 2).values == [0, 1]


@pytest.mark.extended
def test_reports_full_disk(tmp_path: object) -> None:
    """If the ranks' temp directory is full, joining the group fails with the reason."""
    import subprocess
    from pathlib import Path

    folder = Path(str(tmp_path)) / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount a small file system")
    try:
        script = (
            "import tempfile\n"
            "from helpers import launch, LaunchError, RankFailure\n"
            "import os\n"
            "def f(rank, n): return rank\n"
            "from helpers.ranks.launcher import connect, disconnect\n"
            "connect().wait_until_ready()\n"
            "import pathlib\n"
            "try:\n"
            "    pathlib.Path(tempfile.gettempdir(), 'fill').write_bytes(b'x' * (1 << 20))\n"
            "except OSError: pass\n"
            "try: launch(f, 2)\n"
            "except (LaunchError, RankFailure) as error: print(type(error).__name__, error)\n"
            "disconnect()\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.getcwd()},
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "No space left" in done.stdout, done.stdout + done.stderr
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def survives(rank: int, world_size: int, how: str) -> tuple[bool, float]:
    x = torch.ones(1)
    dist.all_reduce(x)
    if rank == 1 and how == "raises":
        raise ValueError("rank 1 gives up")
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError as error:
        time.sleep(1.5)  # longer than the grace period after a failure
        return "peer" in str(error), x.item()
    return False, x.item()


@pytest.mark.extended
@pytest.mark.parametrize(("how", "kind"), [("killed", RankDied), ("raises", RankFailed)])
def test_other_ranks_can_continue_after_failure(how: str, kind: type[Exception]) -> None:
    run = launch(survives, 3, args=(how,), on_failure="go on")
    assert run.values == [(True, 3.0), None, (True, 3.0)]
    assert isinstance(run.failure, kind)
    ended = launch(survives, 3, args=(how,), on_failure="return")
    assert ended.values == [None] * 3 and isinstance(ended.failure, kind)


def waits_for_the_dead(rank: int, world_size: int) -> None:
    if rank == 0:
        os._exit(3)
    if rank == 1:
        dist.recv(torch.empty(1), 2)
    else:
        dist.recv(torch.empty(1), 1)


def test_ends_survivors_of_dead_rank() -> None:
    run = launch(waits_for_the_dead, 3, on_failure="go on", timeout=20)
    assert isinstance(run.failure, RankDied) and run.seconds < 10


def leaves_a_bomb(rank: int, world_size: int) -> int:
    """Leave endlessly forking processes, each of which exits before it could be killed by its id."""
    if os.fork() == 0:
        os.setsid()
        for _ in range(30):
            if os.fork() == 0:
                end = time.monotonic() + 60
                while time.monotonic() < end and not os.fork():
                    pass
                os._exit(0)
        os._exit(0)
    time.sleep(0.2)
    return 0


@pytest.mark.extended
def test_ends_fork_bomb_left_by_rank() -> None:  # conftest's no_leaks fails if any is left
    assert launch(leaves_a_bomb, 2, init=False).values == [0, 0]


def save_and_fail(rank: int, world_size: int, folder: str) -> None:
    import torch.distributed.checkpoint as dcp

    dcp.load({"x": torch.zeros(2)}, checkpoint_id=folder)


@pytest.mark.extended
def test_checkpoint_errors_omit_tracebacks(tmp_path: object) -> None:
    with pytest.raises(RankFailed) as caught:
        launch(save_and_fail, 2, args=(str(tmp_path),))
    text = str(caught.value)
    assert "CheckpointException: on rank 0: " in text and ".metadata" in text
    assert "Traceback" not in text


class _Meta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise SystemExit(0)


class _Text(str):
    def __getitem__(self, key: object) -> str:
        raise SystemExit(0)

    __str__ = __add__ = __format__ = __len__ = __getitem__  # type: ignore[assignment]


class Odd(Exception, metaclass=_Meta):
    """Raises when any attribute is read, except those stored by Python itself."""

    def __getattribute__(self, name: str) -> object:
        raise SystemExit(0)

    def __str__(self) -> str:
        return _Text("its words")


def with_notes(notes: object) -> Exception:
    error = ValueError("its words")
    error.__notes__ = notes  # type: ignore[assignment]
    return error


def with_a_place(file: object, line: object) -> Exception:
    error = SyntaxError("its words")
    error.filename, error.lineno = file, line  # type: ignore[assignment]
    return error


ODD: dict[str, Callable[[], BaseException]] = {
    "notes that are not notes": lambda: with_notes(7),
    "notes without end": lambda: with_notes(iter(int, 1)),
    "a million notes": lambda: with_notes(["x" * 100] * 1_000_000),
    "notes of its own class": lambda: with_notes([_Text("a note"), Odd()]),
    "attributes that raise": Odd,
    "a place that does not exist": lambda: with_a_place(b"file", "line"),
    "a place at a line that does not exist": lambda: with_a_place("file", object()),
}


@pytest.mark.extended
@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_reports_exceptions_with_odd_attributes(make: Callable[[], BaseException]) -> None:
    def fail(rank: int, world_size: int) -> None:
        raise make() from (Odd() if rank else None)

    failure = failing(fail, 2)
    assert isinstance(failure, RankFailed), failure
    assert failure.error.kind in {"ValueError", "Odd", "SyntaxError"}
    assert failure.error.message.startswith("its words")
    assert len(failure.error.message) <= 20_000


@pytest.mark.extended
def test_shows_package_line_after_learner_code() -> None:
    def reads(rank: int, world_size: int) -> None:
        import nbformat

        nbformat.reads("{}", 4)  # type: ignore[no-untyped-call]

    def reshapes(rank: int, world_size: int) -> None:
        torch.ones(3).reshape(2, 2)

    failure = launch(reads, 2, on_failure="return").failure
    assert isinstance(failure, RankFailed) and failure.error.inside is not None
    assert failure.error.inside.cell.startswith("nbformat/")
    lines = str(failure).splitlines()
    assert lines[-2].startswith("  nbformat/") or lines[-3].startswith("  nbformat/")
    failure = launch(reshapes, 2, on_failure="return").failure
    assert isinstance(failure, RankFailed) and failure.error.inside is None


def test_groups_equal_waits_after_guilty_ranks() -> None:
    def stuck(rank: int, world_size: int) -> None:
        if rank in {5, 6}:
            dist.recv(torch.ones(1), 11 - rank)
        dist.barrier()

    failure = launch(stuck, 12, on_failure="return").failure
    assert isinstance(failure, Deadlock)
    one, other, rest = str(failure).splitlines()[1:4]
    assert one.startswith("  rank 5: recv of 1 float32 from rank 6") and other.startswith(
        "  rank 6: recv"
    )
    assert rest.startswith("  ranks 0 to 4, 7 to 11: barrier")
    assert len(failure.waits) == 12


def test_explains_peer_departed_from_group() -> None:
    def leaves(rank: int, world_size: int) -> None:
        if rank == 0:
            dist.destroy_process_group()
        else:
            dist.recv(torch.ones(1), 0)

    failure = launch(leaves, 2, on_failure="return").failure
    assert isinstance(failure, RankFailed) and "Rank 0 has" in str(failure)
