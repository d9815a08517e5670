"""Read a rank's arguments of init_process_group, inside the rank: its numbers, and the place to join."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from types import FrameType, TracebackType
from typing import Any

from helpers.trace.frames import clip_text, file_in_torch
from helpers.trace.joins import MAX_PLACE, JoinCall


def current_join_call(frame: FrameType | None) -> JoinCall | None:
    """Return the call of init_process_group that a thread is in; frame: its innermost frame."""
    while frame is not None:
        if _is_join(frame):
            return _read_call(frame.f_locals)
        frame = frame.f_back
    return None


def failed_join_call(trace: TracebackType | None) -> JoinCall | None:
    """Return the call of init_process_group that raised an exception, from the exception's traceback."""
    while trace is not None:
        if _is_join(trace.tb_frame):
            return _read_call(trace.tb_frame.f_locals)
        trace = trace.tb_next
    return None


def _is_join(frame: FrameType) -> bool:
    code = frame.f_code
    is_torch = file_in_torch(code) == "distributed/distributed_c10d.py"
    return code.co_name == "init_process_group" and is_torch


def _read_call(arguments: Mapping[str, Any]) -> JoinCall:
    url, store = arguments.get("init_method"), arguments.get("store")
    url = url if type(url) is str else ""
    numbers = {
        name: _number(arguments.get(name), url, name, variable)
        for name, variable in (("rank", "RANK"), ("world_size", "WORLD_SIZE"))
    }
    place = url.partition("?")[0]
    if url in {"", "env://"}:
        place = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        if store is not None:
            place = _name_store(store)
    return JoinCall(numbers["rank"], numbers["world_size"], clip_text(place, MAX_PLACE))


def _number(value: object, url: str, name: str, variable: str) -> int:
    """Return the argument, or the number that torch uses if the argument is missing."""
    if type(value) is int and value != -1:
        return value
    if in_url := re.search(rf"[?&]{name}=(\d+)", url):
        return int(in_url[1])
    text = os.environ.get(variable, "") if url in {"", "env://"} else ""
    return int(text) if text.isdecimal() else -1


def _name_store(store: Any) -> str:
    while type(store).__name__ == "PrefixStore":
        store = store.underlying_store
    if type(store).__name__ == "TCPStore":
        return f"{store.host}:{store.port}"
    return str(store.path) if type(store).__name__ == "FileStore" else ""
