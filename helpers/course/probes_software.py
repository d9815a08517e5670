"""What `course doctor` asks of installed software: a probe tries the thing and gives a Finding."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from helpers.course.finding import Finding
from helpers.course.workspace import WorkspaceError, find_workspace

TOO_OLD = (3, 11)
GLOO_TIMEOUT_S = 60.0
COMMAND_TIMEOUT_S = 60.0

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def python() -> Finding:
    """See whether this Python is new enough."""
    here = f"{sys.version.split()[0]} at {sys.executable}"
    if sys.version_info < TOO_OLD:
        return Finding("Python", "missing", here, "Install Python 3.11 or newer, then `make lab`.")
    return Finding("Python", "ok", here)


def packages(root: Path | None = None) -> Finding:
    """Compare the installed versions of what the course uses with those it is tested with."""
    try:
        pins = read_pins((root or find_workspace().root) / "constraints.txt")
    except (WorkspaceError, OSError) as error:
        return Finding("packages", "warning", f"versions cannot be compared: {error}")
    absent, other = [], []
    for name in sorted(direct_dependencies()):
        installed = _installed(name)
        if installed is None:
            absent.append(name)
        elif installed != pins.get(name):
            other.append(f"{name} {installed} (tested: {pins.get(name, 'none')})")
    if absent:
        return Finding("packages", "missing", f"not installed: {', '.join(absent)}", "`make venv`")
    if other:
        return Finding("packages", "warning", f"other versions: {', '.join(other)}", "`make venv`")
    return Finding("packages", "ok", f"torch {version('torch')}, and all others as tested")


def gloo() -> Finding:
    """Start two real ranks and let them add up their numbers."""
    from helpers import launch

    try:
        run = launch(_sum_of_ranks, 2, timeout=GLOO_TIMEOUT_S, backend="gloo")
    except Exception as error:
        return Finding(
            "gloo",
            "missing",
            f"two ranks could not talk to each other: {type(error).__name__}: {error}",
            "Ranks use the loopback network and the temp folder: look at a firewall, at the host's"
            " name in /etc/hosts, and at the lines below.",
        )
    if run.values != [1.0, 1.0]:
        return Finding("gloo", "missing", f"two ranks gave {run.values}, not [1.0, 1.0]")
    return Finding("gloo", "ok", f"two ranks started and answered in {run.seconds:.2f} s")


def _sum_of_ranks(rank: int, world_size: int) -> float:
    import torch
    import torch.distributed as dist

    total = torch.tensor(float(rank))
    dist.all_reduce(total)
    return total.item()


def nccl() -> Finding:
    """Count the GPUs that torch can use."""
    import torch
    import torch.distributed as dist

    count = torch.cuda.device_count()
    if count == 0:
        return Finding(
            "GPUs", "ok", "none: all ranks run on the CPU with gloo, as the course expects"
        )
    if not dist.is_nccl_available():
        return Finding("GPUs", "warning", f"{count}, but this torch has no NCCL: gloo is used")
    name = torch.cuda.get_device_name(0)
    return Finding("GPUs", "ok", f"{count} ({name}): NCCL is used for up to {count} ranks")


def jupyterlab() -> Finding:
    """Ask JupyterLab whether it runs and has the extension that draws widgets."""
    said = _run([sys.executable, "-m", "jupyterlab.labextensions", "list"])
    if said is None or not (found := _installed("jupyterlab")):
        return Finding("JupyterLab", "missing", "it does not run", "`make venv`")
    if not re.search(r"@jupyter-widgets/jupyterlab-manager.*enabled.*OK", said):
        return Finding(
            "JupyterLab",
            "warning",
            f"{found}, without the widgets extension: quizzes appear as text",
            "`.venv/bin/jupyter labextension enable @jupyter-widgets/jupyterlab-manager`",
        )
    return Finding("JupyterLab", "ok", f"{found}, with widgets")


def mpi() -> Finding:
    """Start two ranks under mpiexec, as notebook 22 does."""
    beside = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec")
    advice = f"Only notebook 22 uses it: `{sys.executable} -m pip install mpi4py mpich`"
    absent = [] if mpiexec else ["mpiexec"]
    absent += [] if importlib.util.find_spec("mpi4py") else ["mpi4py"]
    if not mpiexec or absent:
        return Finding("MPI", "warning", f"not installed: {', '.join(absent)}", advice)
    program = "from mpi4py import MPI; print('size', MPI.COMM_WORLD.size)"
    said = _run([mpiexec, "-n", "2", sys.executable, "-c", program])
    if said is None or said.count("size 2") != 2:
        return Finding("MPI", "warning", f"{mpiexec} did not run two ranks of mpi4py", advice)
    return Finding("MPI", "ok", f"{mpiexec} ran two ranks of mpi4py")


def browser() -> Finding:
    """Look for the browser that one of the tests drives."""
    path = find_browser()
    said = path and _run([path, "--version"])
    if not said:
        return Finding(
            "browser",
            "warning",
            "no Chromium or Chrome that runs: the test that drives JupyterLab is skipped",
            "Learners need no other browser than their own. For `make test`: sudo apt-get install chromium",
        )
    return Finding("browser", "ok", said.strip().splitlines()[-1])


def find_browser() -> str | None:
    """Find Chromium or Chrome, on the PATH or where macOS keeps them."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def direct_dependencies() -> set[str]:
    """Return the names of what the course itself needs, without its extras."""
    lines = requires("real-ranks") or []
    return {normal_name(re.split(r"[^\w.-]", line)[0]) for line in lines if "extra ==" not in line}


def read_pins(constraints: Path) -> dict[str, str]:
    """Read `name==version` lines, by normalized name; comments and markers are left out."""
    lines = constraints.read_text(encoding="utf-8").splitlines()
    found = (re.match(r"([\w.-]+)==([^\s;]+)", line) for line in lines)
    return {normal_name(pin[1]): pin[2] for pin in found if pin}


def normal_name(name: str) -> str:
    """Write a package's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(name: str) -> str | None:
    try:
        return version(name).partition("+")[0]  # "+cpu", "+cu130": builds of the same version
    except PackageNotFoundError:
        return None


def _run(command: list[str]) -> str | None:
    """Return what a command says on either stream; None if it fails, hangs or is not there."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND_TIMEOUT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
