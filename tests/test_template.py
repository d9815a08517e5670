"""A fork of the template runs like a new Python, and ends with the process that waits for it."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there new Pythons are started")
DEADLINE_S = 60.0
SHOWN = """
import os, sys
class Mine: pass
print(sys.argv, sys.path[0], os.getcwd(), os.environ["MINE"], "PATH" in os.environ, __name__)
print(input(), Mine.__module__, sys.modules["__main__"].Mine is Mine, file=sys.stderr)
sys.exit(3)
"""


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S, **options)  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("form", ["script", "text"])
def test_fork_behaves_like_new_python(form: str, tmp_path: Path, forking_python: str) -> None:
    script = tmp_path / "shown.py"
    script.write_text(SHOWN)
    words = [str(script), "-x"] if form == "script" else ["-c", SHOWN, "-x"]
    both = [
        run(python, *words, cwd=tmp_path, env={"MINE": "1"}, input="line")
        for python in (sys.executable, forking_python)
    ]
    assert [(one.returncode, one.stdout, one.stderr) for one in both[:1]] == [
        (one.returncode, one.stdout, one.stderr) for one in both[1:]
    ]
    assert both[0].returncode == 3


def test_finds_modules_on_pythonpath(tmp_path: Path, forking_python: str) -> None:
    (tmp_path / "mine.py").write_text(
        "import sys; print(__name__, sys.argv[1:], 'torch' in sys.modules)"
    )
    done = run(forking_python, "-m", "mine", "a", env={"PYTHONPATH": str(tmp_path)})
    assert done.stdout == "__main__ ['a'] True\n", done.stderr


def test_preserves_exit_status_of_failures(forking_python: str) -> None:
    failed = run(forking_python, "-c", "raise ValueError('mine')")
    assert failed.returncode == 1 and failed.stderr.endswith("ValueError: mine\n")
    assert run(forking_python, "-c", "import os; os.abort()").returncode == -signal.SIGABRT
    assert (
        run(forking_python, "-c", "import os; os.kill(os.getpid(), 9)").returncode
        == -signal.SIGKILL
    )


WAITS = """
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: os._exit(7))
print(os.getpid(), flush=True)
for _ in range(600):  # a signal just before a sleep is noticed after it
    time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 7), (signal.SIGKILL, -9), (signal.SIGABRT, -6)]
)
def test_forwards_signals_to_forks(number: int, code: int, forking_python: str) -> None:
    with subprocess.Popen([forking_python, "-c", WAITS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        forked = psutil.Process(int(process.stdout.readline()))
        assert forked.pid != process.pid
        process.send_signal(number)
        assert process.wait(DEADLINE_S) == code
    forked.wait(DEADLINE_S)


STARTS = f"""
import os, subprocess, sys
env = os.environ | {{"JPY_PARENT_PID": str(os.getpid())}}
subprocess.run([sys.executable, "-c", {WAITS!r}], env=env)
"""


def test_forked_kernel_ends_with_starter(forking_python: str) -> None:
    with subprocess.Popen([forking_python, "-c", STARTS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        forked = psutil.Process(int(process.stdout.readline()))
        process.kill()
        forked.wait(DEADLINE_S)


def test_forks_draw_different_random_numbers(forking_python: str) -> None:
    draw = "import random, numpy; print(random.random(), numpy.random.rand())"
    drawn = {run(forking_python, "-c", draw).stdout for _ in range(2)}
    assert len(drawn) == 2


LISTS_CHILDREN = f"""
import psutil, subprocess, sys
with subprocess.Popen([sys.executable, "-c", {STARTS!r}], stdout=subprocess.PIPE) as process:
    grandchild = int(process.stdout.readline())
    (child,) = psutil.Process(process.pid).children()
    child.kill()
    print(psutil.Process(grandchild).wait({DEADLINE_S}))
"""


def test_proxy_lists_children_of_fork(forking_python: str) -> None:
    done = run(forking_python, "-c", LISTS_CHILDREN)
    assert done.stdout == "None\n", done.stderr
