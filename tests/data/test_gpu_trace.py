"""The recorded profile of a GPU is small, names no machine, and shows what notebook 11 says about it."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from helpers.data.gpu_trace import gpu_trace

MAX_BYTES = 60_000


def on_gpu(trace: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in trace["traceEvents"] if event["pid"] == "GPU"]


def test_trace_is_small_without_paths() -> None:
    assert len(files("helpers.data").joinpath("ddp_on_a_gpu.json.gz").read_bytes()) < MAX_BYTES
    assert not re.search(r"/(?:tmp|home|root|opt|usr)/|\.py\b|://", json.dumps(gpu_trace()))


def test_all_reduces_use_separate_stream() -> None:
    streams: dict[bool, set[int]] = {True: set(), False: set()}
    for event in on_gpu(gpu_trace()):
        streams[event["name"].startswith("nccl")].add(event["args"]["stream"])
    assert streams == {True: {16}, False: {7}}


def test_launches_precede_gpu_work() -> None:
    trace = gpu_trace()
    launched = {
        event["args"]["correlation"]: event["ts"]
        for event in trace["traceEvents"]
        if event["cat"] in {"cuda_runtime", "cuda_driver"} and "args" in event
    }
    assert all(launched[work["args"]["correlation"]] < work["ts"] for work in on_gpu(trace))
