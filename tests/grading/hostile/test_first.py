from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from helpers.grading.grader import Grader
from helpers.grading.references import References
from tests.grading.hostile.attack import TOUCHED, hand_in, text_of
from tests.grading.hostile import values, wire

ALL = {"values": values.VALUES, "wire": wire.WIRE}


@pytest.mark.parametrize("which", sorted(ALL))
def test_all(grader: Grader, tmp_path: Path, which: str) -> None:
    grader.references = References(None, grader.plan, 3)
    bad = []
    for a in ALL[which]:
        t = time.monotonic()
        try:
            rec = hand_in(grader, tmp_path / a.name.replace("/", "_"), [a])[a.name]
        except BaseException as e:
            bad.append((a.name, "RAISED", repr(e)[:300])); continue
        text = text_of(rec)
        ok = rec.points == 0 and rec.outcome in a.outcomes and a.says in text and TOUCHED not in text
        if not ok:
            bad.append((a.name, rec.outcome, rec.points, text[:700]))
        print(f"{a.name:50} {rec.outcome:10} {time.monotonic()-t:.2f}", file=sys.stderr)
    for b in bad: print(*b, file=sys.stderr)
    assert not bad
