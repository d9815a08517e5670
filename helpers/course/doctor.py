"""`course doctor`: try what the course needs on this machine, one line for each thing.

probes_machine, probes_software  --examine-->  Finding ...  --report-->  text, exit code
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from helpers.course import probes_machine as machine
from helpers.course import probes_software as software
from helpers.course.finding import Finding

PROBES: tuple[Callable[[], Finding], ...] = (
    machine.system,
    software.python,
    software.packages,
    software.gloo,
    software.nccl,
    machine.cpus,
    machine.memory,
    machine.shared_memory,
    machine.open_files,
    machine.temp_folder,
    software.jupyterlab,
    software.mpi,
    machine.bubblewrap,
    machine.landlock,
    software.browser,
)


def examine(probes: Iterable[Callable[[], Finding]] = PROBES) -> Iterator[Finding]:
    """Run each probe and give its finding as soon as it is there."""
    for probe in probes:
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
