"""18.4 Diagnose an exit (10 min, ●●○○○, further)

- Which of the three arguments can be trusted whatever the other two say? Test that one first.
- First `timed_out`, then a negative `returncode`: it is minus the signal's number, and
  `signal.Signals(11).name` is the name of number 11. Every other program has named its exception in
  `stderr`: in which line?
- For an exception: `stderr.strip().splitlines()[-1]` is the last line; cut it at the first ':', and of what
  is before the ':' take the part after the last '.'.
"""

from textwrap import indent
from typing import Any

from helpers.checks.author import *
from helpers.exercises.nb18_torchrun.in_ranks import run_and_ask

TIMEOUT, PATIENCE_S, SHORT_S = "timeout", 20.0, 0.12
PLAIN = {
    "ZeroDivisionError": "print(1 / 0)",
    "KeyError": "config = {'lr': 0.1}\nprint(config['momentum'])",
    "IndexError": "ranks = [0, 1]\nprint(ranks[2])",
    "ValueError": "int('two: or three')",
    "AttributeError": "(0.1).item()",
    "AssertionError": "assert 4 % 3 == 0",
}
DOTTED = {
    "JSONDecodeError": "import json\njson.loads('{lr: 0.1}')",
    "InvalidOperation": "from decimal import Decimal\nDecimal(0) / Decimal(0)",
    "BrokenBarrierError": "import threading\nraise threading.BrokenBarrierError",
}
"""Exceptions that a traceback names with their module, such as `json.decoder.JSONDecodeError`."""
CHATTY = {
    "ValueError": "raise ValueError('lr must be below 0.5, or KeyError: follows')",
    "RuntimeError": "raise RuntimeError('TypeError in layer 0.weight: see above')",
    "TooHot": "class TooHot(Exception): pass\nraise TooHot('GPU 0: 99.5 degrees, ValueError')",
}
"""Exceptions whose message contains dots, colons and the names of other exceptions."""
NO_ERRORS = {"StopIteration": "next(iter([]))", "GeneratorExit": "raise GeneratorExit"}
"""Exceptions without a message, whose name does not end in Error."""
SIGNALS = ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS", "SIGTERM")
NOISE = (
    "",
    "import faulthandler\nfaulthandler.enable()\n",
    "import sys\nprint('UserWarning: lr is large', file=sys.stderr, flush=True)\n",
    "import traceback\ntry:\n    [][0]\nexcept IndexError:\n    traceback.print_exc()\n",
)


def case(draw: Draw) -> Case:
    kind = draw.of(
        "plain", "on the way", "dotted", "chatty", "no error", "signal", "signal", "timeout"
    )
    noise, patience = draw.of(*NOISE), PATIENCE_S
    if kind == "timeout":
        right, program, patience = TIMEOUT, "import signal\nsignal.pause()", SHORT_S
    elif kind == "signal":
        right = draw.of("SIGKILL", "", "") or draw.of(*SIGNALS)
        program = f"import os, signal\nos.kill(os.getpid(), signal.{right})"
    else:
        kinds = {"dotted": DOTTED, "chatty": CHATTY, "no error": NO_ERRORS}.get(kind, PLAIN)
        right, program = draw.of(*kinds.items())
    if kind == "on the way":  # these exceptions come before the one that ends the program
        first, before = draw.rng.choice([pair for pair in PLAIN.items() if pair[0] != right])
        program = f"try:\n{indent(before, '    ')}\nexcept {first}:\n{indent(program, '    ')}"

    def judged(got: Any, rank: int) -> str:
        said, given = got["name"], got["given"][:200]
        return "" if same(right, said) else f"{said!r} is not {right!r}. It was given {given}"

    return Case(
        f"a program that ends by {right}" + (", after other output" if noise else ""),
        [(noise + program, patience)],
        right=judged,
        like={"name": None, "given": ""},
    )


EXERCISE = Exercise(case, kind=Kind.MODULE, driver=run_and_ask, sizes=(1,))
