"""A job under torchrun: for each node its command and how it ended, a lane for each of its workers.

No times, ports, process ids or folders: the same from run to run if what the workers print is.
"""

from __future__ import annotations

import re
from html import escape

from helpers.jobs.run import Agent, Round, TorchrunRun, Worker, describe_exit, only_follows
from helpers.views.plain import WRAPPED, clean, lines_of, plural

_RED = "rgb(200, 74, 0)"
_GREY = "rgba(128, 128, 128, 0.45)"


def agents_text(run: TorchrunRun) -> str:
    """Write the lanes as text."""
    parts = []
    for agent in run.agents:
        parts.append(f"node {agent.node}: {command_of(agent)}")
        for made in agent.rounds:
            if len(agent.rounds) > 1:
                parts.append(f"  {_title(made)}")
            for worker in made.workers:
                lines = [*lines_of(worker.output), *_end_lines(worker)]
                parts += [f"  {_name(worker)} | {line}".rstrip() for line in lines]
        parts.append(f"  agent {describe_exit(agent.exitcode)}")
    if run.failure is not None:
        parts.append(f"{type(run.failure).__name__}: {run.failure}")
    return "\n".join(parts)


def agents_html(run: TorchrunRun) -> str:
    """Draw the lanes as HTML: the failure first, then each node with its workers."""
    banner = ""
    if run.failure is not None:
        text = f"<b>{type(run.failure).__name__}</b>: {escape(clean(str(run.failure)))}"
        style = f"border-left: 6px double {_RED}; padding: 4px 10px; white-space: pre-wrap"
        banner = _div(text, style)
    nodes = "".join(_agent_html(agent) for agent in run.agents)
    return _div(banner + nodes, "line-height: 1.45; max-width: 70em; text-align: left")


def command_of(agent: Agent) -> str:
    """Write an agent's command for a reader: its port and its script's folder left out."""
    words = []
    for word in agent.command:
        word = re.sub(r"^(127\.0\.0\.1:)\d{2,}$", r"\1PORT", word)
        words.append(word.rsplit("/", 1)[-1] if word.startswith("/") else word)
    for index, word in enumerate(words[:-1]):
        if word == "--master-port":
            words[index + 1] = "PORT"
    return " ".join(words)


def _agent_html(agent: Agent) -> str:
    code = f'<code style="font-size: 90%">{escape(command_of(agent))}</code>'
    head = _div(f"<b>node {agent.node}</b> {code}", "margin-top: 6px")
    body = ""
    for made in agent.rounds:
        if len(agent.rounds) > 1:
            body += _div(escape(_title(made)), "opacity: 0.7; font-size: 90%; margin-top: 4px")
        body += "".join(_worker_html(worker) for worker in made.workers)
    bad = agent.exitcode != 0
    end = _div(escape(f"agent {describe_exit(agent.exitcode)}"), "opacity: 0.7; font-size: 90%")
    edge = f"6px double {_RED}" if bad else f"2px solid {_GREY}"
    return head + _div(body + end, f"border-left: {edge}; padding-left: 10px; margin: 2px 0px")


def _worker_html(worker: Worker) -> str:
    room = "flex: 0 0 13em; white-space: nowrap; opacity: 0.7; font-weight: bold"
    name = _div(escape(_name(worker)), room)
    text = escape("\n".join([*lines_of(worker.output), *_end_lines(worker)]) or "printed nothing")
    style = f"margin: 0px; {WRAPPED}; color: inherit"
    return _div(name + f'<pre style="{style}">{text}</pre>', "display: flex; margin: 2px 0px")


def _name(worker: Worker) -> str:
    return f"rank {worker.rank} (local_rank {worker.local_rank})"


def _title(made: Round) -> str:
    size = f"{plural(made.world_size, 'worker')} on {plural(made.group_world_size, 'node')}"
    return f"restart {made.restart}: {size}, {made.ending}"


def _end_lines(worker: Worker) -> list[str]:
    if worker.exitcode is None and (not worker.error or only_follows(worker)):
        return []
    if worker.error:
        return [
            f"(raised {line})" if not index else line
            for index, line in enumerate(lines_of(worker.error))
        ]
    return [f"({describe_exit(worker.exitcode)})"]


def _div(content: str, style: str = "") -> str:
    return f'<div style="{style}">{content}</div>'
