"""Sort a run's messages into rounds: in a round, a rank sends one message and takes one.

    Trace -> port_rounds() -> views/rounds (the picture), checks/rules (the rule)

This is the one-port model of the cost formulas: two messages that leave the same rank cost two
rounds, and so do two that arrive at the same rank; a rank can send in the round in which it takes.
Only the order in which each rank made its calls counts, not how long they took, so that a
program gives the same rounds in each run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from helpers.ranks.run import Run
from helpers.trace.events import Event, Message, Trace
from helpers.views.picture import trace_of


def port_rounds(run_or_trace: Run | Trace) -> tuple[tuple[Message, ...], ...]:
    """Return the messages that were received, round by round, each round in the order of sources.

    Greedy: a message goes as soon as its sender has sent and received all that it had to before.
    Raises TypeError for anything but a Run or a Trace.
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
            # of several that want to go to one rank, the one goes that this rank takes first
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
    """Return the number of rounds. Copies of notebook 05 that were made before version 0.4 import it."""
    return len(port_rounds(run_or_trace))


def _receives(steps: list[tuple[str, Message]]) -> list[tuple[int, tuple[str, Message]]]:
    return [(n, step) for n, step in enumerate(steps) if step[0] == "recv"]


def _steps(trace: Trace, rank: int) -> list[tuple[str, Message]]:
    """Return what one rank sends and receives, in the order in which that counts for it."""
    received = [m for m in _received(trace) if rank in (m.src, m.dst)]
    steps = [(_order(m.send), "send", m) for m in received if m.src == rank]
    steps += [(_order(m.recv), "recv", m) for m in received if m.recv and m.dst == rank]
    return [(kind, message) for _, kind, message in sorted(steps, key=lambda step: step[0])]


def _received(trace: Trace) -> Iterable[Message]:
    world = range(trace.world_size)
    return (m for m in trace.messages() if m.recv is not None and m.src in world and m.dst in world)


def _order(event: Event) -> tuple[int, int]:
    """A send counts from its call on; what an `irecv` brings, only once the rank has waited for it."""
    moment = event.start_ns
    if event.op == "recv" and event.asynchronous:
        moment = event.wait_ns or event.end_ns or sys.maxsize
    return moment, event.seq


def _next_send(steps: list[tuple[str, Message]], arrived: set[int]) -> Message | None:
    """Drop the receives that are done, and give the send that stands first; None while one is not."""
    while steps and steps[0][0] == "recv" and id(steps[0][1].send) in arrived:
        steps.pop(0)
    return steps[0][1] if steps and steps[0][0] == "send" else None
