"""Read a job's rounds and workers, with their output and errors, from the output of torchrun agents.

An agent prints its log lines and, because of `--tee 3`, every line of its workers after a mark with the
worker's rank. `torchrun` calls this module. The results are frozen data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from helpers.jobs.owned import OutputPiece
from helpers.jobs.run import Round, Worker
from helpers.jobs.stacks import without_dump

# The mark before each line of a worker, set by TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE.
WORKER_MARK = "\x1f${rank}/${local_rank}\x1e"
_WORKER_LINE_PATTERN = re.compile(r"\x1f(\d+)/(\d+)\x1e([^\n\x1f]*\n?)")
_ROUND_START_PATTERN = re.compile(r"Rendezvous complete for workers\. Result:")
_ROUND_FIELD_PATTERN = re.compile(r"\]   (\w+)=(.*)$")
_WORKER_FAILURE_PATTERN = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank: (\d+) ")
_LOG_LINE_PATTERN = re.compile(r"^[IWE]\d{4} [\d:.]+ \d+ [\w./]+:\d+\] ?", re.MULTILINE)
_MAX_ERROR_FILE = 64 << 10


def parse_rounds(node: int, pieces: Sequence[OutputPiece], folder: Path) -> tuple[Round, ...]:
    """Return one agent's rounds, from its output and from the error files in its log folder."""
    reader = _LogParser(node)
    for piece in pieces:
        reader.feed(piece)
    reader.feed_rest()
    reader.close_round(pieces[-1].at_s if pieces else 0.0)
    last_of = {made.restart: index for index, made in enumerate(reader.rounds)}
    return tuple(
        # A change of members does not change the restart count, so the new round overwrites the previous
        # round's files.
        _with_error_files(made, folder) if last_of[made.restart] == index else made
        for index, made in enumerate(reader.rounds)
    )


def agent_output(pieces: Sequence[OutputPiece]) -> str:
    """Return an agent's output without its workers' lines and without its INFO lines."""
    text = "".join(piece.text for piece in pieces if piece.stream == 2)
    lines = _WORKER_LINE_PATTERN.sub("", text).splitlines()
    return "\n".join(
        _LOG_LINE_PATTERN.sub("", line) for line in lines if not re.match(r"I\d{4} ", line)
    )


class _LogParser:
    """Reads an agent's output piece by piece."""

    def __init__(self, node: int) -> None:
        self.node = node
        self.rounds: list[Round] = []
        self._output: dict[tuple[int, int], list[str]] = {}
        self._failed: tuple[int, int] | None = None
        self._fields: dict[str, str] | None = None
        self._ending = "ended"
        self._rest = {1: "", 2: ""}

    def feed(self, piece: OutputPiece) -> None:
        text = self._rest[piece.stream] + piece.text
        cut = max(text.rfind("\n") + 1, 0)
        self._rest[piece.stream] = text[cut:]
        for found in _WORKER_LINE_PATTERN.finditer(text[:cut]):
            key = (int(found[1]), piece.stream)
            self._output.setdefault(key, []).append(found[3])
        if piece.stream == 2:
            for line in _WORKER_LINE_PATTERN.sub("", text[:cut]).splitlines():
                self._read_agent_line(line, piece.at_s)

    def feed_rest(self) -> None:
        """Read the workers' last lines that have no line end."""
        for stream in (1, 2):
            if self._rest[stream]:
                self.feed(OutputPiece(stream, 0.0, "\n"))

    def _read_agent_line(self, line: str, at_s: float) -> None:
        if _ROUND_START_PATTERN.search(line):
            self.close_round(at_s)
            self._fields = {}
        elif self._fields is not None and (found := _ROUND_FIELD_PATTERN.search(line)):
            self._fields[found[1]] = found[2]
        elif self._fields:
            self._open_round(self._fields, at_s)
            self._fields = None
        if found := _WORKER_FAILURE_PATTERN.search(line):
            self._failed = (int(found[2]), int(found[1]))
            self._end_round("failed", at_s)
        elif "new nodes from group_rank" in line:
            self._end_round("membership changed", at_s)
        elif "worker group successfully finished" in line:
            self._end_round("succeeded", at_s)

    def _open_round(self, fields: dict[str, str], at_s: float) -> None:
        ranks = json.loads(fields.get("global_ranks", "[]"))
        sizes = json.loads(fields.get("global_world_sizes", "[]"))
        workers = tuple(Worker(self.node, local, rank) for local, rank in enumerate(ranks))
        self.rounds.append(
            Round(
                self.node,
                int(fields.get("restart_count", 0)),
                int(fields.get("group_rank", 0)),
                int(fields.get("group_world_size", 1)),
                sizes[0] if sizes else len(ranks),
                workers,
                at_s,
            )
        )

    def _end_round(self, ending: str, at_s: float) -> None:
        if self.rounds and not self.rounds[-1].ended_s:
            self.rounds[-1] = replace(self.rounds[-1], ending=ending, ended_s=at_s)

    def close_round(self, at_s: float) -> None:
        """Assign the collected output to the open round."""
        if not self.rounds:
            return
        self._end_round("ended", at_s)
        made = self.rounds[-1]
        if any(w.output or w.errors for w in made.workers):
            return
        failed, self._failed = self._failed, None
        workers = tuple(
            replace(
                worker,
                output="".join(self._output.pop((worker.rank, 1), [])),
                errors=without_dump("".join(self._output.pop((worker.rank, 2), []))),
                exitcode=failed[1] if failed and failed[0] == worker.local_rank else None,
            )
            for worker in made.workers
        )
        self.rounds[-1] = replace(made, workers=workers)


def _with_error_files(agent_round: Round, folder: Path) -> Round:
    workers = []
    for worker in agent_round.workers:
        pattern = f"*/attempt_{agent_round.restart}/{worker.local_rank}/error.json"
        files = sorted(folder.glob(pattern))
        message, traceback = _read_error(files[-1]) if files else ("", "")
        workers.append(replace(worker, error=message, traceback=traceback))
    return replace(agent_round, workers=tuple(workers))


def _read_error(path: Path) -> tuple[str, str]:
    """Read an error file written by `@record`. A worker may have written other content into it."""
    try:
        with path.open("rb") as file:
            data: Any = json.loads(file.read(_MAX_ERROR_FILE))["message"]
        if isinstance(data, str):
            return data, ""
        return str(data["message"]), str(data["extraInfo"]["py_callstack"])
    except (OSError, ValueError, KeyError, TypeError):
        return "(its error file could not be read)", ""
