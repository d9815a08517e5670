"""mpiexec(): run a script on real MPI ranks, started by the mpiexec of an MPI installed by pip.

script --command--> OwnedPrograms.start: mpiexec --> a process per rank --> a file each --> MpiRun
in every case: the supervisor behind `OwnedPrograms` ends every process

Notebooks call `mpiexec`. Checks that run an answer as a script call `run_mpiexec`, even inside a rank.
"""

from __future__ import annotations

import locale
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from helpers.jobs.owned import OwnedPrograms, read_head
from helpers.jobs.run import MpiFailed, MpiRun, describe_exit
from helpers.jobs.torchrun import NOT_INHERITED, script_path
from helpers.ranks.budget import Budget
from helpers.ranks.failures import LaunchError, Stopped, describe_timeout
from helpers.ranks.launch_options import check_timeout
from helpers.ranks.rank_context import check_launch_allowed
from helpers.ranks.stop import raise_first_stop

# Maximum number of characters kept of each rank's output.
MAX_OUTPUT_CHARS = 200_000
_POLL_S = 0.02
_MPIEXEC_KEY = "mpiexec"
# The beginning of MPICH's message about a rank's end, which may appear before or after the rank's last line.
_ABORT_PREFIX = "Abort("

if (locale.setlocale(locale.LC_CTYPE) or "C")[:3] in ("tr_", "az_"):
    # MPICH's usual transport, UCX, compares its keywords without regard to case. In a locale whose capital i
    # has a dot, UCX does not recognize "diag" and ends the process (mpich 5.0, on `from mpi4py import MPI`).
    os.environ.setdefault("MPICH_CH4_NETMOD", "ofi")


def mpiexec(
    script: str | Path,
    n: int = 2,
    *,
    args: Sequence[str] = (),
    module: str = "",
    env: Mapping[str, str] | None = None,
    timeout: float = 30.0,
    on_failure: str = "raise",
) -> MpiRun:
    """Run a script on `n` MPI ranks and return the output of each of them.

    Args:
        script: The path of the script.
        n: Number of ranks to start.
        args: The script's arguments.
        module: A module through which to run the script, like `python -m module script`. With "mpi4py", an
            exception on one rank ends all ranks. Without it, the other ranks wait for that rank forever.
        env: Environment variables in addition to the inherited variables.
        timeout: The time limit for the whole job, in seconds.
        on_failure: "raise", or "return", which returns a result with its `failure`.

    Raises:
        LaunchError: The job could not be started.
        MpiFailed: The job failed.
    """
    if on_failure not in {"raise", "return"}:
        raise LaunchError(f"on_failure must be 'raise' or 'return'; got {on_failure!r}.")
    check_launch_allowed()
    try:
        run = run_mpiexec(script, n, args=args, module=module, env=env, timeout=timeout)
    except KeyboardInterrupt:
        raise Stopped(n) from None
    if run.failure is not None and on_failure == "raise":
        raise run.failure
    return run


def run_mpiexec(
    script: str | Path,
    n: int,
    *,
    args: Sequence[str] = (),
    module: str = "",
    env: Mapping[str, str] | None = None,
    timeout: float = 30.0,
) -> MpiRun:
    """Run a script like `mpiexec`, even inside a rank. Never raises for a failure of the script."""
    path = script_path(script)
    if not 1 <= n <= 64:
        raise LaunchError(f"n must be between 1 and 64; got {n}.")
    check_timeout(timeout)
    program = mpiexec_path()
    module_args = ("-m", module) if module else ()
    words = (*module_args, str(path), *map(str, args))
    timeout_text = ""
    with raise_first_stop(), OwnedPrograms() as owned:
        files = (str(owned.folder / "%r.out"), str(owned.folder / "%r.err"))
        kept = ("-outfile-pattern", files[0], "-errfile-pattern", files[1])
        argv = (program, *kept, "-n", str(n), sys.executable, *words)
        start = time.monotonic()
        budget = Budget(owned.alive, timeout, start)
        try:
            owned.start(
                _MPIEXEC_KEY, argv, env=_environment(env or {}, owned.folder), cwd=path.parent
            )
        except OSError as error:
            raise LaunchError(f"mpiexec could not start: {error}") from None
        while owned.running():
            if budget.is_spent(time.monotonic()):
                spent = describe_timeout(timeout, time.monotonic() - start, budget.by_the_clock)
                timeout_text = f"{spent}; mpiexec and all ranks were terminated."
                break
            owned.poll(_POLL_S)
        exitcode = owned.exits.get(_MPIEXEC_KEY)
        owned.end()
        output = tuple(
            read_head(owned.folder / f"{rank}.out", MAX_OUTPUT_CHARS) for rank in range(n)
        )
        errors = tuple(
            read_head(owned.folder / f"{rank}.err", MAX_OUTPUT_CHARS) for rank in range(n)
        )
    return _result(
        ("mpiexec", "-n", str(n), "python", *words), output, errors, exitcode, timeout_text
    )


def mpiexec_path() -> str:
    """Return the mpiexec next to this Python, where pip installs it, or on the PATH.

    Raise LaunchError if there is none.
    """
    own = Path(sys.executable).parent / "mpiexec"
    found = str(own) if own.exists() else shutil.which("mpiexec")
    if not found:
        raise LaunchError("mpiexec is not installed. `pip install mpi4py mpich` installs it.")
    return found


def _environment(extra: Mapping[str, str], folder: Path) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in NOT_INHERITED
        and not name.startswith(("PMI_", "MPI_", "OMPI_", "HYDRA_", "LOCAL_", "REAL_RANKS_"))
    }
    # Use shared memory between ranks, and TCP on loopback, so that a job sends nothing off this machine. UCX,
    # below MPICH, would also use System V's shared memory, which outlives a job and is refused by sandboxes.
    quiet = {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1", "HYDRA_LAUNCHER": "fork"}
    quiet["UCX_TLS"] = "self,posix"
    # UCX compares the names of its settings by the rules of the locale. In a Turkish locale, where "i" is not
    # the lower case of "I", it refuses its own defaults ("Invalid parameter", UCX of mpich 5.0).
    quiet["LC_ALL"] = "C.UTF-8"
    return {**kept, **quiet, "HYDRA_IFACE": "lo", "TMPDIR": str(folder), **extra}


def _result(
    command: tuple[str, ...],
    output: tuple[str, ...],
    errors: tuple[str, ...],
    exitcode: int | None,
    timeout_text: str,
) -> MpiRun:
    if not timeout_text and exitcode == 0:
        return MpiRun(command, output, errors, exitcode)
    said = [(rank, own[-1]) for rank, text in enumerate(errors) if (own := _rank_lines(text))]
    words = [timeout_text or f"mpiexec {describe_exit(exitcode)}."]
    words += [f"the error output of rank {rank} ends with: {line}" for rank, line in said[:1]]
    failure = MpiFailed("\n".join(words))
    failure.run = run = MpiRun(command, output, errors, exitcode, failure)
    return run


def _rank_lines(text: str) -> list[str]:
    """Return the lines written by a rank itself or, if there are none, the lines from MPI."""
    lines = text.strip().splitlines()
    return [line for line in lines if not line.startswith(_ABORT_PREFIX)] or lines
