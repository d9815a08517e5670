"""Run answers of notebook 18 with agents, workers, signals, and planted failures."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from helpers.checks.script_worker import ask
from helpers.checks.scripts import (
    ROOT,
    Source,
    compose,
    error_file,
    report,
    report_of,
    run_under_torchrun,
    under_fork,
)
from helpers.exercises.nb20_without_a_restart.in_ranks.failover import (
    backward,
    optimizer_of,
    small_model,
)
from helpers.exercises.shared.in_ranks.attempts import (
    Plan,
    ask_for_step,
    attempt,
    attempt_number,
    checkpoints,
    run_attempts,
    script_folder,
    wait_until,
)
from helpers.exercises.shared.in_ranks.classifier import grad_of
from helpers.jobs.owned import Owned
from helpers.jobs.ports import held_port
from helpers.jobs.torchrun import JobOptions, environment_of, start_job

AGENTS_S = 40.0
"""Time limit for real agents. They usually need 2 to 5 s, but thirty learners may share the machine."""
PATIENCE_S = 5.0
PREEMPTED = 75
"""Exit code of a worker that returned early, so that the next attempt starts."""


def two_nodes(
    answer: Source, rank: int, world_size: int, script: str, nproc: int, address: str, port: int
) -> dict[str, Any]:
    """Get the two commands and parse them as torchrun does. If `port` is 0, run them with real agents."""
    if not port:
        return _two_real_nodes(answer, nproc)
    commands = answer.build()(script, nproc, address, port)
    read = [_as_torchrun_reads(words) for words in _list(commands)]
    return {"values": [{"commands": _plain(commands), "read": read}]}


def _two_real_nodes(answer: Source, nproc: int) -> dict[str, Any]:
    """Run the answer's two commands as two agents on this machine."""
    script = compose(answer, where_am_i, ())
    with held_port() as port, Owned() as owned:
        commands = answer.build()(str(script), nproc, "127.0.0.1", port)
        env = environment_of({"PYTHONPATH": ROOT}, owned.folder)
        for node, words in enumerate(commands):
            argv = [sys.executable, "-m", "torch.distributed.run", *words[1:]]
            owned.start(f"node{node}", argv, env=env, cwd=script.parent)
        late = not owned.wait(AGENTS_S)
        exits = {} if late else dict(enumerate(owned.exits.values()))
        endings = {"late": late, "exits": exits}
        return report(script.parent, 2 * nproc, endings, [""] * (2 * nproc))


def _as_torchrun_reads(words: Any) -> dict[str, Any]:
    """Parse one command with torchrun's own parser; `problem` says why it cannot be parsed."""
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, str) for word in words):
        return {"problem": "not a list of strings"}
    if not words or words[0] != "torchrun":
        return {"problem": "its first word is not 'torchrun'"}
    from torch.distributed.run import get_args_parser

    said = StringIO()
    try:
        with redirect_stderr(said):
            found = get_args_parser().parse_args(list(words[1:]))
    except SystemExit:
        return {"problem": f"torchrun says: {' '.join(said.getvalue().strip().splitlines()[-1:])}"}
    return {name: _plain(value) for name, value in vars(found).items()}


def where_am_i(answer: object) -> dict[str, Any]:
    """Join the group in a worker; return the worker's place, and the sum of all ranks."""
    dist.init_process_group("gloo")
    total = torch.tensor(dist.get_rank())
    dist.all_reduce(total)
    found = {name: int(os.environ[name]) for name in ("RANK", "LOCAL_RANK", "GROUP_RANK")}
    dist.destroy_process_group()
    return {**found, "sum of ranks": int(total)}


ERRORS: dict[str, Callable[[str], Exception]] = {
    error.__name__: error for error in (ValueError, KeyError, RuntimeError, FileNotFoundError)
}
"""The exceptions that main may raise."""


def failing(
    answer: Source,
    rank: int,
    world_size: int,
    nproc: int,
    bad: Sequence[int],
    kind: str,
    text: str,
    real: bool,
) -> dict[str, Any]:
    """Call the answer in workers with a main function that raises on the ranks in `bad`."""
    script = compose(answer, run_main, (list(bad), kind, text))
    if real:
        # the agent itself reads the error file, so its report is what counts
        run = run_under_torchrun(script, nproc, timeout_s=AGENTS_S)
        found = report_of(run, script, nproc)
        told = {worker.rank: worker.error for worker in run.workers}
    else:
        found = under_fork(script, nproc, grace_s=5.0)
        told = {r: _read_error(error_file(script, r)) for r in range(nproc)}
    planted = str(ERRORS[kind](text))
    for r, error in enumerate(found["errors"]):
        if error is not None and r in bad and (error["kind"], error["message"]) == (kind, planted):
            found["errors"][r] = None  # the check itself raised this error
    values = [
        {
            "calls of main": len(list(script.parent.glob(f"called-{r}-*"))),
            "exit code": int(found["exits"].get(r, 0) != 0),
            "exception": _went_on(script.parent, r) if r in bad else "",
            "error file": told.get(r, ""),
            "other files": _elsewhere(script.parent / f"{r}"),
        }
        for r in range(nproc)
    ]
    if not any(found["errors"]):
        found["exits"] = {}
    return {**found, "values": values}


def run_main(
    answer: Callable[[Callable[[], None]], Any], bad: Sequence[int], kind: str, text: str
) -> None:
    """Pass the answer a main function that raises on the ranks in `bad`."""
    rank, folder = int(os.environ["RANK"]), Path(sys.argv[0]).parent
    # Relative paths of other files that the answer writes lead to this folder
    own = folder / str(rank)
    own.mkdir(exist_ok=True)
    os.chdir(own)
    tempfile.tempdir = str(own)

    def main() -> None:
        tempfile.mkstemp(prefix=f"called-{rank}-", dir=folder)
        if rank in bad:
            _wait_for_the_others(folder)  # an agent terminates the others as soon as one has failed
            raise ERRORS[kind](text)

    try:
        answer(main)
    except BaseException:
        (folder / f"raised-{rank}").touch()
        raise


def _went_on(folder: Path, rank: int) -> str:
    """Return "", or say that main's exception never left the answer.

    After `os._exit` only a file shows this.
    """
    return "" if (folder / f"raised-{rank}").exists() else "it never left your function"


def _elsewhere(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    return f"writes other files: {', '.join(names)}" if names else ""


def _wait_for_the_others(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    names = [f"called-{rank}-*" for rank in range(int(os.environ["WORLD_SIZE"]))]
    while not all(any(folder.glob(name)) for name in names) and time.monotonic() < deadline:
        time.sleep(0.01)


def _read_error(path: Path) -> str:
    try:
        message = json.loads(path.read_text(encoding="utf-8"))["message"]
        return str(message if isinstance(message, str) else message["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []


def _plain(value: Any) -> Any:
    """Return a value as types that can be sent."""
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value if isinstance(value, (str, int, float, type(None))) else repr(value)[:200]


# --- 18.3 -----------------------------------------------------------------------------------------


def survive(
    answer: Source, rank: int, world_size: int, sizes: list[int], plans: Sequence[Plan], *drawn: Any
) -> dict[str, Any]:
    """Run a training in attempts. `drawn` is what `train` gets; with numbers, run it under a real agent."""
    script = compose(answer, train, drawn)
    if drawn[-1]:
        # with the agent's own store, workers of a second attempt would meet addresses of the first
        env = {"PYTHONPATH": ROOT, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        asked = JobOptions(script, sizes[0], env=env, max_restarts=1, timeout=AGENTS_S)
        with start_job(asked) as job:
            return report_of(job.wait(), script, sizes[0])
    found = run_attempts(script, sizes, plans, alone=True)
    left = {path.name: path.read_text(encoding="utf-8") for path in script.parent.glob("*-*-*")}
    kept = (checkpoints(script.parent) / "state.pt").is_file()
    found["values"] = [value and {**value, "left": left, "kept": kept} for value in found["values"]]
    return found


def train(
    answer: Callable[..., Any],
    seed: int,
    steps: int,
    every: int,
    term: tuple[int, int, list[int]],
    numbers: list[float],
) -> dict[str, Any]:
    """Call the answer in a worker of one attempt.

    term: (attempt, n, ranks): in that attempt, SIGTERM reaches these ranks in their n-th step. The attempt
    after it is a new job. numbers: those of the steps, if no monitor can be asked for them; then the last
    rank kills itself in the n-th step.
    """
    number, done, calls = attempt_number(), 0, 0
    with attempt(lambda: done) as disk:
        rank, size = dist.get_rank(), dist.get_world_size()
        model = small_model(seed, "plain")
        optimizer = optimizer_of(model, "momentum")

        def train_step(step: int) -> None:
            nonlocal done, calls
            (shift,) = numbers[step:][:1] if numbers else ask_for_step(step, len(disk.read))
            learn(model, optimizer, rank, size, step, shift)
            done, calls = step + 1, calls + 1
            if number == term[0] and calls == term[1] and rank in term[2]:
                os.kill(os.getpid(), signal.SIGKILL if numbers else signal.SIGTERM)
                (script_folder() / f"noted-{number}-{rank}").touch()
            if not numbers:
                ask("done", step)

        if not numbers:
            disk.watch()
        how = "returns"
        if 0 <= term[0] < number and not numbers:  # a scheduler has started a new job
            os.environ["TORCHELASTIC_RESTART_COUNT"] = "0"
        try:
            answer(model, optimizer, train_step, steps, every, str(disk.folder / "state.pt"))
        except SystemExit as error:
            if error.code:
                how = f"exits with code {error.code}"
                raise
        except BaseException as error:
            how = f"raises {type(error).__name__}"
            raise
        finally:
            os.environ["TORCHELASTIC_RESTART_COUNT"] = str(number)
            (script_folder() / f"left-{number}-{rank}").write_text(how, encoding="utf-8")
    if number == term[0] and done < steps:
        # ranks that still wait for this one have failed by now, because it has left the group
        wait_until(lambda: len(list(script_folder().glob(f"left-{number}-*"))) == size)
        sys.exit(PREEMPTED)
    return {"calls": calls, "state": state_of(model, optimizer)}


def learn(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    rank: int,
    size: int,
    step: int,
    shift: float,
) -> None:
    """Make one step with the mean of all ranks' gradients."""
    backward(model, rank, step)
    for p in model.parameters():
        dist.all_reduce(grad_of(p))
        grad_of(p).div_(size).add_(shift)
    optimizer.step()


def state_of(model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return all parameters as one vector, and all momentum as another."""
    none = torch.zeros(0)
    momentum = [optimizer.state[p].get("momentum_buffer", none) for p in model.parameters()]
    whole = {"the model's state": [*model.parameters()], "the optimizer's state": momentum}
    return {name: torch.cat([x.detach().flatten() for x in xs]) for name, xs in whole.items()}
