"""The programs of two pages run, and print the output shown there: DDP in twelve lines, and symptoms."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scripts.shapes import Ending, in_this_process

DOCS = Path(__file__).parents[2] / "docs"
LINES_PAGE, SYMPTOMS_PAGE = (DOCS / name for name in ("ddp-in-twelve-lines.md", "symptoms.md"))
_NUMBER = re.compile(r"\d+\.\d+")
_SECONDS = re.compile(r"\d+\.\d+ s\b")
_RELATIVE_TOLERANCE = 0.1
"""Processors round differently, and bfloat16 has three digits."""


def blocks(page: Path, language: str) -> list[str]:
    """Return the code blocks of a page that are marked with a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def single_script() -> str:
    return blocks(LINES_PAGE, "python")[0]


def diff_side(sign: str) -> str:
    """Return the script that the page's diff begins with ("-") or ends with ("+")."""
    (diff,) = blocks(LINES_PAGE, "diff")
    lines = [line for line in diff.splitlines() if not line or line[0] in {" ", sign}]
    return "".join(f"{line[1:]}\n" for line in lines)


def ddp_script() -> str:
    return diff_side("+")


def run_in(folder: Path, name: str, text: str, ranks: int, *options: str) -> Ending:
    (folder / name).write_text(text)
    return in_this_process(folder / name, ranks, (), *options)


# DDP in twelve lines


def test_diff_begins_with_single_script() -> None:
    assert diff_side("-") == single_script()


def test_page_lists_twelve_lines() -> None:
    added = [line.strip() for line in ddp_script().splitlines()]
    kept = [line.strip() for line in single_script().splitlines()]
    new = [line for line in added if line not in kept and "import" not in line]
    assert len(new) == 12
    assert len(re.findall(r"^\d+\. ", LINES_PAGE.read_text(), re.MULTILINE)) == 12


@pytest.mark.extended
def test_single_script_trains(tmp_path: Path) -> None:
    ending = run_in(tmp_path, "train.py", single_script(), 1)
    assert ending.code == 0, ending.text
    assert [line[:8] for line in ending.lines()] == ["epoch 0:", "epoch 1:", "epoch 2:"]
    assert (tmp_path / "model.pt").exists()


WITH = "        with nullcontext() if i % 2 == 1 else model.no_sync():\n            total"
WRAP = "model = DistributedDataParallel(model)\n"
REDUCE = "    dist.all_reduce(total, op=dist.ReduceOp.AVG)\n"
ON_ZERO = "    if dist.get_rank() == 0:\n"
MISTAKES: dict[str, tuple[tuple[str, str], ...]] = {
    "1 is missing": (("dist.init_process_group()\n", ""),),
    '2 uses `"cuda"` only': (("f\"cuda:{os.environ['LOCAL_RANK']}\"", '"cuda"'),),
    "4 has `shuffle=True`": (("sampler=sampler", "shuffle=True"),),
    "5 is missing": ((WRAP, ""),),
    "5 and 7 are missing": (
        (WRAP, ""),
        (WITH, "        total"),
        ("model.module", "model"),
    ),
    "6 is missing": (("    sampler.set_epoch(epoch)\n", ""),),
    "7 is missing": ((WITH, "        total"),),
    "7 is always `no_sync()`": ((WITH, "        with model.no_sync():\n            total"),),
    "8 is missing": ((REDUCE, ""),),
    "8 is inside `if`": ((REDUCE + ON_ZERO, f"{ON_ZERO}    {REDUCE}"),),
    "9 is missing": ((f"{ON_ZERO}        print", "    print"),),
    "10 is missing": (("if dist.get_rank() == 0:\n    torch.save", "torch.save"),),
    "11 saves `model`": (("model.module", "model"),),
    "12 is missing": (("dist.destroy_process_group()\n", ""),),
}
"""For each mistake in the page's table, the edits of the correct script that make it."""
QUICK = {"4 has `shuffle=True`", "6 is missing", "7 is missing"}


def table_rows() -> dict[str, str]:
    table = LINES_PAGE.read_text().partition("| mistake |")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()[2:]]
    return dict(rows)


def test_tests_cover_each_table_row() -> None:
    assert list(table_rows()) == list(MISTAKES)


def _case(name: str) -> object:
    return pytest.param(name, marks=() if name in QUICK else (pytest.mark.extended,))


@pytest.mark.sample(1)
@pytest.mark.parametrize("mistake", [_case(name) for name in MISTAKES])
def test_mistake_output_matches_page(tmp_path: Path, mistake: str) -> None:
    text = ddp_script()
    for old, new in MISTAKES[mistake]:
        assert text.count(old) == 1
        text = text.replace(old, new)
    ending = run_in(tmp_path, "train.py", text, 4, "--check-steps", "20")
    answer = table_rows()[mistake]
    if answer.startswith("nothing"):
        assert (ending.code, "No silent fault found" in ending.errors) == (0, True), ending.text
    else:
        assert ending.code
        assert answer in ending.errors
    if mistake == "6 is missing":
        (shown,) = re.findall(r"^```\n(Silent fault:.*?)^```$", LINES_PAGE.read_text(), re.M | re.S)
        assert " ".join(shown.split()) in " ".join(ending.errors.split())


# Blocks that begin with a command


def console_runs(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of a page, each with the lines that it prints."""
    for block in blocks(page, "console"):
        for part in block.split("$ ")[1:]:
            command, *lines = part.splitlines()
            yield command, lines


RUNS = [(page, *run) for page in (LINES_PAGE, SYMPTOMS_PAGE) for run in console_runs(page)]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("page", "command", "lines"),
    RUNS,
    ids=[f"{page.stem}-{i}" for i, (page, *_) in enumerate(RUNS)],
)
def test_command_prints_shown_lines(
    tmp_path: Path, page: Path, command: str, lines: list[str]
) -> None:
    course, run, *words = shlex.split(command)
    assert (course, run) == ("course", "run")
    script = next(word for word in words if word.endswith(".py"))
    at = words.index(script)
    options, arguments = words[:at], tuple(words[at + 1 :])
    ranks = int(options[options.index("--ranks") + 1])
    text = ddp_script() if page is LINES_PAGE else blocks(page, "python")[-1]
    (tmp_path / script).write_text(text)
    ending = in_this_process(tmp_path / script, ranks, arguments, *options)
    printed = ending.text.splitlines()
    missing = [line for line in lines if not any(is_same(line, each) for each in printed)]
    assert lines and missing == [], ending.text


def is_same(shown: str, printed: str) -> bool:
    """Return whether two lines are the same, except for times and the last digits of numbers."""
    shown, printed = (_SECONDS.sub("T s", line) for line in (shown, printed))
    if _NUMBER.sub("N", shown) != _NUMBER.sub("N", printed):
        return False
    pairs = zip(_NUMBER.findall(shown), _NUMBER.findall(printed), strict=True)
    return all(
        abs(float(a) - float(b)) <= _RELATIVE_TOLERANCE * abs(float(a)) + 1e-3 for a, b in pairs
    )


def test_symptoms_script_contains_snippets() -> None:
    *snippets, script = blocks(SYMPTOMS_PAGE, "python")
    plain = [line.partition("  #")[0].strip() for line in script.splitlines()]
    for snippet in snippets:
        for line in snippet.splitlines():
            assert line.partition("  #")[0].strip() in plain


def test_page_shows_all_symptoms() -> None:
    script = blocks(SYMPTOMS_PAGE, "python")[-1]
    symptoms = set(re.findall(r'symptom == "(\w+)"', script))
    shown = {command.split()[-1] for command, _ in console_runs(SYMPTOMS_PAGE)}
    assert symptoms <= shown
