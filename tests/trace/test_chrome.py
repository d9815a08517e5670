"""`save_trace` writes the format documented by Perfetto, and files of torch.profiler are read back."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from helpers.ranks.run import Run
from helpers.trace.chrome import chrome_trace, profiled
from helpers.trace.events import Event, Place, Trace
from tests.views.builders import event, ping_pong, ring, trace_of_rows


def slices(saved: dict[str, Any]) -> list[dict[str, Any]]:
    return [e for e in saved["traceEvents"] if e["ph"] in "XB"]


def flows(saved: dict[str, Any]) -> dict[int, dict[str, dict[str, Any]]]:
    found: dict[int, dict[str, dict[str, Any]]] = defaultdict(dict)
    for e in saved["traceEvents"]:
        if e["ph"] in "sf":
            found[e["id"]][e["ph"]] = e
    return found


def around(saved: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the slices to which Perfetto may bind an arrow's end."""
    return [
        one
        for one in slices(saved)
        if (one["pid"], one["tid"]) == (end["pid"], end["tid"])
        and one["ts"] <= end["ts"] < one["ts"] + one.get("dur", float("inf"))
    ]


def test_saves_run_as_chrome_trace(tmp_path: Path) -> None:
    run = Run(2, [None, None], ["", ""], ping_pong())
    path = run.save_trace(tmp_path / "run.json")
    assert path == tmp_path / "run.json"
    saved = json.loads(path.read_text())
    assert saved == json.loads(json.dumps(chrome_trace(run.trace)))
    names = {
        e["pid"]: e["args"]["name"] for e in saved["traceEvents"] if e["name"] == "process_name"
    }
    assert names == {0: "rank 0", 1: "rank 1"}


def test_rank_name_contains_host() -> None:
    names = [
        e["args"]["name"]
        for e in chrome_trace(Trace(2, hosts=("n1", "n2")))["traceEvents"]
        if e["name"] == "process_name"
    ]
    assert names == ["rank 0 on n1", "rank 1 on n2"]


def test_calls_are_complete_events_in_microseconds() -> None:
    saved = chrome_trace(ping_pong())
    first, *_ = slices(saved)
    assert (first["ph"], first["pid"], first["name"]) == ("X", 0, "send")
    assert (first["ts"], first["dur"]) == (0.0, 3000.0)
    assert first["args"]["bytes"] == 400 and first["args"]["peer"] == 1
    assert all(one["ts"] >= 0 and one["dur"] >= 0 for one in slices(saved))


@pytest.mark.parametrize("trace", [ping_pong(3), ring(8, 5)])
def test_arrows_connect_sends_to_recvs(trace: Trace) -> None:
    saved = chrome_trace(trace)
    found = flows(saved)
    assert len(found) == len(trace.messages())
    for message, number in zip(trace.messages(), sorted(found), strict=True):
        begin, end = found[number]["s"], found[number]["f"]
        assert (begin["pid"], end["pid"]) == (message.src, message.dst)
        assert begin["ts"] <= end["ts"] and end["bp"] == "e"
        assert [one["name"] for one in around(saved, begin)] == ["send"]
        assert [one["name"] for one in around(saved, end)] == ["recv"]


def test_row_contains_no_overlapping_slices() -> None:
    calls = [
        event(0, seq, "send", start, end, peer=1, asynchronous=True)
        for seq, (start, end) in enumerate([(0, 9), (1, 5), (2, 3), (5, 6), (9, 10), (4, 20)])
    ]
    work = [event(0, 6, "span", 0, 8), event(0, 7, "span", 2, 3)]
    rows: dict[int, list[tuple[float, float]]] = defaultdict(list)
    saved = chrome_trace(trace_of_rows(2, [[*calls, *work]]))
    for one in slices(saved):
        rows[one["tid"]].append((one["ts"], one["ts"] + one["dur"]))
    for row in rows.values():
        row.sort()
        assert all(end <= start for (_, end), (start, _) in zip(row, row[1:], strict=False))
    labels = {
        e["tid"]: e["args"]["name"] for e in saved["traceEvents"] if e["name"] == "thread_name"
    }
    assert sorted(labels.values()) == ["calls"] * 3 + ["spans"] * 2
    assert set(labels) == set(rows)


def test_unfinished_call_has_only_begin_event() -> None:
    stuck = event(1, 0, "recv", 2, None, peer=0)
    later = event(1, 1, "all_reduce", 5, 6)
    saved = chrome_trace(trace_of_rows(2, [[event(0, 0, "barrier", 0, 1)], [stuck, later]]))
    _, one, two = slices(saved)
    assert one["ph"] == "B" and "dur" not in one
    assert two["ph"] == "X" and two["tid"] != one["tid"]
    assert not flows(saved)


def test_saved_lines_omit_machine_paths() -> None:
    place = Place("/somewhere/of/mine.py", 7, "f", "cell 5")
    saved = chrome_trace(Trace(1, (event(0, 0, "barrier", 0, 1, where=place),)))
    assert slices(saved)[0]["args"]["line"] == "cell 5, line 7"
    assert "somewhere" not in json.dumps(saved)


def test_saves_empty_trace() -> None:
    saved = chrome_trace(Trace(2))
    assert {e["ph"] for e in saved["traceEvents"]} == {"M"}


def profile_of(rank: int, world_size: int = 2) -> dict[str, Any]:
    """Return a file like torch.profiler's, with the events needed by these tests."""

    def one(name: str, ts: float, dur: float, cat: str = "user_annotation") -> dict[str, Any]:
        return {"ph": "X", "cat": cat, "name": name, "pid": 9, "tid": 9, "ts": ts, "dur": dur}

    events = [
        {
            "ph": "M",
            "name": "process_name",
            "pid": 9,
            "tid": 0,
            "ts": 0,
            "args": {"name": "python"},
        },
        one("gloo:all_reduce", 12.5, 4.0),
        one("ProfilerStep#2", 9.0, 20.0),
        one("backward", 10.0, 8.0),
        one("aten::mm", 11.0, 1.0, "cpu_op"),
        one("DistributedDataParallel.forward", 9.5, 0.2),
        one("Optimizer.step#SGD.step", 18.0, 1.0),
        one("gloo:recvAnySource", 20.0, 1.0),
    ]
    info = {"backend": "gloo", "rank": rank, "world_size": world_size}
    return {"distributedInfo": info, "baseTimeNanoseconds": 1000, "traceEvents": events}


def test_converts_profile_to_trace() -> None:
    trace = profiled([profile_of(1), profile_of(0)])
    assert trace.world_size == 2
    backward, reduce, recv = trace.of(1)
    assert (backward.op, backward.call) == ("span", "backward")
    assert (backward.start_ns, backward.end_ns) == (11_000, 19_000)
    assert (reduce.op, reduce.start_ns, reduce.end_ns) == ("all_reduce", 13_500, 17_500)
    assert reduce.asynchronous and reduce.group_ranks == (0, 1)
    assert (recv.op, recv.call) == ("recv", "recvAnySource")
    assert [collective.complete for collective in trace.collectives()] == [True]


@pytest.mark.parametrize(
    "traces, says",
    [
        ([profile_of(0), profile_of(0)], r"got 2 of ranks \[0\]"),
        ([profile_of(1)], r"got 1 of ranks \[1\]"),
        ([{"traceEvents": []}], "no `distributedInfo`"),
        (["rank0.json"], "no `distributedInfo`"),
    ],
)
def test_rejects_incomplete_or_invalid_profiles(traces: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        profiled(traces)


def test_saves_span_as_event() -> None:
    span = Event(0, 0, "span", "work", start_ns=5, end_ns=1_000_005)
    (one,) = slices(chrome_trace(Trace(1, (span,))))
    assert (one["name"], one["cat"], one["dur"], one["args"]) == ("work", "span", 1000.0, {})
