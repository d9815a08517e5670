"""Draw jobs under torchrun and mpiexec: the commands, and a lane for each process with its ending.

Times, ports, process ids and folders are left out, so the result is reproducible if the processes' output is
reproducible.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from helpers.jobs.run import (
    Agent,
    MpiRun,
    Round,
    TorchrunRun,
    Worker,
    describe_exit,
    is_secondary_failure,
)
from helpers.views.html_boxes import border_left, div, muted
from helpers.views.plain import clean, plural, split_lines

_PRE = "margin: 0px; padding: 0px; white-space: pre-wrap; background: transparent; color: inherit"


def agents_text(run: TorchrunRun) -> str:
    """Write a job under torchrun as text."""
    parts = []
    for agent in run.agents:
        parts.append(f"node {agent.node}: {command_of(agent.command)}")
        for made in agent.rounds:
            if len(agent.rounds) > 1:
                parts.append(f"  {_title(made)}")
            for worker in made.workers:
                parts += [f"  {_name(worker)} | {x}".rstrip() for x in _worker_lines(worker)]
        parts.append(f"  agent {describe_exit(agent.exitcode)}")
    return "\n".join([*parts, *_failure_text(run)])


def agents_html(run: TorchrunRun) -> str:
    """Draw a job under torchrun: the failure first, then each node with its workers."""
    return _box(run, "".join(map(_agent_html, run.agents)))


def mpi_text(run: MpiRun) -> str:
    """Write a job under mpiexec as text."""
    parts = [command_of(run.command)]
    for rank, lines in enumerate(_mpi_lines(run)):
        parts += [f"  rank {rank} | {line}".rstrip() for line in lines]
    return "\n".join([*parts, *_failure_text(run)])


def mpi_html(run: MpiRun) -> str:
    """Draw a job under mpiexec: the failure first, then its ranks."""
    lanes = (_lane(f"rank {rank}", lines, "4.5em") for rank, lines in enumerate(_mpi_lines(run)))
    return _box(run, _command(run.command) + _frame("".join(lanes), not run.ok))


def command_of(command: Sequence[str]) -> str:
    """Write a command for a reader, without its port and its script's folder."""
    words = []
    for word in command:
        word = re.sub(r"^(127\.0\.0\.1:)\d{2,}$", r"\1PORT", word)
        words.append(word.rsplit("/", 1)[-1] if word.startswith("/") else word)
    for index, word in enumerate(words[:-1]):
        if word == "--master-port":
            words[index + 1] = "PORT"
    return " ".join(words)


def _failure_text(run: TorchrunRun | MpiRun) -> list[str]:
    failure = run.failure
    return [] if failure is None else [f"{type(failure).__name__}: {clean(str(failure))}"]


def _box(run: TorchrunRun | MpiRun, content: str) -> str:
    banner = ""
    if run.failure is not None:
        text = f"<b>{type(run.failure).__name__}</b>: {escape(clean(str(run.failure)))}"
        banner = div(
            text, f"border-left: {border_left(True)}; padding: 4px 10px; white-space: pre-wrap"
        )
    return div(banner + content, "line-height: 1.45; max-width: 70em; text-align: left")


def _command(command: Sequence[str]) -> str:
    return f'<code style="font-size: 90%">{escape(command_of(command))}</code>'


def _frame(content: str, bad: bool) -> str:
    return div(content, f"border-left: {border_left(bad)}; padding-left: 10px; margin: 2px 0px")


def _lane(name: str, lines: Sequence[str], width: str = "13em") -> str:
    room = f"flex: 0 0 {width}; white-space: nowrap; opacity: 0.7; font-weight: bold"
    text = f'<pre style="{_PRE}">{escape(chr(10).join(lines) or "printed nothing")}</pre>'
    return div(div(escape(name), room) + text, "display: flex; margin: 2px 0px")


def _agent_html(agent: Agent) -> str:
    head = div(f"<b>node {agent.node}</b> {_command(agent.command)}", "margin-top: 6px")
    body = ""
    for made in agent.rounds:
        if len(agent.rounds) > 1:
            body += div(escape(_title(made)), "opacity: 0.7; font-size: 90%; margin-top: 4px")
        body += "".join(_lane(_name(worker), _worker_lines(worker)) for worker in made.workers)
    body += muted(f"agent {describe_exit(agent.exitcode)}")
    return head + _frame(body, agent.exitcode != 0)


def _name(worker: Worker) -> str:
    return f"rank {worker.rank} (local_rank {worker.local_rank})"


def _title(round_of_job: Round) -> str:
    size = f"{plural(round_of_job.world_size, 'worker')} on {plural(round_of_job.group_world_size, 'node')}"
    return f"restart {round_of_job.restart}: {size}, {round_of_job.ending}"


def _worker_lines(worker: Worker) -> list[str]:
    lines = [*split_lines(worker.output)]
    if worker.exitcode is None and (not worker.error or is_secondary_failure(worker)):
        return lines
    if worker.error:
        first, *more = split_lines(worker.error) or ("",)
        return [*lines, f"(raised {first})", *more]
    return [*lines, f"({describe_exit(worker.exitcode)})"]


def _mpi_lines(run: MpiRun) -> list[list[str]]:
    errors = run.errors if run.failure is not None else ("",) * len(run.output)
    pairs = zip(run.output, errors, strict=True)
    return [[*split_lines(output), *split_lines(error)] for output, error in pairs]
