"""Show the ranks' output in a terminal, or each rank's position if they print nothing for a while."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from helpers.ranks.display import NoDisplay
from helpers.ranks.failures import describe_wait

if TYPE_CHECKING:
    from helpers.ranks.deadlock_watch import DeadlockDetector
    from helpers.ranks.world import World

# Time without output after which the ranks' positions are shown, and the interval of updates.
QUIET_S = 5.0
UPDATE_S = 1.0
_ERASE_LINE = "\r\x1b[K"
_MAX_LINE = 100_000


@dataclass
class RankOutput:
    """Prints the ranks' output in complete lines, each with its rank.

    Attributes:
        stream: The stream to print to.
        before: A function called before lines are printed.
        last_s: The time of the last output, by a monotonic clock.
        is_closed: Whether the reader has closed the stream, for example `head` at its last line.
    """

    stream: TextIO
    last_s: float = field(default_factory=time.monotonic)
    is_line_shown: bool = False
    is_closed: bool = False
    _rests: dict[int, bytes] = field(default_factory=dict)

    def add(self, rank: int, data: bytes) -> None:
        """Print the lines completed by a rank."""
        *lines, rest = (self._rests.get(rank, b"") + data).split(b"\n")
        # A progress bar keeps redrawing its line. Only its last state is printed, when it has ended.
        rest = rest.rpartition(b"\r")[2] if not rest.endswith(b"\r") else rest[-_MAX_LINE:]
        if len(rest) > _MAX_LINE:
            lines, rest = [*lines, rest], b""
        self._rests[rank] = rest
        self._write(rank, lines)

    def finish(self) -> None:
        """Print the ranks' last lines that have no line end."""
        rests, self._rests = self._rests, {}
        for rank, rest in sorted(rests.items()):
            if rest.strip(b"\r"):
                self._write(rank, [rest])
        self.erase_line()

    def show_line(self, text: str) -> None:
        """Show a line that the next output replaces. This works only on a terminal."""
        width = shutil.get_terminal_size().columns
        self.stream.write(_ERASE_LINE + text[: width - 1])
        self.stream.flush()
        self.is_line_shown = True

    def erase_line(self) -> None:
        if self.is_line_shown:
            self.stream.write(_ERASE_LINE)
            self.is_line_shown = False

    def _write(self, rank: int, lines: list[bytes]) -> None:
        if not lines:
            return
        try:
            self.erase_line()
            for line in lines:
                text = line.rstrip(b"\r").rpartition(b"\r")[2].decode("utf-8", "replace")
                self.stream.write(f"[rank {rank}] {text}\n")
            self.stream.flush()
        except BrokenPipeError:
            self.is_closed = True
            with open(
                os.devnull, "wb"
            ) as nowhere:  # for the text that is still in the stream's buffer
                os.dup2(nowhere.fileno(), self.stream.fileno())
            raise KeyboardInterrupt from None  # ends the ranks, as Ctrl-C does
        self.last_s = time.monotonic()


class TerminalDisplay(NoDisplay):
    """Shows each rank's position in one line while there is no output. This works only on a terminal."""

    def __init__(self, output: RankOutput) -> None:
        self._output = output
        self._updated_s = 0.0
        self._is_terminal = output.stream.isatty()

    def update(self, world: World, detector: DeadlockDetector, seconds: float) -> None:
        now = time.monotonic()
        is_due = now - self._output.last_s >= QUIET_S and now - self._updated_s >= UPDATE_S
        if self._is_terminal and is_due:
            self._updated_s = now
            self._output.show_line(where_ranks_are(world, detector, seconds))


def where_ranks_are(world: World, detector: DeadlockDetector, seconds: float) -> str:
    """Describe the ranks' positions: `12 s: rank 0 all_reduce at train.py, line 4; rank 1 ...`."""
    from helpers.ranks.deadlock_watch import current_waits

    ranks: dict[str, list[int]] = {}
    # The line may be cut off, so begin with the ranks for which others wait.
    waits = current_waits(detector).waits
    awaited = {rank for wait in waits for rank in wait.waits_for}
    for wait in sorted(waits, key=lambda wait: (bool(wait.waits_for), wait.rank not in awaited)):
        ranks.setdefault(describe_wait(wait), []).append(wait.rank)
    for member in world.members:
        if member.is_done:
            ranks.setdefault("ended", []).append(member.rank)
    parts = [
        f"rank {numbers[0]} {words}"
        if len(numbers) == 1
        else f"ranks {', '.join(map(str, numbers))} {words.replace('in its own', 'in their own', 1)}"
        for words, numbers in ((words, [*dict.fromkeys(each)]) for words, each in ranks.items())
    ]
    return f"{seconds:.0f} s: {'; '.join(parts)}"
