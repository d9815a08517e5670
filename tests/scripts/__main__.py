"""Run all scripts and all bugs under torchrun and under `course run`, and write figures.md.

`python -m tests.scripts NAME ...` runs only those scripts and their bugs, and writes nothing.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.scripts.bugs import BUGS, CRASH, HANG, SILENT, Bug
from tests.scripts.shapes import SHAPES, Ending, Shape, under_course_run, under_torchrun

PAGE = Path(__file__).with_name("figures.md")
CHECK = ("--check-steps", "20")
# torch itself reports a hang after 30 minutes. It is given this many times what the right script takes.
_PATIENCE = 2.0
_MIN_HANG_S = 20.0


def clean_row(shape: Shape) -> tuple[str, float, bool, float]:
    """Run a right script both ways and checked.

    Returns:
        Its row, the ratio of times, whether all agree, and torchrun's seconds.
    """
    script = shape.folder / f"{shape.name}.py"
    plain = under_torchrun(script, shape.ranks, shape.args)
    ours = under_course_run(script, shape.ranks, shape.args)
    checked = under_course_run(script, shape.ranks, shape.args, *CHECK)
    same = ours.lines() - plain_noise(plain) == plain.lines() and ours.code == plain.code
    is_quiet = "Silent fault" not in checked.errors and checked.code == 0
    ratio = ours.seconds / plain.seconds
    row = (
        f"| {shape.about} | {shape.ranks} | {'same' if same else 'different'} | "
        f"{plain.seconds:.1f} s | {ours.seconds:.1f} s | {ratio:.2f} | "
        f"{'none' if is_quiet else 'false alarm'} |"
    )
    if not same:
        report("torchrun", plain)
    if not same or not is_quiet:
        report("course run", ours if not same else checked)
    return row, ratio, same and is_quiet, plain.seconds


def plain_noise(plain: Ending) -> Counter[str]:
    """Return what torchrun's workers wrote to stderr, which `course run` shows among the output."""
    return Counter(plain.errors.splitlines())


def report(way: str, ending: Ending) -> None:
    print(f"--- {way}: {ending.code}\n{ending.text[-3000:]}\n---", file=sys.stderr, flush=True)


def bug_row(bug: Bug, folder: Path, usual_s: float) -> tuple[str, bool, bool]:
    """Run a bug both ways. Return its row, and whether torchrun and `course run` named rank and lines."""
    script = folder / f"{bug.script}.py"
    script.write_text(bug.text(), encoding="utf-8")
    ranks, args = bug.shape.ranks, bug.shape.args
    limit_s = max(_MIN_HANG_S, _PATIENCE * usual_s) if bug.kind == HANG else 180.0
    plain = under_torchrun(script, ranks, args, limit_s)
    ours = under_course_run(script, ranks, args, *(CHECK if bug.kind == SILENT else ()))
    named = [all(bug.is_named(ending)) for ending in (plain, ours)]
    words = [
        f"{'rank and line' if is_named else describe(bug, ending)}"
        for is_named, ending in zip(named, (plain, ours), strict=True)
    ]
    if not named[1]:
        report(f"{bug.about}: torchrun", plain)
        report(f"{bug.about}: course run (lines {bug.line_numbers()})", ours)
    return f"| {bug.kind} | {bug.script}.py: {bug.about} | {words[0]} | {words[1]} |", *named


def describe(bug: Bug, ending: Ending) -> str:
    """Describe what a text lacks that does not name both rank and lines."""
    if ending.code is None:
        return "nothing: hangs"
    has_rank, has_lines = bug.is_named(ending)
    if ending.code == 0:
        return "nothing"
    return "lines" if has_lines else "rank" if has_rank else "neither"


def main(names: Sequence[str]) -> None:
    """Run what is named, or everything."""
    shapes = [shape for shape in SHAPES if not names or shape.name in names]
    results = []
    for shape in shapes:
        results.append(clean_row(shape))
        print(results[-1][0], flush=True)
    usual_s = {shape.name: result[3] for shape, result in zip(shapes, results, strict=True)}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for bug in (bug for bug in BUGS if bug.shape in shapes):
            rows.append((bug, *bug_row(bug, Path(folder), usual_s[bug.script])))
            print(rows[-1][1], flush=True)
    page = "\n".join(_page(results, rows)) + "\n"
    print(page)
    if not names:
        PAGE.write_text(page, encoding="utf-8")


def _page(
    results: Sequence[tuple[str, float, bool, float]], rows: Sequence[tuple[Bug, str, bool, bool]]
) -> Iterator[str]:
    good = sum(agrees for _, _, agrees, _ in results)
    ratio = statistics.median(ratio for _, ratio, *_ in results)
    yield "# Scripts under torchrun and under `course run`"
    yield ""
    yield (
        f"{good} of {len(results)} right scripts have the same output lines and exit code both ways and no "
        f"silent fault is reported. Median ratio of times: {ratio:.2f}. Both times include the start."
    )
    yield ""
    yield "| script | ranks | output and exit code | torchrun | course run | ratio | alarms in 20 steps |"
    yield "|---|---|---|---|---|---|---|"
    yield from (row for row, *_ in results)
    yield ""
    for kind in (HANG, SILENT, CRASH):
        these = [row for row in rows if row[0].kind == kind]
        yield (
            f"- {kind}: rank and line named by torchrun in {sum(p for *_, p, _ in these)} of {len(these)}, "
            f"by `course run` in {sum(c for *_, c in these)}."
        )
    yield ""
    yield "| kind | bug | torchrun | course run |"
    yield "|---|---|---|---|"
    yield from (row for _, row, *_ in rows)


if __name__ == "__main__":
    main(sys.argv[1:])
