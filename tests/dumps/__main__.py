"""Print what `course explain` and torch's analyzer say about each case: `python -m tests.dumps`."""

from __future__ import annotations

from helpers.dumps.explain import explain_folder
from tests.dumps.verdicts import CASES, EXPECTED, torch_verdict


def rows() -> list[tuple[str, str, str]]:
    """Return case, torch's verdict and the course's verdict."""
    found = []
    for name in EXPECTED:
        theirs = torch_verdict(CASES / name)
        if theirs.startswith("fails: KeyError"):
            theirs += f" (with names added: {torch_verdict(CASES / name, add_names=True)})"
        explanation = explain_folder(CASES / name)
        ours = explanation.diagnosis.summary if explanation.diagnosis else "nothing is suspicious"
        found.append((name, theirs, ours))
    return found


if __name__ == "__main__":
    print("| case | torchfrtrace | course explain |", "|---|---|---|", sep="\n")
    for name, theirs, ours in rows():
        print(f"| {name} | {theirs} | {ours} |")
