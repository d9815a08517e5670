"""Find and read the dumps and stacks in a folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from helpers.dumps.entries import MAX_RANK, BadDump, Dump, read_dump
from helpers.dumps.plain_pickle import BadPickle, load_plain
from helpers.dumps.stacks import Stack, read_stacks

MAX_BYTES = 64 << 20
MAX_FILES = 20_000
_MAX_TEXT_BYTES = 8 << 20
_RANK_PATTERN = re.compile(r"(\d{1,7})\D*$")
_NAMED_RANK_PATTERN = re.compile(r"rank[_-]?(\d{1,7})", re.IGNORECASE)
_TEXT_SUFFIXES = {".txt", ".log", ".stack", ".stacks"}
_DATA_SUFFIXES = {".json", ".pkl", ".pickle", ".bin", ".dump"}


@dataclass
class Folder:
    """A folder's contents: dumps and stacks by rank, and a line for each unusable file."""

    dumps: dict[int, Dump] = field(default_factory=dict)
    stacks: dict[int, Stack] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read_folder(folder: Path) -> Folder:
    """Read all files in a folder and its subfolders, except hidden files."""
    result = Folder()
    for number, path in enumerate(_find_files(folder)):
        if number >= MAX_FILES:
            result.problems.append(
                f"{folder}: has more than {MAX_FILES:,} files; the rest is left out"
            )
            break
        name = str(path.relative_to(folder))
        try:
            _read_file(path, name, result)
        except (BadDump, BadPickle, OSError) as error:
            reason = (error.strerror or "unreadable") if isinstance(error, OSError) else str(error)
            result.problems.append(f"{name}: {reason}")
    return result


def _find_files(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(root) / name for name in sorted(names) if not name.startswith("."))


def _read_file(path: Path, name: str, result: Folder) -> None:
    if not path.is_file():
        raise BadDump("it is not a regular file")
    size = path.stat().st_size
    if path.suffix in {".html", ".py", ".md", ".gz", ".zip"}:
        return
    rank = find_rank(path)
    if path.suffix in _TEXT_SUFFIXES:
        if size > _MAX_TEXT_BYTES:
            raise BadDump(f"it has {size:,} bytes; at most {_MAX_TEXT_BYTES:,} are read")
        result.stacks |= read_stacks(path.read_text(encoding="utf-8", errors="replace"), rank)
        return
    if rank is None:
        raise BadDump(
            "its name does not end with the number of a rank, such as dump_3 or rank3.json"
        )
    if size > MAX_BYTES:
        raise BadDump(f"it has {size:,} bytes; at most {MAX_BYTES:,} are read")
    if size == 0:
        raise BadDump("it is empty: the rank was terminated before it could write")
    dump = read_dump(_load(path.read_bytes()), rank, name)
    known = result.dumps.get(rank)
    if known is not None:
        result.notes.append(f"rank {rank} has two dumps: {known.file} and {name}")
        # Only pickles have stacks.
        if (known.has_stacks, len(known.entries)) >= (dump.has_stacks, len(dump.entries)):
            return
    result.dumps[rank] = dump


def find_rank(path: Path) -> int | None:
    """Return the rank in a file's name, such as rank0.txt, stacks_rank_3.txt, nccl_trace_12."""
    stem = path.stem if path.suffix in _TEXT_SUFFIXES | _DATA_SUFFIXES else path.name
    match = (
        _NAMED_RANK_PATTERN.search(stem)
        or _RANK_PATTERN.search(stem)
        or _NAMED_RANK_PATTERN.search(path.parent.name)
    )
    rank = int(match[1]) if match else None
    return rank if rank is not None and rank < MAX_RANK else None


def _load(data: bytes) -> Any:
    if data.lstrip()[:1] not in {b"{", b"["}:
        return load_plain(data)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadDump(f"it is damaged ({type(error).__name__})") from error
