"""Read the calls and groups of one dump, in each version of the flight recorder's format.

The fields are those of `FlightRecorderDetail.hpp` in torch, in versions 2.x of the format, which are written
by torch 2.5 to 2.15. TorchComms writes the same fields. Fields missing in a version have a default value.
Whatever a field contains is converted to a number, a short string or no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from helpers.dumps.frames import Frame

MAX_ENTRIES = 200_000
MAX_RANK = 1 << 20
_MAX_FRAMES = 100
_MAX_TENSORS = 4096
_MAX_DIMENSIONS = 32
_MAX_TEXT = 300
_PEERS_PATTERN = re.compile(r"(\d{1,7})(->|<-)(\d{1,7})")

# The names under which backends record a collective -> the course's name. Other operations are not compared.
OPS = {
    **{name: name for name in ("all_gather", "all_reduce", "all_to_all", "barrier", "broadcast")},
    **{name: name for name in ("gather", "reduce", "reduce_scatter", "scatter", "send", "recv")},
    **dict.fromkeys(
        ("_all_gather_base", "all_gather_single", "all_gather_v", "ALLGATHER_coalesced"),
        "all_gather",
    ),
    **dict.fromkeys(("all_gather_into_tensor_coalesced", "allgather_into_tensor"), "all_gather"),
    **dict.fromkeys(("allreduce_coalesced", "all_reduce_coalesced"), "all_reduce"),
    **dict.fromkeys(("all_to_all_single", "all_to_all_v_single", "alltoall_base"), "all_to_all"),
    **dict.fromkeys(("_reduce_scatter_base", "reduce_scatter_single"), "reduce_scatter"),
    **dict.fromkeys(("reduce_scatter_v", "reduce_scatter_tensor_coalesced"), "reduce_scatter"),
    **dict.fromkeys(("REDUCE_SCATTER_coalesced",), "reduce_scatter"),
    "_broadcast_oop": "broadcast",
    "_reduce_oop": "reduce",
    "all_reduce_barrier": "barrier",
}
IGNORED_OPS = frozenset({"coalesced", "split", "new_window"})


class BadDump(ValueError):
    """A file was read, but is not a dump of the flight recorder."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One call, as recorded by the flight recorder. src, dst: ranks within the group; -1 if there is none."""

    group: str
    group_name: str
    op: str
    backend: str
    seq: int
    p2p_seq: int
    src: int
    dst: int
    inputs: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[int, ...], ...]
    dtype: str
    state: str
    retired: bool
    created_ns: int
    completed_ns: int
    timeout_ms: int
    frames: tuple[Frame, ...]

    @property
    def finished(self) -> bool:
        """Whether the call has completed. gloo never sets a state, but retires each finished call."""
        return self.state == "completed" or (self.retired and self.backend == "gloo")


@dataclass(frozen=True)
class Dump:
    """The records of one rank.

    groups: {name: members} for each group; gloo does not write the names. unknown: operations that are
    not compared. is_cut: whether the recorder's memory was full, so that the oldest calls are missing.
    """

    rank: int
    file: str
    version: str
    entries: tuple[Entry, ...]
    groups: Mapping[str, tuple[int, ...]]
    unknown: frozenset[str] = frozenset()
    is_cut: bool = False

    @property
    def has_stacks(self) -> bool:
        return any(entry.frames for entry in self.entries)

    @property
    def is_active_only(self) -> bool:
        """Whether only unfinished calls were dumped, as by torch's debug server."""
        unfinished = all(not entry.finished for entry in self.entries)
        return unfinished and any(entry.seq > 1 for entry in self.entries[:1])

    @property
    def backends(self) -> frozenset[str]:
        return frozenset(entry.backend for entry in self.entries)


def read_dump(data: Any, rank: int, file: str) -> Dump:
    """Return the calls of a dump. Raise BadDump if it is not a dump, or has another major version."""
    if not isinstance(data, dict) or not ({"version", "entries"} & data.keys()):
        raise BadDump(
            "it has no version and no entries, so it is not a dump of the flight recorder"
        )
    version = _text(data.get("version"))
    if version and version.partition(".")[0] != "2":
        raise BadDump(f"it has version {version} of the format; versions 2.x can be read")
    raw = data.get("entries") or ()  # in JSON, an empty list is left out
    if not isinstance(raw, list | tuple):
        raise BadDump("its entries are not a list")
    if len(raw) > MAX_ENTRIES:
        raise BadDump(f"it has {len(raw):,} entries; at most {MAX_ENTRIES:,} are read")
    entries, unknown = [], set()
    for item in raw:
        if not isinstance(item, dict):
            raise BadDump("an entry is not a dict")
        entry = _read_entry(item)
        if entry.op in OPS:
            entries.append(entry)
        elif entry.op not in IGNORED_OPS:
            unknown.add(entry.op[:40])
    first = raw[0].get("record_id") if raw else 0
    return Dump(
        rank,
        file,
        version,
        tuple(entries),
        dict(_read_groups(data.get("pg_config"))),
        frozenset(unknown),
        _whole(first) > 0,
    )


def _read_entry(item: dict[Any, Any]) -> Entry:
    group = item.get("process_group")
    name, about = (*group, "", "")[:2] if isinstance(group, list | tuple) else ("", "")
    backend, _, title = _text(item.get("profiling_name")).rpartition(":")
    op, _, peers = title.partition(" ")
    src = dst = -1
    if match := _PEERS_PATTERN.fullmatch(peers.strip()):
        first, last = int(match[1]), int(match[3])
        src, dst = (first, last) if match[2] == "->" else (last, first)
    inputs, outputs = _sizes(item.get("input_sizes")), _sizes(item.get("output_sizes"))
    dtypes = _texts(item.get("input_dtypes")) or _texts(item.get("output_dtypes"))
    return Entry(
        group=_text(name),
        group_name="" if _text(about) == "undefined" else _text(about),
        op=op,
        backend=backend,
        seq=_whole(item.get("collective_seq_id", item.get("seq_id"))),
        p2p_seq=_whole(item.get("p2p_seq_id")),
        src=src,
        dst=dst,
        inputs=inputs,
        outputs=outputs,
        dtype=dtypes[0] if dtypes else "",
        state=_text(item.get("state")),
        retired=item.get("retired") is True,
        created_ns=_whole(item.get("time_created_ns")),
        completed_ns=_whole(item.get("time_discovered_completed_ns")),
        timeout_ms=_whole(item.get("timeout_ms")),
        frames=tuple(_read_frames(item.get("frames"))),
    )


def _read_frames(frames: Any) -> Iterator[Frame]:
    for frame in frames[:_MAX_FRAMES] if isinstance(frames, list | tuple) else ():
        if isinstance(frame, dict):
            file = _text(frame.get("filename")).replace("\\", "/")
            yield Frame(_text(frame.get("name")), file, _whole(frame.get("line")))


def _read_groups(config: Any) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name and the members of each group. The members are stored as a string, "[0, 1]" or "0,1"."""
    for name, about in config.items() if isinstance(config, dict) else ():
        ranks = about.get("ranks") if isinstance(about, dict) else None
        if isinstance(ranks, str):
            ranks = re.findall(r"\d{1,7}", ranks[: 8 * MAX_RANK])
        if isinstance(ranks, list | tuple):
            members = {int(rank) for rank in ranks if str(rank).isdigit()}
            yield _text(name), tuple(sorted(rank for rank in members if rank < MAX_RANK))


def _sizes(value: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(
        tuple(_whole(length) for length in size[:_MAX_DIMENSIONS])
        for size in (value[:_MAX_TENSORS] if isinstance(value, list | tuple) else ())
        if isinstance(size, list | tuple)
    )


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [_text(value)]
    return [_text(one) for one in value[:1]] if isinstance(value, list | tuple) else []


def _text(value: Any) -> str:
    return value[:_MAX_TEXT] if isinstance(value, str) else ""


def _whole(value: Any) -> int:
    """Convert a value to a number of at most 64 bits, because JSON contains some numbers as text."""
    if isinstance(value, str) and value.isdigit() and len(value) < 20:
        value = int(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and abs(value) < 1 << 63 else 0
