"""Write each rank's calls in words, in order: `send→1 ×100, recv←0`.

The timeline uses these words for its text and for the labels of its bars. Times are left out, so that the
text is the same in each run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from helpers.trace.events import Collective, Event, Trace
from helpers.views.plain import ELLIPSIS, one_line, plural

_LONGEST_PATTERN = 6
_LINE_LIMIT = 240

NEVER_FINISHED, NEVER_WAITED_FOR = "never finished", "never waited for"


def label_of(event: Event) -> str:
    """Name a call in a few characters: `isend→1`, `recv←any`, `all_reduce`, `broadcast root 0`."""
    name = one_line(event.call or event.op, 28)
    if event.op == "span":
        return f"[{name}]"
    if event.op == "send":
        name += f"→{'?' if event.peer is None else event.peer}"
    elif event.op == "recv":
        name += f"←{'any' if event.peer is None else event.peer}"
    elif event.root is not None:
        name += f" root {event.root}"
    return name + (f" tag {event.tag}" if event.tag and event.op in {"send", "recv"} else "")


def headline(trace: Trace) -> str:
    """Count the calls: `timeline of 2 ranks: 4 messages, 1 all_reduce`."""
    messages = trace.messages()
    parts = [plural(len(messages), "message")] if messages else []
    lost = 0 if trace.imagined else sum(message.recv is None for message in messages)
    if lost:
        parts[-1] += f" ({lost:,} never received)"
    parts += _count_collectives(trace.collectives(), bool(trace.imagined))
    spans = sum(event.op == "span" for event in trace)
    parts += [plural(spans, "span")] if spans else []
    taken = {id(message.recv) for message in messages}
    alone = sum(e.op == "recv" and not e.finished and id(e) not in taken for e in trace)
    alone = 0 if trace.imagined else alone
    parts += [f"{plural(alone, 'recv')} without a send"] if alone else []
    world = plural(trace.world_size, "rank")
    if trace.imagined:
        world = f"{len(trace.imagined)} of {world} (imagined: steps, not times)"
    return f"timeline of {world}: {', '.join(parts) or 'no calls'}"


def _count_collectives(collectives: Sequence[Collective], imagined: bool) -> list[str]:
    names = (
        " / ".join(sorted({one_line(event.op, 28) for event in collective.calls}))
        + ("" if collective.complete or imagined else " not joined by all")
        for collective in collectives
    )
    return [f"{count:,} {name}" for name, count in sorted(Counter(names).items())]


def rank_lines(trace: Trace) -> list[str]:
    """Return one line for each rank that made a call: its calls in the order of issue."""
    done: dict[int, list[str]] = {}
    for event in trace:
        done.setdefault(event.rank, []).append(label_of(event) + _describe_outcome(event))
    width = len(str(max(0, trace.world_size - 1)))
    return [
        f"rank {rank:>{width}}: {_join_parts(fold_repetitions(done[rank]))}"
        for rank in sorted(done)
    ]


def _describe_outcome(event: Event) -> str:
    if event.error:
        return " (failed)"
    return "" if event.end_ns is not None else f" ({describe_open_end(event)})"


def describe_open_end(event: Event) -> str:
    """Describe a call without a recorded end.

    The end of an asynchronous call is recorded in `wait()`. Without a wait(), the call may have ended
    unnoticed.
    """
    is_unwaited = event.asynchronous and event.wait_ns is None
    return NEVER_WAITED_FOR if is_unwaited else NEVER_FINISHED


def fold_repetitions(labels: Sequence[str]) -> list[tuple[str, int]]:
    """Fold repeated labels. Return each part with the number of its calls.

    `a b a b c a b a b c` becomes `((a, b) ×2, c) ×2`. Folding twice shows rounds within epochs.
    """
    return _fold_once(_fold_once([(label, 1) for label in labels]))


def _fold_once(parts: list[tuple[str, int]]) -> list[tuple[str, int]]:
    folded, at = [], 0
    while at < len(parts):
        length, times = _best_pattern(parts, at)
        pattern = parts[at : at + length]
        inner = _fold_once(pattern) if times > 1 and length > 1 else pattern
        text = ", ".join(text for text, _ in inner)
        if times > 1:
            text = f"({text}) ×{times}" if length > 1 else f"{text} ×{times}"
        folded.append((text, times * sum(count for _, count in pattern)))
        at += length * times
    return folded


def _best_pattern(parts: list[tuple[str, int]], start: int) -> tuple[int, int]:
    """Find the shortest of those repeated patterns that begin at `start` and cover the most parts."""
    best = (1, 1)
    for length in range(1, _LONGEST_PATTERN + 1):
        pattern, times = parts[start : start + length], 1
        while parts[start + times * length : start + (times + 1) * length] == pattern:
            times += 1
        if times > 1 and length * times > best[0] * best[1]:
            best = (length, times)
    return best


def _join_parts(parts: Sequence[tuple[str, int]]) -> str:
    """Join parts up to the line's limit, and count the calls that did not fit."""
    line, used = "", 0
    for index, (text, _) in enumerate(parts):
        if used + len(text) > _LINE_LIMIT and index:
            rest = sum(count for _, count in parts[index:])
            return f"{line}, {ELLIPSIS} and {plural(rest, 'more call')}"
        line += f", {text}" if index else text
        used = len(line)
    return line
