"""What is wrong with what a pipeline's stage did, in words, and the first thing to look at.

The objects here are the `expected` values of notebook 12's cases: called with what a rank gave back,
they give "" or the first thing that is wrong, as the learner reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from helpers.exercises.compare import difference
from helpers.exercises.model import Case
from helpers.exercises.pipeline_models import StageTruth
from helpers.exercises.problems import first_problem
from helpers.ranks.failures import Deadlock, RankDied, RankFailed
from helpers.ranks.run import Run
from helpers.views.plain import plural
from helpers.views.schedule_times import most_held

PARITY = 1e-5
Grads = Mapping[str, torch.Tensor | None]


def one_f_one_b_order(rank: int, stages: int, microbatches: int) -> tuple[str, ...]:
    """Give what a stage does under 1F1B, in order (Narayanan et al. 2021, section 2.2)."""
    ahead = min(stages - 1 - rank, microbatches)
    order = [f"F{i}" for i in range(ahead)]
    for i in range(microbatches):
        order += [f"F{i + ahead}"] * (i + ahead < microbatches) + [f"B{i}"]
    return tuple(order)


@dataclass(frozen=True)
class StageDid:
    """What a stage must have done with its microbatches. schedule: "gpipe" or "1f1b"."""

    rank: int
    stages: int
    truth: StageTruth
    schedule: str

    def __call__(self, value: Any) -> str:
        if not isinstance(value, dict) or not isinstance(value.get("done"), list):
            return "its stage's report did not come back"
        done, count = value["done"], len(self.truth.activations)
        return (
            self._all_done(done, count)
            or _order_of_gpipe(done) * (self.schedule == "gpipe")
            or self._order(done, count) * (self.schedule == "1f1b")
            or self._crossed(value)
            or grads_problem(self.truth.gradients, value.get("grads"))
        )

    def _all_done(self, done: list[Any], count: int) -> str:
        for kind, word in (("F", "forward"), ("B", "backward")):
            missing = [i for i in range(count) if f"{kind}{i}" not in done]
            if len(missing) == count:
                return f"its stage never runs {word}"
            if missing:
                return f"microbatch {missing[0]} never goes {word} through its stage"
        return ""

    def _order(self, done: list[Any], count: int) -> str:
        wanted = one_f_one_b_order(self.rank, self.stages, count)
        most, allowed = most_held(done), most_held(wanted)
        if most > allowed:
            return (
                f"its stage holds the activations of {plural(most, 'microbatch')} at once; "
                f"1F1B holds {allowed} here"
            )
        for number, (got, right) in enumerate(zip(done, wanted, strict=False)):
            if got != right:
                before = f"after {' '.join(wanted[:number])}" if number else "first"
                return f"{before} its stage runs {got}; 1F1B runs {right} there"
        return ""

    def _crossed(self, value: dict[str, Any]) -> str:
        """Say which activation or gradient is another one than it should be."""
        for key, wanted, word, peer in (
            ("came", self.truth.activations, "activation", self.rank - 1),
            ("back", self.truth.from_next, "gradient", self.rank + 1),
        ):
            got = value.get(key)
            if not 0 <= peer < self.stages or not isinstance(got, dict):
                continue
            for i, right in enumerate(wanted):
                if difference(right, got.get(i), PARITY):
                    return f"the {word} that it was given for microbatch {i}{_whose(wanted, got.get(i))}"
        if value.get("overwritten"):
            i = value["overwritten"][0]
            return f"the activation of microbatch {i} was overwritten before its backward"
        return ""


def _whose(wanted: Sequence[torch.Tensor], got: Any) -> str:
    for other, tensor in enumerate(wanted):
        if not difference(tensor, got, PARITY):
            return f" is that of microbatch {other}"
    if isinstance(got, torch.Tensor) and got.isnan().all():
        return " was never received: stage.empty() holds NaN"
    return " is not what the neighbour has computed"


def _order_of_gpipe(done: Sequence[str]) -> str:
    backwards = [n for n, action in enumerate(done) if action[:1] == "B"]
    for number, action in enumerate(done):
        if action[:1] == "F" and backwards and number > backwards[0]:
            return f"its stage runs {action} after {done[backwards[0]]}; all forwards come first"
    return ""


def grads_problem(wanted: Grads, got: Any) -> str:
    """Say which gradient of a stage differs from one process's, and by what factor."""
    if not isinstance(got, dict) or got.keys() != wanted.keys():
        return "its gradients did not come back"
    for name, right in wanted.items():
        mine = got[name]
        if right is None:
            if mine is not None:
                return f"`{name}` has a gradient here, and belongs to the other rank"
        elif mine is None:
            return f"`{name}` has no gradient"
        elif difference(right, mine, PARITY):
            return f"the gradient of `{name}` is wrong{_times(right, mine)}"
    return ""


def _times(right: torch.Tensor, got: Any) -> str:
    if not isinstance(got, torch.Tensor) or got.shape != right.shape or got.dtype != right.dtype:
        return f": {difference(right, got)}"
    size = float((right * right).sum())
    k = float((right * got).sum()) / size if size else 0.0
    alike = torch.allclose(got, k * right, rtol=1e-3, atol=1e-6)
    return f": it is {k:.3g} times what it should be" if k and alike else ""


def look_at_stage(case: Case, run: Run) -> str:
    """Say what a schedule written by hand mostly gets wrong."""
    if isinstance(run.failure, Deadlock):
        return _look_at_hang(run.failure)
    if isinstance(run.failure, RankDied):
        return "A tensor of another shape or dtype was received: receive into stage.empty()."
    problem = problem_or_error(case, run)
    if "names rank" in problem:
        return (
            "There is no ring here: the first stage receives no activation and the last one no "
            "gradient, so test for rank 0 and rank world_size - 1 first."
        )
    if "never runs forward" in problem or "never runs backward" in problem:
        return "Every rank calls stage.forward and stage.backward once for each microbatch."
    if "all forwards come first" in problem:
        return "GPipe is two loops: one with all forwards, then one with all backwards."
    if "is that of microbatch" in problem:
        return (
            "Between two ranks messages arrive in the order in which they were sent: both sides must "
            "take the microbatches in the same order."
        )
    if "overwritten" in problem:
        return "Receive each activation into a tensor of its own: call stage.empty() for each."
    if "never received" in problem:
        return "With irecv the data is there after wait(): wait before you pass the tensor on."
    if "not what the neighbour" in problem:
        return "Send what stage.forward returned onwards, and what stage.backward returned back."
    return ""


def look_at_one_f_one_b(case: Case, run: Run) -> str:
    """Say what 1F1B mostly gets wrong."""
    problem = problem_or_error(case, run)
    ranks = case.world_size
    if "holds the activations" in problem:
        return (
            "Backward runs as soon as its gradient can be there: before that, rank r of "
            f"{ranks} runs {ranks - 1} - r forwards, then one forward and one backward in turn."
        )
    if "as the number of its microbatch" in problem:
        return (
            "There may be fewer microbatches than stages, and the warm-up ends with the microbatches: "
            "min(world_size - 1 - rank, microbatches) forwards."
        )
    if "has not run microbatch" in problem:
        return (
            "A backward needs its forward first: after the warm-up, which has no forward at all on the "
            "last rank, F comes before B."
        )
    if "1F1B runs" in problem:
        return (
            f"First min({ranks} - 1 - rank, microbatches) forwards; then F and B in turn, F first, until "
            "no forward is left; then the other backwards. Microbatches go 0, 1, 2, ... both ways."
        )
    if isinstance(run.failure, Deadlock) and "cycle of sends" in str(run.failure):
        return (
            "One rank sends an activation, its neighbour a gradient, and each waits for the other. "
            "Start the sends with isend, keep each Work, and wait for them at the end."
        )
    return look_at_stage(case, run)


def _look_at_hang(failure: Deadlock) -> str:
    if "cycle of sends" in str(failure):
        return (
            "In GPipe all messages of a phase go one way. The last stage sends no activation on, and "
            "the first no gradient back: is there a test for each of the two?"
        )
    return (
        "Count the messages: rank r receives an activation from r - 1 for each microbatch (the first "
        "rank none), and a gradient from r + 1 (the last rank none)."
    )


def problem_or_error(case: Case, run: Run) -> str:
    """Give the message of what was raised, or else the first thing that is wrong on any rank."""
    if isinstance(run.failure, RankFailed):
        return str(run.failure.error.message)
    return first_problem(case, run)
