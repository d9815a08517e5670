"""All texts use the field's terms and plain syntax, from notebooks and messages to comments and tests."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from bisect import bisect
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

INSTEAD = {
    r"(?<!drywall )\bwalls?\b(?!.(time|clock))": "sandbox",
    r"\broads?\b": "way, bypass",
    r"\blaps?\b": "timing, timed run",
    r"\b(a life|lives of)\b": "attempt",
    r"\bon (its|their) way\b": "in flight",
    r"\btravel(s|led|ling)?\b": "is sent",
    r"\bmeetings?\b": "collective call, rendezvous",
    r"\bnonsense\b": "poison values",
    r"\b(is|are|was|were|been|be) told\b": "reported, shown, warned",
    r"\bdear(er|est)?\b": "expensive, slow",
    r"\b[Ww]hoever\b": "a rank that, any rank that, learners who",
    r"\b[Bb]eside\b": "next to, in addition to, compared with",
    r"\bfor ever\b": "forever",
    r"\bin vain\b": "for nothing",
    r"\b(of|in|for|than|at most|exactly|needs|has) so many\b": "that many",
    r"\b(stands?|lies?|lay|stood) in\b": "is in",
    r"\banew\b": "again",
    r"\bthere and back\b": "forward and backward",
    r"\b(some|any)body else's\b": "another's",
    r"\b[Pp]rogrammes?\b": "program",
    r"(?<!here )\b(is|are|was|were) no (?!longer|more|other|less|better|worse)\w+": "is not a",
}
"""What not to write (a regular expression) -> what to write."""
SYNTAX = {
    r"(?:^|[.;] )Of (?:an?|the|each|several|two|those|all|these|it|what)\b": "begin with the subject",
    r"\b(?:has|have|had) gone\b(?! (?:through|to|up|down|by|into|over|back)\b)": "exited, disconnected",
    r"\b[Gg]o(?:es|ing)? on\b(?![\"'])|\bwent on\b": "continue",
    r"\bhand(?:s|ed|ing)? (?:\{|\d|different |whole |bytes|tensors|gradients)": "pass",
    r"\b(?:[Gg]ives?|gave|given|giving) back\b|\b(?:parts?|value) came back\b": "return",
    r"\b(?:becomes?|became|came|comes?) of (?:it|them|an?|each|one|the)\b": "result",
    r"\b(?:stands?|stood|standing) (?:still|at\b|there|below|between)": "is, is blocked",
    r"\b(?:no|some|any)body (?:waits?|waited|sends?|reads?|holds?|asks?|knows?|keeps?|looks?)\b": "a rank",
    r"\b[Aa]nother (?:order|size|rate|learning rate|number of|form)\b": "a different",
    r"\b[Ee]qually (?:many|long|often)\b": "the same number of",
    r"speaks? against|fails? of itself|(?:reports?|tells?|said) of (?:it|them)sel": "say what happened",
    r"(?:is|are|was) called so\b|\bfails? so\b|broken so\b": "say how",
    r"; (?:once|twice|\{x\}) (?:is|are) right\b": "expected: ...",
    r"(?:once|until|when|if|before|all) (?:\w+ ){0,3}(?:is|are) there\b": "exists, is ready, has arrived",
    r"\bcomes? on top\b|\b(?:fullest|commonest)\b|\bthat (?:is|are) none\b": "is added; largest; most common",
}
"""Syntax that makes a reader read a sentence twice (a regular expression) -> what to write."""
FIRST_WORD = re.compile(r"(?:Tell|Say|Give|Let|Know|Hear|Have)\b")
"""A docstring that begins with these does not say what its function does."""
NAME = re.compile(
    r"_?(?:told|held|near|far|beside|tried|asked|wanted|drawn|judged|looks?|knows?|seen|kept|said|gone|goes|"
    r"comes?|came|here|there|so|then|back|away|together|apart|alone|instead|given|shown|checked)|"
    r"_?(?:of|at|what|who|as_if)_.*|"
    r"(?:.*_)?(?:nobody|somebody|anybody|whoever|beside|goes_on|go_on|anew)(?:_.*)?"
)
"""A function, class or module with such a name does not say what it does or is."""
ALLOWED_NAMES = {
    "who_hangs": "an exercise: notebooks of learners contain it",
    "shrink_and_go_on": "an exercise: notebooks of learners contain it",
    "here": "the map marks the notebook that the reader sees: you are here",
    "_look": "how a mark is drawn; `Look` in palette.py is the style",
    "Look": "as above",
}
"""Name -> the reason why it stays."""
ALLOWED = re.compile(
    r"wall_|_wall|"  # names of files and options
    r"program=|\.program\b|programs/"
)


def prose_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of all prose in a file."""
    if path.suffix == ".ipynb":
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "markdown":
                yield cell["id"], "".join(cell["source"])
            else:
                yield from _prose_of_code("".join(cell["source"]), cell["id"])
    elif path.suffix == ".answers":
        # programs as learners write them, with a sentence above each
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if line.startswith("# ") and not line.startswith("# %%"):
                yield f"line {number}", line
    elif path.suffix == ".py":
        yield from _prose_of_code(path.read_text(), "line")
    else:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"line {number}", line


def _prose_of_code(source: str, place: str) -> Iterator[tuple[str, str]]:
    """Yield comments, docstrings and other texts that are longer than a name."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            is_text = token.type in (tokenize.STRING, tokenize.COMMENT)
            if is_text and " " in token.string:
                yield f"{place} {token.start[0]}", token.string
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return  # a cell with magics: its Markdown neighbors say the same


def definitions(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, name and first line of the docstring of the module and of each function and class in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            line, name = (
                (1, path.stem) if isinstance(node, ast.Module) else (node.lineno, node.name)
            )
            yield line, name, (ast.get_docstring(node) or "").split("\n")[0]


def is_vague(name: str) -> bool:
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().removeprefix("test_")
    return NAME.fullmatch(words) is not None and name not in ALLOWED_NAMES


def files() -> list[Path]:
    found = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("solutions/*.ipynb")]
    found += ROOT.glob("helpers/course/quizzes/*.toml")
    found += ROOT.glob("helpers/**/*.py")
    found += ROOT.glob("helpers/**/*.answers")
    found += (path for path in ROOT.glob("tests/**/*.py") if path != Path(__file__).resolve())
    return sorted(found)


def problems(path: Path) -> list[str]:
    found = []
    # a sentence may continue on the next line
    prose = [
        (place, re.sub(r"\s*\n[\s#]*", " ", text.lstrip("rf\"'# ")))
        for place, text in prose_of(path)
    ]
    # search all texts at once, because a file has thousands
    whole = "\n".join(text for _, text in prose)
    starts = [*accumulate((len(text) + 1 for _, text in prose), initial=0)]
    for wrong, right in [*INSTEAD.items(), *SYNTAX.items()]:
        for match in re.finditer(wrong, whole, re.MULTILINE):
            place, text = prose[number := bisect(starts, match.start()) - 1]
            start, end = match.start() - starts[number], match.end() - starts[number]
            around = text[max(0, start - 40) : end + 40]
            if not ALLOWED.search(around):
                found.append(f"{place}: {match[0]!r} -> {right}: ...{around}...")
    for line, name, text in definitions(path) if path.suffix == ".py" else ():
        if FIRST_WORD.match(text):
            found.append(f"line {line}: {text!r} -> Return, Run, Read, Raise, Check, ...")
        # programs are written as strangers write them
        if "programs" not in path.parts and is_vague(name):
            found.append(f"line {line}: rename {name}: it does not say what it does or is")
    return found


def test_texts_use_established_terms() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {problem}" for path in files() for problem in problems(path)
    ]
    assert not found, "\n".join(found)
