"""How many rounds an algorithm may take, where a rank sends one message and takes one in a round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from helpers.checks.rules import Case
from helpers.trace.events import Message, Trace
from helpers.views.one_port import port_rounds
from helpers.views.plain import plural


@dataclass(frozen=True)
class PortRounds:
    """All messages together take at most this many rounds.

    Two messages that leave (or reach) one rank are two rounds, even if neither depends on the other: this is
    what the formulas with latency and bandwidth count.
    """

    amount: Callable[[Case], int]
    why: str = ""
    text: str = "takes no more rounds than needed"
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        rounds, most = port_rounds(trace), self.amount(case)
        if len(rounds) <= most:
            return ""
        are = "is" if most == 1 else "are"
        why = f" {self.why}" if self.why else ""
        return (
            f"the messages take {plural(len(rounds), 'round')}; {most} {are} enough "
            f"(in the last one: {_arrows(rounds[-1])}).{why}"
        )


def _arrows(messages: tuple[Message, ...]) -> str:
    shown = ", ".join(f"{m.src} → {m.dst}" for m in messages[:4])
    return shown + (", …" if len(messages) > 4 else "")
