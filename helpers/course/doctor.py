"""`course doctor`: try what the course needs on this machine, one line for each thing.

probe, probe, ... --examine--> Finding, Finding, ... --report--> text, exit code
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from helpers.course.workspace import WorkspaceError, find_workspace

GIB = 1 << 30
MIB = 1 << 20
COURSE_RANKS = 8
"""The largest world that a notebook starts."""
FILES_PER_RANK = 3
FILES_OF_A_KERNEL = 100
RANK_BYTES = 60 * MIB
"""About what a forked rank adds: 58 MB were measured."""
SMALL_SHM_BYTES = 256 * MIB
SMALL_DISK_BYTES = 1 * GIB
SANDBOX_TIMEOUT_S = 20.0
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
Status = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class Finding:
    """One line of `course doctor`.

    status: "ok"; "warning": the course goes on, and `detail` says what does not work or is slower;
    "missing": the course cannot do without it. advice: what to do, empty where there is nothing.
    """

    name: str
    status: Status
    detail: str
    advice: str = ""


def examine(probes: Iterable[Callable[[], Finding]] | None = None) -> Iterator[Finding]:
    """Run each probe and give its finding as soon as it is there."""
    for probe in PROBES if probes is None else probes:
        try:
            yield probe()
        except Exception as error:  # one broken probe must not hide what the others find
            yield Finding(
                probe.__name__,
                "missing",
                f"could not be tried: {type(error).__name__}: {error}",
                "`make venv` installs what the course needs.",
            )


def report(finding: Finding) -> str:
    """Say a finding in one line, and what to do in a second one."""
    line = f"{finding.status:8} {finding.name}: {finding.detail}"
    return f"{line}\n{'':8} -> {finding.advice}" if finding.advice else line


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 1 if something is missing that the course cannot do without, else 0."""
    return int(any(finding.status == "missing" for finding in findings))


# --- the machine ----------------------------------------------------------------------------------


def system() -> Finding:
    """See whether ranks can be forked here, which makes them start in milliseconds."""
    if sys.platform == "win32":
        return Finding("system", "missing", "native Windows", "Use WSL: ranks need Linux or macOS.")
    if sys.platform == "darwin":
        detail = "macOS: fork is unsafe here, so ranks are spawned, which takes seconds"
        return Finding("fork", "warning", detail, "Nothing to do: all works, and starts slower.")
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    if status != 0:
        return Finding("fork", "missing", f"a forked process ended with status {status}")
    return Finding("fork", "ok", "works: ranks start in milliseconds")


def cpus() -> Finding:
    """Count the CPUs that this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if (count or 1) < 2:
        detail = "1: ranks take turns, so no speed-up or overlap can be seen"
        return Finding("CPUs", "warning", detail, "Two or more show what the notebooks measure.")
    return Finding("CPUs", "ok", f"{count}")


def memory() -> Finding:
    """Compare the memory that is free with what ranks take."""
    import psutil

    free = psutil.virtual_memory().available
    detail = f"{free / GIB:.1f} GiB free, about {max(0, free - GIB) // RANK_BYTES} ranks"
    if free < GIB + COURSE_RANKS * RANK_BYTES:
        return Finding("memory", "warning", detail, "Close other programs, or other kernels.")
    return Finding("memory", "ok", detail)


def shared_memory() -> Finding:
    """See how much shared memory is left for DataLoader workers and NCCL."""
    path = Path("/dev/shm")
    if not path.is_dir():
        return Finding(
            "shared memory", "ok", "this system keeps it elsewhere, without a limit here"
        )
    free = shutil.disk_usage(path).free
    detail = f"{free / MIB:.0f} MiB free in {path}"
    if free < SMALL_SHM_BYTES:
        advice = "In a container: start it with --shm-size=1g. DataLoader workers may die without."
        return Finding("shared memory", "warning", detail, advice)
    return Finding("shared memory", "ok", detail)


def open_files() -> Finding:
    """See how many ranks the limit on open files allows."""
    import resource

    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return Finding("open files", "ok", "no limit")
    ranks = max(0, limit - FILES_OF_A_KERNEL) // FILES_PER_RANK
    detail = f"at most {limit}: enough for about {ranks} ranks"
    if ranks < 2 * COURSE_RANKS:
        advice = f"`ulimit -n {4096 if most < 0 else min(4096, most)}` before `make lab`"
        return Finding("open files", "warning", detail, advice)
    return Finding("open files", "ok", detail)


def temp_folder() -> Finding:
    """Write a file where ranks meet and keep what they exchange."""
    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile() as file:
            file.write(b"x" * MIB)
            file.flush()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        detail = f"{folder} cannot be written: {error.strerror or error}"
        return Finding("temp folder", "missing", detail, "Free some space, or set TMPDIR.")
    detail = f"{free / GIB:.1f} GiB free in {folder}"
    if free < SMALL_DISK_BYTES:
        return Finding("temp folder", "warning", detail, "Free some space, or set TMPDIR.")
    return Finding("temp folder", "ok", detail)


def bubblewrap() -> Finding:
    """Run a program in a sandbox of its own, as a grader does with submissions."""
    advice = "Only grading other people's notebooks needs it: sudo apt-get install bubblewrap"
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return Finding("sandbox", "warning", "no bubblewrap (bwrap) here", advice)
    command = [bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "true"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SANDBOX_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Finding("sandbox", "warning", f"{bwrap} does not run: {error}", advice)
    if done.returncode != 0:
        detail = f"{bwrap} may not make namespaces: {done.stderr.strip()}"
        advice = "Only grading needs it. Allow unprivileged user namespaces on this machine."
        return Finding("sandbox", "warning", detail, advice)
    return Finding("sandbox", "ok", f"{bwrap} ran a program in namespaces of its own")


def landlock() -> Finding:
    """Ask the kernel for its Landlock version: the second layer of the sandbox around a graded submission."""
    version = landlock_version()
    if version > 0:
        return Finding("Landlock", "ok", f"version {version}")
    detail = "this kernel has none, or has it switched off"
    advice = "Only grading uses it, as a second sandbox layer. On Linux: add landlock to the lsm= option."
    return Finding("Landlock", "warning", detail, advice)


def landlock_version() -> int:
    """Return the kernel's Landlock version, 0 if there is none.

    Asked by the system call landlock_create_ruleset(NULL, 0, LANDLOCK_CREATE_RULESET_VERSION), see
    landlock(7): /sys/kernel/security is often not mounted, above all in containers.
    """
    if not sys.platform.startswith("linux"):
        return 0
    create_ruleset, version_flag = 444, 1
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(create_ruleset, None, ctypes.c_size_t(0), version_flag)))


# --- installed software ---------------------------------------------------------------------------


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
    own = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(own) if own.exists() else shutil.which("mpiexec")
    advice = f"Only notebook 22 uses it: `{sys.executable} -m pip install mpi4py mpich`"
    absent = [] if mpiexec else ["mpiexec"]
    absent += [] if importlib.util.find_spec("mpi4py") else ["mpi4py"]
    if not mpiexec or absent:
        return Finding("MPI", "warning", f"not installed: {', '.join(absent)}", advice)
    # One write for each rank: what print() writes in pieces comes out mixed.
    program = "import os; from mpi4py import MPI; os.write(1, b'size %d\\n' % MPI.COMM_WORLD.size)"
    words = [mpiexec, "-n", "2", sys.executable, "-c", program]
    said = _run(words)
    if said is None or said.count("size 2") != 2:
        return Finding(
            "MPI",
            "warning",
            f"{mpiexec} did not run two ranks of mpi4py",
            f"Only notebook 22 uses it. To see why it failed, run: `{shlex.join(words)}`",
        )
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


PROBES: tuple[Callable[[], Finding], ...] = (
    system,
    python,
    packages,
    gloo,
    nccl,
    cpus,
    memory,
    shared_memory,
    open_files,
    temp_folder,
    jupyterlab,
    mpi,
    bubblewrap,
    landlock,
    browser,
)
"""In the order in which their findings are shown."""
