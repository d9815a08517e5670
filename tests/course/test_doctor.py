"""Test that the doctor actually tries each requirement, and reports failing ones."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from helpers.course import doctor
from helpers.course.doctor import PROBES, Finding, exit_code, format_finding, run_probes
from helpers.torch_versions import TESTED

DEADLINE_S = 100


def found(name: str) -> Finding:
    """Run one probe of the table."""
    (finding,) = run_probes(row for row in PROBES if row[0] == name)
    return finding


@pytest.fixture(scope="module")
def findings() -> dict[str, Finding]:
    return {finding.name: finding for finding in run_probes()}


@pytest.mark.extended
def test_doctor_finds_no_missing_requirements(findings: dict[str, Finding]) -> None:
    assert len(findings) == len(PROBES)
    missing = [format_finding(each) for each in findings.values() if each.status == "missing"]
    assert not missing
    assert exit_code(findings.values()) == 0


@pytest.mark.extended
def test_doctor_starts_two_ranks(findings: dict[str, Finding]) -> None:
    assert findings["gloo"].status == "ok"
    assert findings["gloo"].detail.startswith("two ranks started and answered in ")


def test_lists_jupyterlab_extensions(findings: dict[str, Finding]) -> None:
    assert findings["JupyterLab"].detail == f"{version('jupyterlab')}, with widgets"


def test_every_problem_has_advice(findings: dict[str, Finding]) -> None:
    for finding in findings.values():
        assert finding.status == "ok" or finding.advice, finding


@pytest.mark.skipif(sys.platform != "linux", reason="asks the Linux kernel")
def test_reads_landlock_support_from_kernel() -> None:
    names = Path("/sys/kernel/security/lsm")
    if names.exists():
        assert (doctor.landlock_version() > 0) == ("landlock" in names.read_text())
    else:
        assert 0 <= doctor.landlock_version() < 100


@pytest.mark.parametrize(("limit", "status"), [(123, "warning"), (148, "ok"), (1024, "ok")])
def test_expresses_open_file_limit_in_ranks(limit: int, status: str) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        finding = found("open files")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert finding.status == status
    assert f"about {(limit - 100) // 3} ranks" in finding.detail
    assert ("ulimit -n" in finding.advice) == (status == "warning")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="CPUs cannot be taken away here")
def test_warns_about_single_cpu() -> None:
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert found("CPUs").status == "warning"
    finally:
        os.sched_setaffinity(0, before)


def test_reports_unwritable_folder_as_missing() -> None:
    program = (
        "import tempfile; tempfile.tempdir = '/proc/nowhere'\n"
        "from helpers.course.doctor import PROBES, run_probes, exit_code\n"
        "(found,) = run_probes(row for row in PROBES if row[0] == 'temp folder')\n"
        "print(found.status, found.detail, found.advice, exit_code([found]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=DEADLINE_S
    )
    assert done.stdout.startswith("missing could not be tried: ") and "/proc/nowhere" in done.stdout
    assert done.stdout.endswith("Free some space, or set TMPDIR. 1\n")


def test_missing_tools_give_warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found("sandbox").status == "warning"
    if sys.platform == "linux":
        assert found("browser").status == "warning"


@pytest.mark.parametrize("script", ["exit 1", "echo bwrap: no permission >&2; exit 1"])
def test_reports_failing_sandbox_with_its_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    tool = tmp_path / "bwrap"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = found("sandbox")
    assert finding.status == "warning"
    assert ("no permission" in finding.detail) == ("permission" in script)


def test_reports_untested_package_versions(tmp_path: Path) -> None:
    pins = "".join(f"{name}==1.2.3\n" for name in doctor.direct_dependencies())
    (tmp_path / "constraints.txt").write_text(pins)
    fine, detail = doctor.packages(tmp_path)
    assert not fine and f"numpy {version('numpy')} (tested: 1.2.3)" in detail


@pytest.mark.parametrize("torch", ["2.14.1", "2.13.0", "2.15.0"])
def test_reports_untested_torch(torch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    here = doctor._installed
    monkeypatch.setattr(doctor, "_installed", lambda name: torch if name == "torch" else here(name))
    fine, detail = doctor.packages()
    assert fine == (torch in TESTED) == ("verdicts may be wrong" not in detail), detail


def test_broken_probe_keeps_other_findings() -> None:
    def broken() -> tuple[bool, str]:
        raise OSError("no such device")

    first, second = run_probes([("broken", broken, ""), PROBES[0]])
    assert (first.name, first.status) == ("broken", "missing") and "make venv" in first.advice
    assert "OSError: no such device" in first.detail
    assert second.status == "ok"


def test_prints_advice_below_its_finding() -> None:
    assert format_finding(Finding("CPUs", "ok", "2")) == "ok       CPUs: 2"
    assert format_finding(Finding("MPI", "warning", "none", "Install it.")).splitlines() == [
        "warning  MPI: none",
        "         -> Install it.",
    ]
