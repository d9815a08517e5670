"""Programs that really fail, for `diagnose_exit`: drawn by the check, run inside the rank.

failures(rng) --programs, expected names--> Case --> run_and_ask (in the rank) --> names
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

TIMEOUT = "timeout"
_PATIENCE_S = 5.0
_SHORT_S = 0.4
_EXCEPTIONS = {
    "ZeroDivisionError": "print(1 / 0)",
    "KeyError": "config = {'lr': 0.1}\nprint(config['momentum'])",
    "IndexError": "ranks = [0, 1]\nprint(ranks[2])",
    "ValueError": "int('two: or three')",
    "AttributeError": "(0.1).item()",
    "AssertionError": "assert 4 % 3 == 0",
}
_DOTTED = {
    "JSONDecodeError": "import json\njson.loads('{lr: 0.1}')",
    "InvalidOperation": "from decimal import Decimal\nDecimal(0) / Decimal(0)",
}
"""Exceptions that a traceback names together with their module: `json.decoder.JSONDecodeError`."""
_CHATTY = {
    "ValueError": "raise ValueError('lr must be below 0.5, or KeyError: follows')",
    "RuntimeError": "raise RuntimeError('TypeError in layer 0.weight: see above')",
}
"""Exceptions whose message holds dots, colons and the names of others."""
_NOT_ERRORS = {
    "StopIteration": "next(iter([]))",
    "GeneratorExit": "raise GeneratorExit",
}
"""Exceptions whose name does not end in Error."""
_SIGNALS = ("SIGSEGV", "SIGABRT", "SIGFPE", "SIGILL", "SIGBUS")
_KILL = "import os, signal\nos.kill(os.getpid(), signal.{name})"
_WAIT = "import signal\nsignal.pause()"


@dataclass(frozen=True)
class Failure:
    """A program, how long it may run, and the name of what ends it."""

    program: str
    name: str
    patience_s: float = _PATIENCE_S


def plain_failures(rng: random.Random) -> list[Failure]:
    """Draw one signal, one exception and one timeout, each without anything that misleads."""
    name = rng.choice(_SIGNALS)
    kind, program = rng.choice(sorted(_EXCEPTIONS.items()))
    return [
        Failure(_KILL.format(name=name), name),
        Failure(program, kind),
        Failure(_WAIT, TIMEOUT, _SHORT_S),
    ]


def misleading_failures(rng: random.Random) -> list[Failure]:
    """Draw failures that mislead: noise on stderr, an exception on the way to another, SIGKILL.

    Also an exception with its module, one with a chatty message, and one that is no ...Error.
    """
    name = rng.choice(_SIGNALS)
    (kind, program), (first, before) = rng.sample(sorted(_EXCEPTIONS.items()), 2)
    dotted, last = rng.choice(sorted(_DOTTED.items()))
    chatty, talks = rng.choice(sorted(_CHATTY.items()))
    bare, stops = rng.choice(sorted(_NOT_ERRORS.items()))
    warns = "import sys\nprint('UserWarning: lr is large', file=sys.stderr, flush=True)\n"
    return [
        Failure(f"import faulthandler\nfaulthandler.enable()\n{_KILL.format(name=name)}", name),
        Failure(f"try:\n{_indent(before)}\nexcept {first}:\n{_indent(program)}", kind),
        Failure(last, dotted),
        Failure(talks, chatty),
        Failure(stops, bare),
        Failure(_KILL.format(name="SIGKILL"), "SIGKILL"),
        Failure(warns + _WAIT, TIMEOUT, _SHORT_S),
    ]


def _indent(program: str) -> str:
    return "\n".join("    " + line for line in program.splitlines())


def run_and_ask(
    answer: Callable[[int, str, bool], str],
    rank: int,
    world_size: int,
    programs: Sequence[str],
    patience_s: Sequence[float],
) -> list[str]:
    """Run each program until it ends or its time is up, and ask `answer` for what ended it.

    Called in the rank, as the exercise's programme. Prints what `answer` was given.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # a crash here leaves no core file behind
    names = []
    for program, seconds in zip(programs, patience_s, strict=True):
        returncode, stderr, timed_out = _run(program, seconds)
        ending = (stderr.splitlines() or [""])[-1]
        print(f"returncode={returncode}, last line of stderr={ending!r}, timed_out={timed_out}")
        names.append(answer(returncode, stderr, timed_out))
    return names


def _run(program: str, patience_s: float) -> tuple[int, str, bool]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},  # newer Pythons may colour their tracebacks
    )
    try:
        _, stderr = process.communicate(timeout=patience_s)
        return process.returncode, stderr, False
    except subprocess.TimeoutExpired:
        process.kill()
        _, stderr = process.communicate()
        return process.returncode, stderr, True
