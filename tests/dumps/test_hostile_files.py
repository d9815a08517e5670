"""Reading a dump runs no code, builds only plain data, and has limits."""

from __future__ import annotations

import json
import os
import pickle
import pickletools
import random
from pathlib import Path
from typing import Any

import pytest

from helpers.dumps import files, plain_pickle
from helpers.dumps.explain import UNREADABLE, explain_folder
from helpers.dumps.plain_pickle import MAX_DEPTH, BadPickle, load_plain
from tests.dumps.made import world
from tests.dumps.verdicts import CASES


class Command:
    """Its pickle creates a file when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_loading_pickle_runs_no_code(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "made"
    data = pickle.dumps({"version": "2.10", "entries": [Command(target)]}, protocol=protocol)
    with pytest.raises(BadPickle):
        load_plain(data)
    assert not target.exists()


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_loads_plain_data_unchanged(protocol: int) -> None:
    value: dict[str, Any] = {"a": [1, -(2**40), 1.5, None, True, (1, "x")], "b": {"c": ()}}
    if protocol > 2:  # earlier protocols call a function for bytes
        value["d"] = b"y"
    assert load_plain(pickle.dumps(value, protocol=protocol)) == value


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x80\x02",
        b"\x80\x02}",
        b"\x80\x02]r\xff\xff\xff\x7f.",
        b"\x80\x02X\xff\xff\xff\x7fabc.",
        b"\x80\x02" + b"(" * (MAX_DEPTH + 1) + b".",
        b"\x80\x02}]K\x01s.",
        b"cos\nsystem\n(S'true'\ntR.",
        b"\x80\x02h\x05.",
        b"I" + b"9" * 5000 + b"\n.",
        b"\x80\x02\x8a\xff" + b"\x7f" * 255 + b".",
        pickle.dumps(10**400, protocol=2),
    ],
    ids=[
        "empty",
        "cut",
        "open",
        "memo",
        "length",
        "marks",
        "list-key",
        "global",
        "unset",
        "digits",
        "long",
        "huge",
    ],
)
def test_rejects_damaged_pickles(data: bytes) -> None:
    with pytest.raises(BadPickle):
        load_plain(data)


@pytest.mark.parametrize(
    "value",
    [
        [],
        {},
        {"entries": 5},
        {"entries": [5]},
        {"version": "3.0", "entries": []},
        {"version": None, "entries": "no"},
    ],
    ids=["list", "empty", "number", "numbers", "version", "text"],
)
def test_rejects_non_dump_data(tmp_path: Path, value: Any) -> None:
    (tmp_path / "dump_0").write_bytes(pickle.dumps(value, protocol=2))
    (tmp_path / "dump_1.json").write_text(json.dumps(value))
    explanation = explain_folder(tmp_path)
    assert explanation.exit_code == UNREADABLE
    assert len(explanation.problems) == 2


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"process_group": 5, "profiling_name": 7, "frames": 3, "input_sizes": 1},
        {"process_group": [[], {}], "profiling_name": "nccl:send 9999999->1", "state": []},
        {"profiling_name": "nccl:all_reduce", "collective_seq_id": "x", "input_sizes": [[None]]},
        {
            "profiling_name": "nccl:all_reduce",
            "frames": [{"name": 1, "filename": None, "line": "a"}],
        },
        {"profiling_name": "nccl:recv 1<-0", "process_group": ("0", "default_pg"), "is_p2p": 1},
        {"profiling_name": "\x1b[31m:evil\x1b[0m", "time_created_ns": 1e300},
        {"profiling_name": "nccl:all_reduce", "input_sizes": [[2**62] * 32] * 4},
    ],
    ids=["nothing", "numbers", "peers", "texts", "frames", "recv", "escapes", "sizes"],
)
def test_tolerates_strange_fields(tmp_path: Path, entry: dict[str, Any]) -> None:
    config = {"0": {"ranks": "[0, 1, 9999999999999999999999]"}, "1": 5}
    dump = {
        "version": "2.10",
        "entries": [entry, entry],
        "pg_config": config,
        "pg_status": {"0": 1},
    }
    for rank in range(2):
        (tmp_path / f"dump_{rank}").write_bytes(pickle.dumps(dump, protocol=2))
    explanation = explain_folder(tmp_path)
    assert "\x1b" not in explanation.text
    assert not explanation.problems


def test_rejects_deep_json(tmp_path: Path) -> None:
    (tmp_path / "dump_0.json").write_text("[" * 100_000)
    assert explain_folder(tmp_path).problems == ("dump_0.json: it is damaged (RecursionError)",)


def test_reads_shared_lists_once(tmp_path: Path) -> None:
    """A small pickle can mean a list of a thousand lists of a thousand lists."""
    value: list[Any] = []
    for _ in range(20):
        value = [value] * 1000
    entry = {"profiling_name": "nccl:all_reduce", "frames": value, "input_sizes": value}
    (tmp_path / "dump_0").write_bytes(pickle.dumps({"version": "2.10", "entries": [entry]}))
    assert not explain_folder(tmp_path).problems


def test_rejects_large_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 10)
    (tmp_path / "dump_0").write_bytes(b"\x80\x02" + b"N" * 20)
    assert explain_folder(tmp_path).problems == ("dump_0: it has 22 bytes; at most 10 are read",)


@pytest.mark.extended
def test_limits_text_about_many_ranks(tmp_path: Path) -> None:
    config = {"0": {"ranks": "[0, 1000000]"}}
    entry = {"profiling_name": "nccl:all_reduce", "process_group": ("0", "default_pg")}
    dump = {"version": "2.10", "entries": [entry], "pg_config": config}
    (tmp_path / "dump_0").write_bytes(pickle.dumps(dump, protocol=2))
    assert len(explain_folder(tmp_path).text) < 5000


@pytest.mark.parametrize("case", ["gloo_recv_with_stacks", "torchcomms_missing_call"])
def test_explains_corrupted_dumps_without_error(tmp_path: Path, case: str) -> None:
    draw = random.Random(7)
    originals = {path.name: path.read_bytes() for path in (CASES / case).iterdir()}
    for _ in range(40):
        for name, data in originals.items():
            changed = bytearray(data)
            for _ in range(draw.randint(0, 3)):
                changed[draw.randrange(len(changed))] = draw.randrange(256)
            (tmp_path / name).write_bytes(changed[: draw.choice([len(changed), len(changed) // 2])])
        assert explain_folder(tmp_path).text


def test_notes_dumps_of_unfinished_calls(tmp_path: Path) -> None:
    ranks = world(2)
    ranks[0].call("all_reduce", [4], 20, state="started")
    for rank in ranks:
        dump = rank.dump() | {"entries": rank.entries[2:]}
        (tmp_path / f"dump_{rank.rank}").write_bytes(pickle.dumps(dump, protocol=2))
    assert any("unfinished calls only" in note for note in explain_folder(tmp_path).notes)


def test_opcode_sizes_match_pickletools() -> None:
    prefixes = {"string1": 1, "string4": 4, "bytes1": 1, "bytes4": 4, "bytes8": 8, "long1": 1}
    prefixes |= {"unicodestring1": 1, "unicodestring4": 4, "unicodestring8": 8}
    for opcode in pickletools.opcodes:
        code, argument = ord(opcode.code), opcode.arg
        if code in plain_pickle._FIXED_SIZES:
            assert plain_pickle._FIXED_SIZES[code] == (0 if argument is None else argument.n)
        if code in plain_pickle._COUNT_SIZES:
            assert argument is not None
            assert plain_pickle._COUNT_SIZES[code] == prefixes[argument.name]


def test_rejects_excessive_pickle_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_pickle, "MAX_OPCODES", 10)
    with pytest.raises(BadPickle, match="more than 10 instructions"):
        load_plain(pickle.dumps(list(range(20)), protocol=2))
