"""Sort a run's messages into rounds, in which each rank sends at most one and receives at most one.

    Trace -> port_rounds() -> views/rounds (the picture), checks/rules (the rule)

This is the one-port model of the cost formulas: two messages from the same rank take two rounds, and so do
two messages to the same rank. However, a rank can send and receive in one round. Only the order of each
rank's calls matters, not their duration, so a program has the same rounds in each run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from helpers.ranks.run import Run
from helpers.trace.events import Event, Message, Trace
from helpers.views.picture import trace_of


def port_rounds(run_or_trace: Run | Trace) -> tuple[tuple[Message, ...], ...]:
    """Return the received messages, round by round, each round in the order of sources.

    The rounds are chosen greedily: a message is sent as soon as its sender has sent and received all earlier
    messages. Raises TypeError for anything but a Run or a Trace.
    """
    trace = trace_of(run_or_trace)
    waiting = [_steps(trace, rank) for rank in range(trace.world_size)]
    place = {id(step[1].send): n for steps in waiting for n, step in _receives(steps)}
    rounds: list[tuple[Message, ...]] = []
    arrived: set[int] = set()
    while True:
        one_for_each: dict[int, Message] = {}
        for steps in waiting:
            message = _next_send(steps, arrived)
            # if several messages could be sent to one rank, choose the one that the rank receives first
            if message is not None:
                rival = one_for_each.setdefault(message.dst, message)
                if place[id(message.send)] < place[id(rival.send)]:
                    one_for_each[message.dst] = message
        if not one_for_each:
            return tuple(rounds)
        going = sorted(one_for_each.values(), key=lambda message: message.src)
        for message in going:
            waiting[message.src].pop(0)
        arrived |= {id(message.send) for message in going}
        rounds.append(tuple(going))


def count_rounds(run_or_trace: Run | Trace) -> int:
    """Return the number of rounds. Copies of notebook 05 from before version 0.4 import this function."""
    return len(port_rounds(run_or_trace))


def _receives(steps: list[tuple[str, Message]]) -> list[tuple[int, tuple[str, Message]]]:
    return [(n, step) for n, step in enumerate(steps) if step[0] == "recv"]


def _steps(trace: Trace, rank: int) -> list[tuple[str, Message]]:
    """Return one rank's sends and receives in the order in which they take effect."""
    received = [m for m in _received_messages(trace) if rank in (m.src, m.dst)]
    steps = [(_effect_order(m.send), "send", m) for m in received if m.src == rank]
    steps += [(_effect_order(m.recv), "recv", m) for m in received if m.recv and m.dst == rank]
    return [(kind, message) for _, kind, message in sorted(steps, key=lambda step: step[0])]


def _received_messages(trace: Trace) -> Iterable[Message]:
    world = range(trace.world_size)
    return (m for m in trace.messages() if m.recv is not None and m.src in world and m.dst in world)


def _effect_order(event: Event) -> tuple[int, int]:
    """Return a sort key: a send takes effect when called, an `irecv` when the rank has waited for it."""
    moment = event.start_ns
    if event.op == "recv" and event.asynchronous:
        moment = event.wait_ns or event.end_ns or sys.maxsize
    return moment, event.seq


def _next_send(steps: list[tuple[str, Message]], arrived: set[int]) -> Message | None:
    """Remove completed receives, and return the next send, or None."""
    while steps and steps[0][0] == "recv" and id(steps[0][1].send) in arrived:
        steps.pop(0)
    return steps[0][1] if steps and steps[0][0] == "send" else None
