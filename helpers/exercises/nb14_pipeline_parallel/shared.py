"""Code for exercises of notebook 14: stages, the results of one process, and rules on schedules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from helpers.checks.author import *
from helpers.checks.rules_transfers import EachIsWaitedFor
from helpers.exercises.nb12_zero_and_fsdp.in_ranks.fsdp2 import build_sequential
from helpers.exercises.nb12_zero_and_fsdp.shared import draw_state
from helpers.exercises.nb14_pipeline_parallel.in_ranks import copy_gradients, mean_square

P2P_ONLY = OnlyCalls(("send", "recv"))


def draw_samples(draw: Draw, dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Draw samples."""
    return torch.randn(shape, generator=draw.generator(), dtype=torch.float64).to(dtype)


@dataclass(frozen=True)
class Pipeline:
    """A pipeline's stages and microbatches, and the results of one process."""

    kinds: Sequence[str]
    states: Sequence[dict[str, torch.Tensor]]
    inputs: Sequence[torch.Tensor]
    targets: Sequence[torch.Tensor]

    @classmethod
    def draw(cls, draw: Draw, microbatches: int, dtype: torch.dtype) -> Pipeline:
        """Draw a pipeline with messages of the same shape between all stages."""
        n, width, rows = draw.ranks, draw.whole(2, 5), draw.whole(1, 3)
        kinds = ("Linear", "Tanh")
        states = [
            draw_state(draw, kinds, (width, width), dtype, always_bias=False) for _ in range(n)
        ]
        inputs, targets = (
            [draw_samples(draw, dtype, rows, width) for _ in range(microbatches)] for _ in range(2)
        )
        return cls(kinds, states, inputs, targets)

    def expected_results(self) -> tuple[list[dict[str, Any]], list[float]]:
        """Return the inputs and gradients of each stage, and the losses."""
        modules: list[nn.Sequential] = [
            build_sequential(self.kinds, state) for state in self.states
        ]
        came: list[dict[str, Any]] = [{} for _ in modules]
        back: list[dict[str, Any]] = [{} for _ in modules]
        losses = []
        for i, (x, target) in enumerate(zip(self.inputs, self.targets, strict=True)):
            borders = []
            for index, module in enumerate(modules):
                came[index][f"activation of microbatch {i}"] = x.detach()
                x = module(x)
                x.retain_grad()
                borders.append(x)
            loss = mean_square(x, target)
            losses.append(float(loss.detach()))
            (loss / len(self.inputs)).backward()
            for index, border in enumerate(borders[:-1]):
                back[index][f"gradient received for microbatch {i}"] = border.grad
        return [
            {**a, **b, "overwritten": "", **copy_gradients(module)}
            for a, b, module in zip(came, back, modules, strict=True)
        ], losses


OrderJudge = Callable[[Sequence[str], int, int, int], Finding | None]
"""A function that judges a stage's actions.

Its arguments are the actions, the stage's rank, and the numbers of stages and microbatches. It returns the
problem.
"""


def draw_schedule_case(draw: Draw, judge_order: OrderJudge, max_extra: int | None = None) -> Case:
    """Draw the case of a schedule written by hand.

    max_extra: the number of tensors that a rank may keep outside its stage.
    """
    n, m, dtype = draw.ranks, draw.of(1, 2, 3, 4, 5, 9), draw.dtype(torch.float32, torch.float64)
    pipeline = Pipeline.draw(draw, m, dtype)
    right, _ = pipeline.expected_results()
    parts = [NamedParts([each], 1.0) for each in right]

    def judge(got: Any, rank: int) -> Finding | None:
        done = got["order"]
        for kind, (_, word) in _ACTION_WORDS.items():
            missing = [i for i in range(m) if f"{kind}{i}" not in done]
            if missing:
                return Finding(
                    f"its stage never runs microbatch {missing[0]} {word}",
                    EACH_MICROBATCH_ADVICE,
                )
        found = judge_order(done, rank, n, m) or parts[rank](got, 0)
        if type(got["extra"]) is not int:
            return Finding(f"{got['extra']!r:.40} is not a number of tensors")
        if found is None and max_extra is not None and got["extra"] > max_extra:
            what = f"{got['extra']} tensors of a message's size at once, in addition to its stage's tensors"
            return Finding(f"it keeps {what}, but {max_extra} are enough")
        return found

    blank = torch.zeros_like(pipeline.inputs[0])
    mine: list[Sequence[torch.Tensor]] = [pipeline.inputs, *[[]] * (n - 2), pipeline.targets]
    return Case(
        f"{plural(m, 'microbatch')}, {tuple(blank.shape)} {dtype}",
        [(pipeline.kinds, pipeline.states[r], mine[r], blank, m) for r in range(n)],
        right=judge,
        like={},
        facts={"microbatches": m, "bytes": blank.nbytes},
    )


EACH_MICROBATCH_ADVICE = (
    "Every rank should call stage.forward and stage.backward once for each microbatch."
)


# --- rules ----------------------------------------------------------------------------------------


def neighbors(case: Case, rank: int) -> tuple[int, ...]:
    return tuple(r for r in (rank - 1, rank + 1) if 0 <= r < case.world_size)


def message_count(case: Case, rank: int) -> int:
    """Return a rank's number of sends: for each microbatch, an activation and a gradient, if any."""
    return int(case.facts["microbatches"]) * len(neighbors(case, rank))


_ACTION_WORDS = {"F": ("activation", "forward"), "B": ("gradient", "backward")}


@dataclass(frozen=True)
class SentImmediately:
    """A stage sends each result before it computes again, and waits only for needed tensors."""

    text: str = "each activation and gradient is sent as soon as it is computed"
    forbids: bool = False
    on_each_call: bool = False

    def problem(self, trace: Trace, case: Case) -> str:
        for rank in range(case.world_size):
            for kind, step in (("F", 1), ("B", -1)):
                if broken := self._find_late_send(trace, rank, kind, rank + step):
                    return broken
                if broken := self._find_early_compute(trace, rank, kind, rank - step):
                    return broken
        return ""

    def _find_late_send(self, trace: Trace, rank: int, kind: str, peer: int) -> str:
        if not 0 <= peer < trace.world_size:
            return ""
        what, _ = _ACTION_WORDS[kind]
        sent = [e for e in trace.of(rank) if e.op == "send" and e.peer == peer]
        for count, (span, following) in enumerate(_spans_with_next(trace, rank, kind), 1):
            if following and sum(e.start_ns < following.start_ns for e in sent) < count:
                return (
                    f"rank {rank} begins {following.call} before sending the result of {span.call}, "
                    f"so rank {peer} is idle. Send each {what} as soon as it is computed."
                )
        return ""

    def _find_early_compute(self, trace: Trace, rank: int, kind: str, peer: int) -> str:
        if not 0 <= peer < trace.world_size:
            return ""
        what, word = _ACTION_WORDS[kind]
        taken = [e for e in trace.of(rank) if e.op == "recv" and e.peer == peer]
        for count, (span, _) in enumerate(_spans_with_next(trace, rank, kind), 1):
            waited = [e for e in taken if _wait_start(e) < span.start_ns]
            if len(waited) < count:
                return (
                    f"rank {rank} runs {span.call} before waiting for its {what}. irecv's tensor is filled "
                    "only when wait() returns."
                )
            if len(waited) > count:
                return (
                    f"rank {rank} waits for {len(waited)} {what}s{at(waited[-1])} before its {word} "
                    f"{span.call}, which needs only one of them. Wait for each only when you need it."
                )
        return ""


def _spans_with_next(trace: Trace, rank: int, kind: str) -> Iterator[tuple[Event, Event | None]]:
    """Yield each span of a kind with the following span of any kind."""
    spans = [e for e in trace.of(rank) if e.op == "span" and e.call[:1] in _ACTION_WORDS]
    # The stage may have recorded no spans at all
    for span, following in zip(spans, [*spans[1:], None], strict=False):
        if span.call[:1] == kind:
            yield span, following


def _wait_start(event: Event) -> float:
    """Return the time at which the rank began to wait for a receive: at once, at its wait(), or never."""
    if not event.asynchronous:
        return event.start_ns
    return float("inf") if event.wait_ns is None else event.wait_ns


SCHEDULE_RULES: tuple[Any, ...] = (
    P2P_ONLY,
    Peers(neighbors, "stages only communicate with their neighbors"),
    Calls(
        "send",
        message_count,
        why="Each microbatch needs one activation forward and one gradient back. The first stage has no "
        "stage before it, and the last one has none after it.",
    ),
    Calls(
        "send",
        total_bytes=lambda case, rank: message_count(case, rank) * int(case.facts["bytes"]),
        why="Each message is one activation or one gradient.",
    ),
    SentImmediately(),
    EachIsWaitedFor(),
)
"""The rules of a schedule written by hand."""


def has_other_cause(case: Case, run: Any) -> bool:
    """Return whether a deadlock has a cause other than a missing wait(), which its message would name."""
    return bool(run.failure.diagnosis.kind != "never_waited")


FAILURE_ADVICE: tuple[CrashAdvice | HangAdvice, ...] = (
    CrashAdvice(
        "names rank|group rank|not in range|invalid rank|out of range",
        "There is no ring here: the first stage receives no activation and the last one no gradient, so test "
        "for rank 0 and rank world_size - 1 first.",
    ),
    CrashAdvice(
        "",
        "A rank received a tensor of a different shape or dtype. Receive into stage.empty().",
        applies_if_killed=True,
    ),
    HangAdvice(
        "Count the messages: rank r receives an activation from r - 1 for each microbatch (the first rank "
        "none), and a gradient from r + 1 (the last rank none).",
        when=has_other_cause,
    ),
)
