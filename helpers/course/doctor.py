"""`course doctor`: test the course's requirements on this machine, and print a line for each.

(name, probe, advice), ... --examine--> Finding, Finding, ... --report--> text, exit code
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
from helpers.torch_versions import untested

GIB, MIB = 1 << 30, 1 << 20
COURSE_RANKS = 8
"""The size of the largest world started in a notebook."""
RANK_BYTES = 60 * MIB
"""Approximate memory of a forked rank: 58 MB were measured."""
RANK_FILES, KERNEL_FILES = 3, 100
TIMEOUT_S = 60.0
_MACOS = "/Applications/{0}.app/Contents/MacOS/{0}"
BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
BROWSERS += [_MACOS.format("Google Chrome"), _MACOS.format("Chromium")]


class Missing(Exception):
    """A requirement of the course does not work."""


@dataclass(frozen=True)
class Finding:
    """One line of `course doctor`.

    status: "ok"; "warning": the course works, but a part described in `detail` is slower or does not work;
    "missing": the course cannot work without it. advice: how to repair it, or "".
    """

    name: str
    status: Literal["ok", "warning", "missing"]
    detail: str
    advice: str = ""


Probe = Callable[[], tuple[bool, str]]
"""Function that returns (whether all is well, detail). False is a warning; worse problems raise Missing."""


def run_probes(probes: Iterable[tuple[str, Probe, str]] | None = None) -> Iterator[Finding]:
    """Run each probe and yield its finding as soon as it is known."""
    for name, probe, advice in PROBES if probes is None else probes:
        try:
            fine, detail = probe()
        except Missing as error:
            yield Finding(name, "missing", str(error), advice)
        except Exception as error:  # a failing probe must not hide the results of the others
            detail = f"could not be tried: {type(error).__name__}: {error}"
            venv = "`make venv` installs the course's requirements."
            yield Finding(name, "missing", detail, advice or venv)
        else:
            yield Finding(name, "ok", detail) if fine else Finding(name, "warning", detail, advice)


def format_finding(finding: Finding) -> str:
    """Return a finding as one line, with the advice as a second line."""
    line = f"{finding.status:8} {finding.name}: {finding.detail}"
    return f"{line}\n{'':8} -> {finding.advice}" if finding.advice else line


def exit_code(findings: Iterable[Finding]) -> int:
    """Return 1 if an indispensable requirement is missing, otherwise 0."""
    return int(any(finding.status == "missing" for finding in findings))


# --- the machine ----------------------------------------------------------------------------------


def _probe_fork() -> tuple[bool, str]:
    if sys.platform == "win32":
        raise Missing("native Windows, but ranks need Linux or macOS: use WSL")
    if sys.platform == "darwin":
        return False, "macOS: fork is unsafe here, so ranks are spawned, which takes seconds"
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    if status := os.waitpid(pid, 0)[1]:
        raise Missing(f"a forked process exited with status {status}")
    return True, "works: ranks start in milliseconds"


def _probe_cpus() -> tuple[bool, str]:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    if (count or 1) < 2:
        return False, "1: ranks take turns, so no speed-up or overlap can be seen"
    return True, f"{count}"


def _probe_memory() -> tuple[bool, str]:
    import psutil

    free = psutil.virtual_memory().available
    ranks = max(0, free - GIB) // RANK_BYTES
    return ranks >= COURSE_RANKS, f"{free / GIB:.1f} GiB free, about {ranks} ranks"


def _probe_shared_memory() -> tuple[bool, str]:
    path = Path("/dev/shm")
    if not path.is_dir():
        return True, "no /dev/shm on this system; nothing to check"
    free = shutil.disk_usage(path).free
    return free >= 256 * MIB, f"{free / MIB:.0f} MiB free in {path}"


def _probe_open_files() -> tuple[bool, str]:
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return True, "no limit"
    ranks = max(0, limit - KERNEL_FILES) // RANK_FILES
    return ranks >= 2 * COURSE_RANKS, f"at most {limit}: enough for about {ranks} ranks"


def _probe_temp_folder() -> tuple[bool, str]:
    # Ranks connect and exchange data through this memory.
    folder = tempfile.gettempdir()
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * MIB)
        file.flush()
    free = shutil.disk_usage(folder).free
    return free >= GIB, f"{free / GIB:.1f} GiB free in {folder}"


def _probe_bubblewrap() -> tuple[bool, str]:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return False, "bubblewrap (bwrap) is not installed"
    words = ["--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "true"]
    worked, said = _run(bwrap, *words)
    if not worked:
        return False, f"{bwrap} cannot create namespaces: {said.strip()}"
    return True, f"{bwrap} ran a program in its own namespaces"


def landlock_version() -> int:
    """Return the kernel's Landlock version, or 0.

    The version is read with the system call landlock_create_ruleset(NULL, 0,
    LANDLOCK_CREATE_RULESET_VERSION), see landlock(7), because /sys/kernel/security is often not mounted,
    especially in containers.
    """
    if not sys.platform.startswith("linux"):
        return 0
    create_ruleset, version_flag = 444, 1
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(create_ruleset, None, ctypes.c_size_t(0), version_flag)))


def _probe_landlock() -> tuple[bool, str]:
    version = landlock_version()
    return (
        version > 0,
        f"version {version}" if version else "this kernel does not have it, or it is disabled",
    )


# --- installed software ---------------------------------------------------------------------------


def _probe_python() -> tuple[bool, str]:
    return True, f"{sys.version.split()[0]} at {sys.executable}"


def packages(root: Path | None = None) -> tuple[bool, str]:
    """Compare the installed versions of the course's dependencies with the tested versions."""
    try:
        text = ((root or find_workspace().root) / "constraints.txt").read_text(encoding="utf-8")
    except (WorkspaceError, OSError) as error:
        return False, f"versions cannot be compared: {error}"
    pins = {
        _normalize_package_name(pin[1]): pin[2]
        for pin in re.finditer(r"(?m)^([\w.-]+)==([^\s;]+)", text)
    }
    here = {name: _installed(name) for name in sorted(direct_dependencies())}
    if absent := [name for name, found in here.items() if not found]:
        raise Missing(f"not installed: {', '.join(absent)}")
    torch = here.pop("torch")
    known = ((name, found, pins.get(name, "none")) for name, found in here.items())
    other = [f"{name} {found} (tested: {pin})" for name, found, pin in known if found != pin]
    if unsure := untested(torch):
        other.append(unsure)
    if other:
        return False, f"different versions: {', '.join(other)}"
    return True, f"torch {version('torch')}; all other packages are at their tested versions"


def direct_dependencies() -> set[str]:
    """Return the names of the packages required by the course without extras."""
    lines = requires("real-ranks") or []
    return {
        _normalize_package_name(re.split(r"[^\w.-]", line)[0])
        for line in lines
        if "extra ==" not in line
    }


def _normalize_package_name(name: str) -> str:
    """Return a package's name in the normalized form of package indexes."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _installed(name: str) -> str:
    try:
        return version(name).partition("+")[0]  # "+cpu" and "+cu130" are builds of the same version
    except PackageNotFoundError:
        return ""


def _probe_gloo() -> tuple[bool, str]:
    from helpers.ranks.launcher import launch

    run = launch(_sum_of_ranks, 2, timeout=TIMEOUT_S, backend="gloo")
    if run.values != [1.0, 1.0]:
        raise Missing(f"two ranks returned {run.values}, not [1.0, 1.0]")
    return True, f"two ranks started and answered in {run.seconds:.2f} s"


def _sum_of_ranks(rank: int, world_size: int) -> float:
    import torch
    import torch.distributed as dist

    total = torch.tensor(float(rank))
    dist.all_reduce(total)
    return total.item()


def _probe_nccl() -> tuple[bool, str]:
    import torch
    import torch.distributed as dist

    count = torch.cuda.device_count()
    if count == 0:
        return True, "none: all ranks run on the CPU with gloo, as the course expects"
    if not dist.is_nccl_available():
        return False, f"{count}, but this torch has no NCCL: gloo is used"
    return True, f"{count} ({torch.cuda.get_device_name(0)}): NCCL is used for up to {count} ranks"


def _probe_jupyterlab() -> tuple[bool, str]:
    worked, said = _run(sys.executable, "-m", "jupyterlab.labextensions", "list")
    found = _installed("jupyterlab")
    if not (worked and found):
        raise Missing("it does not run")
    if not re.search(r"@jupyter-widgets/jupyterlab-manager.*enabled.*OK", said):
        enable = "`jupyter labextension enable @jupyter-widgets/jupyterlab-manager`"
        return False, f"{found}, without widgets, so quizzes appear as text: {enable}"
    return True, f"{found}, with widgets"


def _probe_mpi() -> tuple[bool, str]:
    own = Path(sys.executable).parent / "mpiexec"
    mpiexec = str(own) if own.exists() else shutil.which("mpiexec")
    if not mpiexec or not importlib.util.find_spec("mpi4py"):
        return False, f"not installed: {'mpi4py' if mpiexec else 'mpiexec'}"
    # Each rank calls write() once, because print() writes in several pieces, and the ranks' pieces would mix.
    program = "import os; from mpi4py import MPI; os.write(1, b'size %d\\n' % MPI.COMM_WORLD.size)"
    words = (mpiexec, "-n", "2", sys.executable, "-c", program)
    worked, said = _run(*words)
    if not worked or said.count("size 2") != 2:
        return False, f"mpi4py could not run two ranks; to see why, run: `{shlex.join(words)}`"
    return True, f"{mpiexec} ran two ranks of mpi4py"


def _probe_browser() -> tuple[bool, str]:
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    worked, said = _run(path, "--version") if path else (False, "")
    if not worked:
        return False, "no working Chromium or Chrome: the test that drives JupyterLab is skipped"
    return True, said.strip().splitlines()[-1]


def _run(*command: str) -> tuple[bool, str]:
    """Return (whether a command succeeds in time, its output on stdout or stderr)."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return False, str(error)
    return done.returncode == 0, done.stdout


PROBES: tuple[tuple[str, Probe, str], ...] = (
    (
        "fork",
        _probe_fork,
        "On macOS, no action is needed: everything works, but ranks start more slowly.",
    ),
    ("Python", _probe_python, ""),  # pip refuses a Python that is too old
    ("packages", packages, "Run `make venv`."),
    (
        "gloo",
        _probe_gloo,
        "Check the firewall, the hostname in /etc/hosts, and the other findings.",
    ),
    ("GPUs", _probe_nccl, "No action is needed. To use them, install a torch with NCCL."),
    ("CPUs", _probe_cpus, "With two or more CPUs, the timings match the notebooks."),
    ("memory", _probe_memory, "Close other programs, or other kernels."),
    (
        "shared memory",
        _probe_shared_memory,
        "Start a container with --shm-size=1g. Without it, DataLoader workers may crash.",
    ),
    (
        "open files",
        _probe_open_files,
        "Run `ulimit -n 4096` before `make lab` (`ulimit -Hn` shows the limit).",
    ),
    ("temp folder", _probe_temp_folder, "Free some space, or set TMPDIR."),
    (
        "JupyterLab",
        _probe_jupyterlab,
        "Run `make venv`, or enable the extension with the command above.",
    ),
    (
        "MPI",
        _probe_mpi,
        f"Only notebook 22 uses it: `{sys.executable} -m pip install mpi4py mpich`",
    ),
    (
        "sandbox",
        _probe_bubblewrap,
        "Only grading uses it: install bubblewrap and allow user namespaces.",
    ),
    ("Landlock", _probe_landlock, "Only grading uses it, as a second layer: add landlock to lsm=."),
    ("browser", _probe_browser, "Only `make test` uses it: sudo apt-get install chromium"),
)
"""The probes in the order of their findings."""
