"""Compare torchrun and `course run`, and write what each prints about right scripts and bugs.

    python -m tests.scripts shapes    twenty right scripts: output, exit code, time, alarms -> shapes.md
    python -m tests.scripts bugs      thirty bugs: named with rank and line or not -> bugs.md

Names of scripts after the first word select some, and nothing is written.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.scripts.bugs import BUGS, CRASH, HANG, SILENT, Bug
from tests.scripts.shapes import (
    SHAPES,
    Ending,
    Shape,
    in_this_process,
    under_course_run,
    under_torchrun,
)

FOLDER = Path(__file__).parent
CHECK = ("--check-steps", "20")
# torch itself reports a hang after 30 minutes, but here it has only this time.
_HANG_S = 60.0


def main(what: str, *names: str) -> None:
    """Write one page."""
    make = {"shapes": shapes_page, "bugs": bugs_page}[what]
    page = "\n".join(make(names)) + "\n"
    print(page)
    if not names:
        (FOLDER / f"{what}.md").write_text(page, encoding="utf-8")


def shapes_page(names: Sequence[str]) -> Iterator[str]:
    """Run the right scripts and yield the page's lines."""
    rows, ratios, good = [], [], 0
    for shape in (each for each in SHAPES if not names or each.name in names):
        row, ratio, agrees = _compare(shape)
        print(row, file=sys.stderr, flush=True)
        rows.append(row)
        ratios.append(ratio)
        good += agrees
    yield from ("# Right scripts under torchrun and under `course run`", "")
    yield (
        f"{good} of {len(rows)} have the same output lines and exit code both ways, and --check-steps "
        f"reports nothing. Median ratio of times, starts included: {statistics.median(ratios):.2f}. "
        "Measured on two cores that other programs used too."
    )
    yield from (
        "",
        "| script | ranks | output, exit code | torchrun | course run | ratio | alarms |",
    )
    yield "|---|---|---|---|---|---|---|"
    yield from rows


def _compare(shape: Shape) -> tuple[str, float, bool]:
    """Return the row of a right script, the ratio of times, and whether everything is as expected."""
    script = shape.folder / f"{shape.name}.py"
    plain = under_torchrun(script, shape.ranks, shape.args)
    ours = under_course_run(script, shape.ranks, shape.args)
    checked = in_this_process(script, shape.ranks, shape.args, *CHECK)
    # `course run` shows the workers' stderr among their output
    is_same = ours.lines() - Counter(plain.errors.splitlines()) == plain.lines()
    is_same &= ours.code == plain.code
    is_quiet = "Silent fault" not in checked.errors and checked.code == 0
    if not is_same:
        _show("torchrun", plain)
        _show("course run", ours)
    if not is_quiet:
        _show("checked", checked)
    ratio = ours.seconds / plain.seconds
    cells = (
        shape.about,
        str(shape.ranks),
        "same" if is_same else "different",
        f"{plain.seconds:.1f} s",
        f"{ours.seconds:.1f} s",
        f"{ratio:.2f}",
        "none" if is_quiet else "false alarm",
    )
    return f"| {' | '.join(cells)} |", ratio, is_same and is_quiet


def bugs_page(names: Sequence[str]) -> Iterator[str]:
    """Run the bugs and yield the page's lines."""
    rows: list[tuple[Bug, str, bool, bool]] = []
    with tempfile.TemporaryDirectory() as folder:
        for bug in (each for each in BUGS if not names or each.script in names):
            rows.append((bug, *_explain(bug, Path(folder))))
            print(rows[-1][1], file=sys.stderr, flush=True)
    yield from ("# Thirty bugs under torchrun and under `course run`", "")
    yield (
        f"A hang under torchrun was ended after {_HANG_S:.0f} s, of which the start took up to half. Silent "
        "faults: with --check-steps 20."
    )
    yield ""
    for kind in (HANG, SILENT, CRASH):
        these = [row for row in rows if row[0].kind == kind]
        yield (
            f"- {kind}: rank and line named by torchrun in {sum(p for *_, p, _ in these)} of {len(these)}, "
            f"by `course run` in {sum(c for *_, c in these)}."
        )
    yield from ("", "| kind | bug | torchrun | course run |", "|---|---|---|---|")
    yield from (row for _, row, *_ in rows)


def _explain(bug: Bug, folder: Path) -> tuple[str, bool, bool]:
    """Return the row of a bug, and whether torchrun and `course run` name its rank and lines."""
    script = folder / f"{bug.script}.py"
    script.write_text(bug.text(), encoding="utf-8")
    ranks, args = bug.shape.ranks, bug.shape.args
    plain = under_torchrun(script, ranks, args, _HANG_S if bug.kind == HANG else 180.0)
    ours = in_this_process(script, ranks, args, *(CHECK if bug.kind == SILENT else ()))
    named = [all(bug.is_named(ending)) for ending in (plain, ours)]
    words = [_describe(bug, ending) for ending in (plain, ours)]
    if not named[1]:
        _show(f"course run (lines {bug.line_numbers()})", ours)
    row = f"| {bug.kind} | {bug.script}.py: {bug.about} | {words[0]} | {words[1]} |"
    return row, named[0], named[1]


def _describe(bug: Bug, ending: Ending) -> str:
    """Describe which of rank and lines the text names."""
    has_rank, has_lines = bug.is_named(ending)
    if ending.code is None:
        return "nothing: hangs"
    if ending.code == 0:
        return "nothing"
    if has_rank and has_lines:
        return "rank and line"
    return "line" if has_lines else "rank" if has_rank else "neither"


def _show(way: str, ending: Ending) -> None:
    print(f"--- {way}: {ending.code}\n{ending.text[-3000:]}\n---", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
