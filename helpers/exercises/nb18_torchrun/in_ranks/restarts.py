"""18.3: a training run that is killed, or asked by SIGTERM to leave."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist

from helpers.checks.script_worker import ask
from helpers.checks.scripts import ROOT, Source, compose, report_of
from helpers.exercises.nb20_without_a_restart.in_ranks.failover import (
    build_optimizer,
    build_small_model,
    run_backward,
)
from helpers.exercises.shared.in_ranks.attempts import (
    Plan,
    ask_for_step,
    attempt_number,
    checkpoint_folder,
    folder_of_script,
    join_attempt,
    run_attempts,
    wait_until,
)
from helpers.exercises.shared.in_ranks.classifier import grad_of
from helpers.jobs.torchrun import JobOptions, start_job

if "TORCHELASTIC_RUN_ID" in os.environ:
    # An optimizer imports this module, which replaces a function of torch. In a worker of a real agent this
    # must happen before functions are watched.
    import torch._dynamo

AGENTS_S = 40.0
"""Time limit for a real agent, which usually needs 5 s."""
PREEMPTED_EXITCODE = 75
"""The exit code with which a worker ends after returning early, so that the next attempt starts."""


def run_attempts_of_answer(
    answer: Source,
    rank: int,
    world_size: int,
    sizes: list[int],
    plans: Sequence[Plan],
    *train_args: Any,
) -> dict[str, Any]:
    """Run the training in attempts.

    train_args: the arguments of `train_in_worker`. If they contain numbers, run it under a real agent.
    """
    script = compose(answer, train_in_worker, train_args)
    if train_args[-1]:
        # in the agent's store, workers of a second attempt would find addresses of the first
        env = {"PYTHONPATH": ROOT, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
        asked = JobOptions(script, sizes[0], env=env, max_restarts=1, timeout=AGENTS_S)
        with start_job(asked) as job:
            return report_of(job.wait(), script, sizes[0])
    found = run_attempts(script, sizes, plans, only_rank0_writes=True)
    left = {path.name: path.read_text(encoding="utf-8") for path in script.parent.glob("*-*-*")}
    kept = (checkpoint_folder(script.parent) / "state.pt").is_file()
    found["values"] = [value and {**value, "left": left, "kept": kept} for value in found["values"]]
    return found


def train_in_worker(
    answer: Callable[..., Any],
    seed: int,
    steps: int,
    every: int,
    term: tuple[int, int, list[int]],
    numbers: list[float],
) -> dict[str, Any]:
    """Call the answer in a worker of one attempt.

    term: (attempt, n, ranks): in this attempt, SIGTERM reaches these ranks in their n-th step. The next
    attempt is a new job. numbers: the steps' numbers, if there is no monitor to ask. In this case, the last
    rank kills itself in the n-th step.
    """
    number, done, calls = attempt_number(), 0, 0
    with join_attempt(lambda: done) as disk:
        rank, size = dist.get_rank(), dist.get_world_size()
        model = build_small_model(seed, "plain")
        optimizer = build_optimizer(model, "momentum")

        def train_step(step: int) -> None:
            nonlocal done, calls
            (shift,) = numbers[step:][:1] if numbers else ask_for_step(step, len(disk.read_files))
            train_one_step(model, optimizer, rank, size, step, shift)
            done, calls = step + 1, calls + 1
            if number == term[0] and calls == term[1] and rank in term[2]:
                os.kill(os.getpid(), signal.SIGKILL if numbers else signal.SIGTERM)
                (folder_of_script() / f"noted-{number}-{rank}").touch()
            if not numbers:
                ask("done", step)

        if not numbers:
            disk.start()
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
            (folder_of_script() / f"left-{number}-{rank}").write_text(how, encoding="utf-8")
    if number == term[0] and done < steps:
        # ranks that were waiting for this rank have failed by now, because it has left the group
        wait_until(lambda: len(list(folder_of_script().glob(f"left-{number}-*"))) == size)
        sys.exit(PREEMPTED_EXITCODE)
    return {"calls": calls, "state": flatten_state(model, optimizer)}


def train_one_step(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    rank: int,
    world_size: int,
    step: int,
    grad_shift: float,
) -> None:
    """Take one step with the mean of all ranks' gradients."""
    run_backward(model, rank, step)
    for p in model.parameters():
        dist.all_reduce(grad_of(p))
        grad_of(p).div_(world_size).add_(grad_shift)
    optimizer.step()


def flatten_state(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> dict[str, torch.Tensor]:
    """Return all parameters as one vector, and all momenta as another."""
    none = torch.zeros(0)
    momentum = [optimizer.state[p].get("momentum_buffer", none) for p in model.parameters()]
    whole = {"the model's state": [*model.parameters()], "the optimizer's state": momentum}
    return {name: torch.cat([x.detach().flatten() for x in xs]) for name, xs in whole.items()}
