"""`course explain` as a command: exit codes, JSON, the page, and unsuitable files."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from helpers.course.cli import main
from helpers.dumps.explain import HANG, NOTHING, UNREADABLE, explain_folder
from tests.dumps.made import MADE, Rank, world
from tests.dumps.verdicts import CASES


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(main, ["explain", *map(str, words)])


def write(folder: Path, ranks: list[Rank], *, as_json: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    for rank in ranks:
        dump = rank.dump()
        data = json.dumps(dump).encode() if as_json else pickle.dumps(dump, protocol=2)
        (folder / f"dump_{rank.rank}").write_bytes(data)
    return folder


@pytest.mark.parametrize(
    ("case", "code"),
    [("nccl_healthy", NOTHING), ("gloo_missing_call", HANG)],
    ids=["healthy", "hang"],
)
def test_exit_code_reflects_diagnosis(case: str, code: int) -> None:
    assert run(CASES / case).exit_code == code


def test_empty_folder_is_unreadable(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert result.exit_code == UNREADABLE
    assert "The folder has no dump" in result.output


def test_stacks_alone_are_reported(tmp_path: Path) -> None:
    shutil.copy(next(CASES.rglob("rank*.txt")), tmp_path / "rank0.txt")
    result = run(tmp_path)
    assert result.exit_code == UNREADABLE
    assert "There are stacks of 1 rank, but no dump." in result.output


def test_json_lists_ranks_and_lines() -> None:
    result = run(CASES / "nccl_type_mismatch", "--json")
    found = json.loads(result.output)
    assert (found["hang"], found["kind"], found["look_first"]) == (
        True,
        "mismatched_collectives",
        [1],
    )
    assert found["ranks"][1]["call"] == "all_gather_base"
    assert (found["ranks"][1]["file"], found["ranks"][1]["line"]) == ("/job/train.py", 31)


def test_report_needs_no_other_files(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run(CASES / "nccl_tensor_parallel", "--report", page).exit_code == HANG
    text = page.read_text()
    assert "Rank 3 has left out all_reduce" in text
    assert "<svg" in text or "<img" in text
    assert "http://" not in text.replace("http://www.w3.org/", "") and 'src="http' not in text


def test_report_escapes_names_of_dumps(tmp_path: Path) -> None:
    ranks = world(2, more={"1": ("<script>alert(1)</script>", [0, 1])})
    ranks[0].call("all_reduce", [4], 20, group="1", state="started")
    for rank in ranks:
        for entry in rank.entries:
            entry["frames"][2]["filename"] = "/job/<img src=x onerror=alert(1)>.py"
    page = tmp_path / "report.html"
    run(write(tmp_path / "dumps", ranks), "--report", page)
    assert "<script>alert" not in page.read_text()
    assert "<img src=x" not in page.read_text()


def test_explains_dumps_next_to_bad_files(tmp_path: Path) -> None:
    folder = write(tmp_path / "dumps", MADE["nccl_missing_call"]())
    (folder / "dump_9").write_bytes(b"\x80\x02garbage")
    (folder / "dump_8.json").write_text('{"entries": [')
    (folder / "dump_7").write_bytes(b"")
    (folder / "notes").write_text("no rank")
    explanation = explain_folder(folder)
    assert explanation.exit_code == HANG
    assert explanation.diagnosis is not None and explanation.diagnosis.guilty == (2,)
    assert len(explanation.problems) == 4
    assert all(len(line.splitlines()) == 1 for line in explanation.problems)


def test_bad_file_without_hang_is_unreadable(tmp_path: Path) -> None:
    folder = write(tmp_path / "dumps", MADE["nccl_healthy"]())
    (folder / "dump_9").write_bytes(b"\x80\x02garbage")
    assert run(folder).exit_code == UNREADABLE


@pytest.mark.parametrize(
    "stack",
    [
        'Process 7: python train.py\n\nThread 7 (idle): "MainThread"\n'
        "    recv (torch/distributed/distributed_c10d.py:2500)\n"
        "    wrapper (torch/distributed/c10d_logger.py:83)\n"
        "    exchange (/job/train.py:77)\n    <module> (/job/train.py:90)\n"
        'Thread 8 (idle): "Thread-1"\n    wait (threading.py:324)\n',
        "Thread 0x1 (most recent call first):\n"
        '  File "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", line 1 in recv\n'
        '  File "/job/train.py", line 77 in exchange\n',
    ],
    ids=["py-spy", "faulthandler"],
)
@pytest.mark.parametrize("name", ["rank1.txt", "stacks_rank_1.txt"])
def test_merges_stack_files_by_rank(tmp_path: Path, stack: str, name: str) -> None:
    folder = shutil.copytree(CASES / "torchcomms_missing_call", tmp_path / "dumps")
    (folder / name).write_text(stack)
    diagnosis = explain_folder(folder).diagnosis
    assert diagnosis is not None
    assert "rank 1 is in recv at train.py, line 77" in diagnosis.summary


def test_merges_stacks_of_debug_server(tmp_path: Path) -> None:
    folder = shutil.copytree(CASES / "torchcomms_missing_call", tmp_path / "dumps")
    sections = [
        f"=== Rank {rank}: http://host:{rank} ===\nThread 0x1 (most recent call first):\n"
        f'  File "/job/train.py", line {70 + rank} in step\n'
        for rank in range(3)
    ]
    (folder / "stacks.txt").write_text("\n".join(sections))
    diagnosis = explain_folder(folder).diagnosis
    assert diagnosis is not None and "train.py, line 71" in diagnosis.summary


@pytest.mark.parametrize("version", ["2.1", "2.4", "2.5", "2.7", "2.9", "2.10"])
@pytest.mark.parametrize("as_json", [False, True], ids=["pickle", "json"])
def test_reads_all_format_versions(tmp_path: Path, version: str, as_json: bool) -> None:
    ranks = world(3, version)
    for rank in ranks[:2]:
        rank.call("all_reduce", [7], 33, state="scheduled")
    for rank in ranks:
        for entry in rank.entries:
            if version == "2.1":  # fields of later versions
                for name in ("input_dtypes", "output_dtypes", "timeout_ms", "is_p2p", "retired"):
                    del entry[name]
            if as_json:
                del entry["frames"]
    diagnosis = explain_folder(write(tmp_path / "dumps", ranks, as_json=as_json)).diagnosis
    assert diagnosis is not None and (diagnosis.kind, diagnosis.guilty) == ("missing_call", (2,))


def test_reports_different_gather_roots(tmp_path: Path) -> None:
    ranks = world(3)
    for rank in ranks:
        rank.call("gather", [4], 20, state="started")
        rank.entries[-1]["output_sizes"] = [[4]] * 3 if rank.rank < 2 else []
    diagnosis = explain_folder(write(tmp_path / "dumps", ranks)).diagnosis
    assert diagnosis is not None and "different roots" in diagnosis.summary


def test_blames_no_rank_for_same_call(tmp_path: Path) -> None:
    ranks = world(2)
    for rank in ranks:
        rank.call("broadcast", [4], 20, state="started")
    diagnosis = explain_folder(write(tmp_path / "dumps", ranks)).diagnosis
    assert diagnosis is not None and (diagnosis.kind, diagnosis.guilty) == ("same_call", ())


@pytest.mark.extended
def test_large_world_report_stays_short(tmp_path: Path) -> None:
    ranks = world(64)
    for rank in ranks:
        for step in range(100):
            rank.call("all_reduce", [8], 20 + step % 3)
        if rank.rank != 40:
            rank.call("all_reduce", [8], 30, state="started")
    explanation = explain_folder(write(tmp_path / "dumps", ranks))
    assert explanation.diagnosis is not None and explanation.diagnosis.guilty == (40,)
    assert len(explanation.text.splitlines()) < 40


def test_requires_existing_folder(tmp_path: Path) -> None:
    result = run(tmp_path / "missing")
    assert result.exit_code not in {NOTHING, UNREADABLE} or "does not exist" in result.output


def test_rejects_pipes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "dump_0")
    explanation = explain_folder(tmp_path)
    assert explanation.problems == ("dump_0: it is not a regular file",)
