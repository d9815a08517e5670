"""`course run`: a script runs as under torchrun, and its end is explained."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from helpers.course.cli import main
from helpers.ranks.failures import Deadlock, LaunchError
from helpers.scripts.run_script import run_script

JOIN = "import os, sys, torch, torch.distributed as dist\ndist.init_process_group()\nrank = dist.get_rank()\n"
HANG = JOIN + "if rank == 0:\n    dist.barrier()\nelse:\n    dist.all_reduce(torch.ones(3))\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    return tmp_path


def course_run(*words: str) -> Result:
    return CliRunner().invoke(main, ["run", *words])


def run_text(folder: Path, text: str, *words: str, options: tuple[str, ...] = ()) -> Result:
    (folder / "train.py").write_text(text)
    return course_run(*options, "train.py", *words)


def test_script_environment_matches_torchrun(folder: Path) -> None:
    shown = "print(rank, sys.argv, __name__, __file__, sys.path[0], os.getcwd(), os.environ['LOCAL_RANK'])"
    result = run_text(folder, JOIN + shown, "--lr", "3", options=("--ranks", "4", "--nnodes", "2"))
    expected = {
        f"[rank {r}] {r} ['train.py', '--lr', '3'] __main__ {folder}/train.py {folder} {folder} {r % 2}"
        for r in range(4)
    }
    assert set(result.stdout.splitlines()) == expected
    assert result.exit_code == 0


def test_script_imports_its_own_helpers(folder: Path) -> None:
    (folder / "helpers.py").write_text("name = 'mine'\n")
    text = JOIN + (
        "import helpers\nnames = [None, None]\ndist.all_gather_object(names, helpers.name)\nprint(names)"
    )
    assert "[rank 1] ['mine', 'mine']" in run_text(folder, text).stdout


def test_module_runs_like_under_python(folder: Path) -> None:
    (folder / "pkg").mkdir()
    (folder / "pkg" / "__init__.py").write_text("print('package')\n")
    (folder / "pkg" / "conf.py").write_text("name = 'mine'\n")
    shown = "print(rank, name, sys.argv, __name__, __package__, __spec__.name, sys.path[0])\n"
    (folder / "pkg" / "train.py").write_text(f"from .conf import name\n{JOIN}{shown}")
    result = course_run("--ranks", "1", "-m", "pkg.train", "--lr", "3")
    assert result.stdout.splitlines() == [
        "[rank 0] package",
        f"[rank 0] 0 mine ['{folder}/pkg/train.py', '--lr', '3'] __main__ pkg pkg.train {folder}",
    ]
    assert result.exit_code == 0


@pytest.mark.parametrize("name", ["pkg.train", "../train", "train.py", "torch"])
def test_missing_module_error_fits_one_line(folder: Path, name: str) -> None:
    result = course_run("-m", name)
    assert (result.exit_code, len(result.stderr.splitlines())) == (4, 1), result.output
    assert "module" in result.stderr


def test_closes_files_and_runs_exit_handlers(folder: Path) -> None:
    text = "import atexit, os\natexit.register(print, 'bye')\n"
    text += "file = open('log' + os.environ['RANK'], 'w')\nfile.write('left open')\n"
    result = run_text(folder, text)
    assert sorted(result.stdout.splitlines()) == ["[rank 0] bye", "[rank 1] bye"]
    assert (folder / "log1").read_text() == "left open"


def test_spawned_child_imports_script(folder: Path) -> None:
    text = (
        "import multiprocessing as mp\ndef work(): print('child', __name__)\n"
        "if __name__ == '__main__':\n    p = mp.get_context('spawn').Process(target=work)\n"
        "    p.start(); p.join(); print(p.exitcode)\n"
    )
    result = run_text(folder, text, options=("--ranks", "1"))
    assert result.stdout.splitlines() == ["[rank 0] child __mp_main__", "[rank 0] 0"]


SPAWN = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, size):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="{port}")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    total = torch.ones(1)
    dist.all_reduce(total)
    print(rank, total.item())
if __name__ == "__main__":
    mp.spawn(work, args=(2,), nprocs=2)
    print("after")
"""


def test_ranks_replace_spawned_processes(folder: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        text = SPAWN.replace("{port}", str(free.getsockname()[1]))
    result = run_text(folder, text)
    assert sorted(result.stdout.splitlines()) == [
        "[rank 0] 0 2.0",
        "[rank 0] after",
        "[rank 1] 1 2.0",
    ]
    wrong = run_text(folder, text, options=("--ranks", "3"))
    assert "starts 2 processes with mp.spawn (line 10). Run it with --ranks 2" in wrong.stderr
    assert "Traceback" not in wrong.stdout


PROCESSES = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
def join(rank, size):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="{port}")
    dist.init_process_group("gloo", rank=rank, world_size=size)
def work(rank, size, queue=None):
    join(rank, size)
    total = torch.ones(1)
    dist.all_reduce(total)
    print(rank, total.item())
if __name__ == "__main__":
    context = mp.get_context("{method}")
    processes = [context.Process(target=work, args=(rank, 2)) for rank in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    print("after", processes[1].exitcode, processes[1].is_alive())
"""


@pytest.fixture
def port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_ranks_replace_started_processes(folder: Path, port: str, method: str) -> None:
    text = PROCESSES.replace("{port}", port).replace("{method}", method)
    result = run_text(folder, text)
    lines = ["[rank 0] 0 2.0", "[rank 0] after 0 False", "[rank 1] 1 2.0"]
    assert sorted(result.stdout.splitlines()) == lines, result.stderr


REFUSED_PROCESSES = {
    "count": ("", "", 3, "starts 2 processes as ranks (line 15). Run it with --ranks 2: the ranks"),
    "queue": ("(rank, 2)", "(rank, 2, context.Queue())", 2, "passes a Queue to the processes that"),
    "parent": (
        "    for process in processes:\n        process.join()",
        "    join(2, 3)",
        2,
        "starts processes as ranks (line 15), and is a rank itself.",
    ),
}


@pytest.mark.parametrize("name", REFUSED_PROCESSES)
def test_explains_irreplaceable_processes(folder: Path, port: str, name: str) -> None:
    old, new, ranks, words = REFUSED_PROCESSES[name]
    text = PROCESSES.replace("{port}", port).replace("{method}", "spawn").replace(old, new)
    result = run_text(folder, text, options=("--ranks", str(ranks)))
    assert result.exit_code == 1
    assert words in result.stderr and "Traceback" not in result.stdout


def test_starts_processes_without_group(folder: Path) -> None:
    text = PROCESSES.replace("    join(rank, size)\n", "    return print(os.getppid() == size)\n")
    text = text.replace("(rank, 2)", "(rank, os.getpid())").replace("{method}", "fork")
    result = run_text(folder, text)
    shown = sorted(result.stdout.splitlines())
    assert [line[9:] for line in shown] == ["True", "True", "after 0 False"] * 2


@pytest.mark.parametrize(
    ("ending", "code", "words"),
    [
        ("sys.exit(0)", 0, ""),
        ("sys.exit(3)", 1, "rank 0 raised SystemExit: 3"),
        ("os._exit(7)", 1, "exited with code 7. The script, or a library"),
        ("os.kill(os.getpid(), 9)", 1, "was terminated by SIGKILL"),
        ("raise ValueError('no')", 1, "raised ValueError: no\n  train.py, line 4"),
        ("torch.ones(1).cuda()", 1, "There is no GPU for this rank"),
        ("dist.init_process_group()", 1, "init_process_group is called twice"),
        ("input()", 1, "Pass the value as an argument"),
    ],
)
def test_exit_code_reflects_outcome(folder: Path, ending: str, code: int, words: str) -> None:
    result = run_text(folder, JOIN + ending)
    assert result.exit_code == code, result.output
    assert words in result.stderr
    assert "in_rank.py" not in result.output


def test_os_exit_zero_is_success(folder: Path) -> None:
    assert run_text(folder, "import os\nos._exit(0)").exit_code == 0


def test_deadlock_reports_both_lines(folder: Path) -> None:
    result = run_text(folder, HANG)
    assert result.exit_code == 2
    assert "rank 0 calls barrier (train.py, line 5), while rank 1 calls all_reduce" in result.stderr


def test_timeout_reports_line_of_each_rank(folder: Path) -> None:
    text = "import time\ntime.sleep(60)"
    result = run_text(folder, text, options=("--timeout", "0.5"))
    assert result.exit_code == 3
    assert "rank 1: in its own code at train.py, line 2" in result.stderr
    assert "--timeout SECONDS" in result.stderr


def test_prints_only_json(folder: Path) -> None:
    result = run_text(folder, "print('hello')\n" + HANG, options=("--json",))
    data = json.loads(result.stdout)
    assert (data["outcome"], data["exit_code"]) == ("deadlock", 2)
    assert (data["failure"]["line"], data["waits"][1]["line"]) == (6, 8)
    assert data["output"] == ["hello\n", "hello\n"]


def test_report_plays_without_other_files(folder: Path) -> None:
    run_text(folder, HANG, options=("--report", "run.html"))
    page = (folder / "run.html").read_text()
    assert "train.py, line 5" in page and "DecompressionStream" in page
    assert "src=" not in page.replace('src="data:', "") and "href=" not in page


def test_github_shows_error_at_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(folder.parent))
    text = JOIN + "raise ValueError('50%, or\\nmore')"
    lines = run_text(folder, text).stdout.splitlines()
    (line,) = [line for line in lines if line.startswith("::")]
    assert line.startswith(f"::error file={folder.name}/train.py,line=4,title=RankFailed%3A rank 0")
    assert "50%25, or%0Amore" in line


def test_explains_port_in_use(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run_text(folder, f"import os\nos.environ['MASTER_PORT'] = '{port}'\n{JOIN}")
    assert "This port is in use" in result.stderr
    assert result.exit_code == 1


BAD_INPUT = {
    "no such file": (["none.py"], "there is no file none.py."),
    "folder": (["."], ". is a folder, not a script. Pass a file in it, such as ./broken.py."),
    "notebook": (["a.ipynb"], "a.ipynb is a notebook. Export it first"),
    "broken": (["broken.py"], "broken.py, line 1 is not Python: "),
    "binary": (["binary"], "binary is not a Python script."),
    "no ranks": (["--ranks", "0", "ok.py"], "--ranks must be from 1 to 256; got 0."),
    "uneven nodes": (
        ["--nnodes", "3", "ok.py"],
        "2 ranks cannot be spread evenly over 3 nodes.",
    ),
    "no time": (["--timeout", "0", "ok.py"], "timeout must be more than 0 seconds"),
    "no folder": (["--report", "no/r.html", "ok.py"], "there is no folder no for the report."),
    "no script": ([], "Missing argument 'SCRIPT'"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_error_has_no_traceback(folder: Path, name: str) -> None:
    (folder / "ok.py").write_text("")
    (folder / "broken.py").write_text("def f(:")
    (folder / "a.ipynb").write_text("{}")
    (folder / "binary").write_bytes(b"\0\1")
    words, message = BAD_INPUT[name]
    result = course_run(*words)
    assert result.exit_code == 4
    assert message in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.extended
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal_reaches_all_ranks(folder: Path, number: signal.Signals) -> None:
    (folder / "train.py").write_text(
        "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit('saved'))\n"
        "print('ready', flush=True)\ntime.sleep(60)\n"
    )
    command = [sys.executable, "-m", "helpers.course.cli", "run", "train.py"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as job:
        assert job.stdout is not None
        assert {job.stdout.readline() for _ in range(2)} == {"[rank 0] ready\n", "[rank 1] ready\n"}
        time.sleep(0.3)  # until both ranks have left print
        start = time.monotonic()
        job.send_signal(number)
        output, errors = job.communicate(timeout=60)
    assert job.returncode == 128 + number
    assert time.monotonic() - start < 20
    assert f"Stopped by {number.name}" in errors and "train.py, line 4" in errors
    if number == signal.SIGTERM:
        assert sorted(output.splitlines()) == ["[rank 0] saved", "[rank 1] saved"]


def test_run_script_returns_run(folder: Path) -> None:
    (folder / "train.py").write_text(JOIN + "dist.all_reduce(torch.ones(1))\nprint(sys.argv[1])")
    run = run_script("train.py", 2, args=[7])
    assert (run.ok, run.output, run.values) == (True, ["7\n", "7\n"], [None, None])
    assert [event.call for event in run.trace] == ["all_reduce", "all_reduce"]


def test_run_script_raises_failure(folder: Path) -> None:
    (folder / "train.py").write_text(HANG)
    with pytest.raises(Deadlock, match=r"train.py, line 5"):
        run_script("train.py")
    with pytest.raises(LaunchError, match="there is no file"):
        run_script("none.py")


def test_closed_output_ends_ranks(folder: Path) -> None:
    (folder / "train.py").write_text("for i in range(20_000):\n    print(i, 'x' * 60)\n")
    command = [sys.executable, "-m", "helpers.course.cli", "run", "train.py"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe)
    with process:
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline().endswith(b"x\n")
        process.stdout.close()
        assert process.wait(60) == 128 + signal.SIGPIPE
        assert process.stderr.read() == b""


def test_unwritable_report_stops_the_start(folder: Path) -> None:
    result = run_text(folder, "print(1)", options=("--report", "/proc/page.html"))
    assert result.exit_code == 4 and not result.stdout
    assert result.stderr.startswith("the report /proc/page.html cannot be written")


def test_counts_steps_of_destroyed_optimizer(folder: Path) -> None:
    text = """
import torch
def train():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(torch.ones(2)).sum().backward()
        optimizer.step()
train()
"""
    result = run_text(folder, text, options=("--check-steps", "5"))
    assert "No silent fault found in 3 steps, the whole script." in result.stderr
