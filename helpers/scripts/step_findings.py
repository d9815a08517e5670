"""Find silent faults in the records of a script's first steps: no rank hangs, but training is wrong.

Each finding states its certainty. "certain" means that the fact is a fault in any program. "likely" means
that the fact is established, but could be intended. In programs that pass activations between ranks
(pipelines, tensor parallel layers), different parameters are intended. So without a sign of data parallelism,
no finding is reported.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from helpers.scripts.step_records import (
    SHARDED,
    InputRecord,
    Line,
    ParameterRecord,
    RankRecords,
    StepRecord,
)
from helpers.trace.events import Place
from helpers.trace.wording import name_ranks
from helpers.views.plain import plural

CERTAIN, LIKELY = "certain", "likely"
PlaceFinder = Callable[[str, int, str], Place]
# Two ranks' samples count as the same if at least this many of their rows are equal.
_MIN_SHARED_ROWS = 3


@dataclass(frozen=True)
class Finding:
    """A silent fault.

    Attributes:
        kind: A short name, for programs.
        sure: "certain" or "likely".
        ranks: The ranks to look at.
        place: The line to look at, if known.
        text: A description of the fault, with advice.
    """

    kind: str
    sure: str
    ranks: tuple[int, ...]
    place: Place | None
    text: str

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place is not None else ""
        source = f"\n    {self.place.source.strip()}" if self.place and self.place.source else ""
        return f"{where}{self.text} ({self.sure}){source}"


def find_faults(ranks: Sequence[RankRecords], place_of: PlaceFinder) -> list[Finding]:
    """Return the silent faults of a run, the most certain first."""
    find = _Finder(ranks, place_of)
    found = [*find.own_sightings(), *find.by_optimizer(), *find.same_inputs()]
    unique = {(each.kind, each.place and each.place.line, each.text): each for each in found}
    return sorted(unique.values(), key=lambda each: each.sure != CERTAIN)


@dataclass(frozen=True)
class _Finder:
    ranks: Sequence[RankRecords]
    place_of: PlaceFinder

    def _place(self, line: Line | None) -> Place | None:
        return self.place_of(*line) if line is not None else None

    def _at(self, line: Line | None) -> str:
        return f" ({self._place(line)})" if line is not None else ""

    # Faults seen by a single rank

    def own_sightings(self) -> Iterator[Finding]:
        by_fault: dict[tuple[str, Line | None, Line | None, str], list[int]] = defaultdict(list)
        for rank, records in enumerate(self.ranks):
            for each in records.sightings:
                key = each.kind, each.line, each.other_line, each.words
                by_fault[key].append(rank)
        for (kind, line, other, words), numbers in by_fault.items():
            sure, text = self._sighting_text(kind, words, other)
            who = name_ranks(numbers).capitalize()
            yield Finding(
                kind.replace(" ", "_"), sure, tuple(numbers), self._place(line), f"{who} {text}"
            )

    def _sighting_text(self, kind: str, words: str, line: Line | None) -> tuple[str, str]:
        if kind == "changed in flight":
            return CERTAIN, (
                f"changed the tensor of an asynchronous {words} before its wait(){self._at(line)}: what is "
                "transferred is partly old and partly new. Change it after the wait(), or pass a copy."
            )
        if kind == "never waited":
            return CERTAIN, (
                f"never waited for {words}: before the wait() of its Work, the transfer may not be complete. "
                "Keep the Work, and call its wait()."
            )
        if kind == "same order":
            return CERTAIN, (
                f"began a second pass over a DistributedSampler {words}, so the order of the samples is the "
                "same in each epoch. Call sampler.set_epoch(epoch) at the beginning of each epoch."
            )
        return LIKELY, (
            f"clipped gradients before they are reduced{self._at(line)}: each rank clips by its own norm, "
            "so the result is not the clipped gradient. Reduce first, then clip."
        )

    # Optimizers

    def by_optimizer(self) -> Iterator[Finding]:
        numbers = {step.optimizer for records in self.ranks for step in records.steps}
        for number in sorted(numbers):
            histories: dict[tuple[object, ...], list[tuple[int, list[StepRecord]]]] = defaultdict(
                list
            )
            for rank, records in enumerate(self.ranks):
                history = [step for step in records.steps if step.optimizer == number]
                if history:
                    histories[_signature(history[0])].append((rank, history))
            for same in histories.values():
                if len(same) > 1:
                    yield from self._compare(dict(same))

    def _compare(self, histories: dict[int, list[StepRecord]]) -> Iterator[Finding]:
        """Compare an optimizer on all ranks that have it, step by step, until the first difference."""
        first = next(iter(histories.values()))
        yield from self._twice_reduced(histories)
        length = min(map(len, histories.values()))
        for i in range(length):
            steps = {rank: history[i] for rank, history in histories.items()}
            # A rank may have finished its steps earlier, as with torch's Join.
            if any(step.step != i for step in steps.values()):
                return
            if len({step.is_last for step in steps.values()}) > 1:
                return
            differing = [
                (index, pair)
                for index in range(len(first[0].parameters))
                if (pair := _differing_pair(steps, index)) is not None
            ]
            if differing:
                finding = self._explain(histories, i, differing)
                if finding is not None:
                    yield finding
                return
            if (pair := _different_rates(steps)) is not None:
                yield self._rates_finding(steps, pair)
                return

    def _explain(
        self,
        histories: dict[int, list[StepRecord]],
        i: int,
        differing: list[tuple[int, tuple[int, int]]],
    ) -> Finding | None:
        """Explain the reason why parameters differ before step `i`."""
        index, (one, other) = differing[0]
        now, parameter = histories[one][i], histories[one][i].parameters[index]
        who = name_ranks([one, other])
        names = _names([histories[one][i].parameters[n] for n, _ in differing])
        total = len(now.parameters)
        if {one, other} <= set(parameter.ddp):
            return self._explain_ddp(histories, i, index, (one, other), f"{names} of {who}")
        if i == 0:
            return self._explain_start(histories, (one, other), names, differing)
        if any(self.ranks[rank].communicates for rank in (one, other)):
            return None
        if len(differing) < total and _are_synchronized(histories, i, (one, other)):
            return Finding(
                "not_synchronized",
                LIKELY,
                (one, other),
                self._place(now.line),
                f"After step {i}, {names} differ between {who}, while the optimizer's other parameters are "
                "equal: their gradients are not reduced. Wrap the module that holds them in DDP, or reduce "
                "their gradients too.",
            )
        if histories[one][-1].parameters[index].met:
            return None  # the script averages parameters at times of its own choice
        return Finding(
            "never_reduced",
            LIKELY,
            (one, other),
            self._place(now.line),
            f"Gradients are never reduced: after step {i}, {names} differ between {who}, so each rank "
            "trains a model of its own. Wrap the model in DDP, or reduce the gradients before the step.",
        )

    def _explain_ddp(
        self,
        histories: dict[int, list[StepRecord]],
        i: int,
        index: int,
        pair: tuple[int, int],
        names: str,
    ) -> Finding:
        """Explain why a DDP module's parameters differ, although DDP's constructor made them equal."""
        one, other = pair
        step = histories[one][i]
        if i == 0:
            lines = [{load.line for load in self.ranks[rank].loads} for rank in pair]
            only = next(iter(lines[0] ^ lines[1]), None)
            rank = one if only in lines[0] else other
            cause = (
                f": only rank {rank} calls load_state_dict{self._at(only)}"
                if only
                else ", so a rank changed them between DDP(...) and this step"
            )
            return Finding(
                "changed_after_ddp",
                CERTAIN,
                pair,
                self._place(only or step.line),
                f"Before the first step, {names} differ although DDP had made them equal{cause}. Change "
                "weights before DDP(...), which then sends rank 0's to all, or change them on all ranks.",
            )
        before = [histories[rank][i - 1].parameters[index].gradient for rank in pair]
        if before[0] is not None and before[1] is not None and not before[0].differs(before[1]):
            cause = (
                "although their gradients were equal: the optimizers differ, or a rank changed them before "
                "the next step"
            )
        else:
            cause = (
                "because their gradients were not reduced. Call the DDP object itself, not its .module, and "
                "leave no_sync() before the last backward() of a step"
            )
        return Finding(
            "ddp_differs",
            CERTAIN,
            pair,
            self._place(histories[one][i - 1].line),
            f"After step {i}, {names} differ {cause}.",
        )

    def _explain_start(
        self,
        histories: dict[int, list[StepRecord]],
        pair: tuple[int, int],
        names: str,
        differing: list[tuple[int, tuple[int, int]]],
    ) -> Finding | None:
        """Explain why parameters unknown to DDP differ before the first step."""
        one, other = pair
        step = histories[one][0]
        records = [step.parameters[index] for index, _ in differing]
        text = f"{names} differ between {name_ranks(pair)} before the first step"
        advice = "Create the model with the same seed on all ranks, or broadcast its parameters from rank 0"
        reduced = [each for each in records if each.reduced]
        if reduced:
            return Finding(
                "different_start",
                CERTAIN,
                pair,
                self._place(step.reduced_at or step.line),
                f"{text}, and only gradients are reduced, so the models never become equal. {advice}.",
            )
        if any(self.ranks[rank].communicates for rank in pair):
            return None
        if len(differing) < len(step.parameters) and _any_ddp(step):
            return Finding(
                "not_synchronized",
                LIKELY,
                pair,
                self._place(step.line),
                f"{text}, while DDP keeps the optimizer's other parameters equal. Wrap the module that holds "
                "them in DDP too.",
            )
        last = [history[-1] for history in (histories[one], histories[other])]
        if len(histories[one]) > 1 and _differing_pair(
            {one: last[0], other: last[1]}, differing[0][0]
        ):
            if last[0].parameters[differing[0][0]].met:
                return None
            if not any(self.ranks[rank].cooperates for rank in pair):
                return None  # ranks without common data may be separate experiments
            return Finding(
                "never_reduced",
                LIKELY,
                pair,
                self._place(step.line),
                f"{text}, and neither parameters nor gradients are ever passed to other ranks, so each rank "
                f"trains a model of its own. {advice}, and reduce gradients, for example with DDP.",
            )
        return None

    def _twice_reduced(self, histories: dict[int, list[StepRecord]]) -> Iterator[Finding]:
        for rank, history in histories.items():
            for step in history:
                by_ddp = [each for each in step.parameters if each.ddp and each.reduced]
                twice = by_ddp or [each for each in step.parameters if each.reduced > 1]
                if not twice:
                    continue
                how = (
                    "DDP has already averaged them in backward()"
                    if by_ddp
                    else f"the script reduces them {twice[0].reduced} times before one step"
                )
                yield Finding(
                    "reduced_twice",
                    LIKELY,
                    (rank,),
                    self._place(step.reduced_at),
                    f"The gradients of {_names(twice)} are reduced twice: {how}. Reduce them once: "
                    "unless they are divided once more, the step is too large by a factor of the world size.",
                )
                return

    def _rates_finding(self, steps: dict[int, StepRecord], pair: tuple[int, int]) -> Finding:
        one, other = pair
        rates = [_first_difference(steps[one].rates, steps[other].rates, side) for side in (0, 1)]
        step = steps[one]
        return Finding(
            "different_rates",
            CERTAIN,
            pair,
            self._place(step.line),
            f"Before step {step.step + 1}, the learning rate is {rates[0]:.6g} on rank {one} and "
            f"{rates[1]:.6g} on rank {other}. If a scheduler follows the loss, pass it the same loss on all "
            "ranks: average it with all_reduce first.",
        )

    # Inputs

    def same_inputs(self) -> Iterator[Finding]:
        """Find ranks that train on the same samples although their gradients are reduced."""
        for one, other in combinations(range(len(self.ranks)), 2):
            inputs = [self._training_inputs(rank, {one, other}) for rank in (one, other)]
            pairs = list(zip(*inputs, strict=False))
            if not pairs:
                continue
            first = pairs[0][0]
            # Within a step, the calls may belong to a model's blocks, one after the other.
            by_step = {mine.step: mine.hash for mine, _ in reversed(pairs)}
            if all(mine.hash == theirs.hash for mine, theirs in pairs):
                if len(set(by_step.values())) > 1:
                    yield Finding(
                        "same_samples",
                        LIKELY,
                        (one, other),
                        self._place(first.line),
                        f"Ranks {one} and {other} train on the same samples: their inputs were equal in "
                        f"each of {len(pairs)} batches. Give each rank its own samples, with a "
                        "DistributedSampler or a seed that contains the rank.",
                    )
                    return
                continue
            rows = [{row for each in side for row in each.rows} for side in inputs]
            shared = rows[0] & rows[1]
            if len(shared) >= _MIN_SHARED_ROWS and 20 * len(shared) >= min(map(len, rows)):
                yield Finding(
                    "shared_samples",
                    LIKELY,
                    (one, other),
                    self._place(first.line),
                    f"{len(shared)} of the first {len(rows[0])} samples of rank {one} were also samples of "
                    f"rank {other} in the same pass: each rank draws from all samples. Give each rank its "
                    "own part, with a DistributedSampler.",
                )
                return

    def _training_inputs(self, rank: int, pair: set[int]) -> list[InputRecord]:
        """Return a rank's inputs to models whose gradients are reduced with the other rank of the pair."""
        records = self.ranks[rank]
        met = {
            r
            for step in records.steps
            for each in step.parameters
            if each.reduced
            for r in each.met
        }
        return [
            each
            for each in records.inputs
            if pair <= set(each.group) or (pair <= met and not records.communicates)
        ]


def _signature(step: StepRecord) -> tuple[object, ...]:
    shapes = tuple((tuple(each.shape), each.key) for each in step.parameters)
    return step.kind, tuple(shape for shape, _ in shapes)


def _differing_pair(steps: dict[int, StepRecord], index: int) -> tuple[int, int] | None:
    """Return two ranks that should hold the same value of a parameter but do not."""
    by_key: dict[tuple[object, ...], tuple[int, ParameterRecord]] = {}
    for rank, step in steps.items():
        if index >= len(step.parameters):
            return None
        record = step.parameters[index]
        if record.key == SHARDED:
            return None
        key = record.key, tuple(record.ddp), tuple(record.met)
        first = by_key.setdefault(key, (rank, record))
        if record.value.differs(first[1].value):
            return first[0], rank
    return None


def _different_rates(steps: dict[int, StepRecord]) -> tuple[int, int] | None:
    first = next(iter(steps))
    for rank, step in steps.items():
        if len(step.rates) == len(steps[first].rates) and step.rates != steps[first].rates:
            return first, rank
    return None


def _first_difference(values: list[float], other_values: list[float], side: int) -> float:
    pair = next(pair for pair in zip(values, other_values, strict=True) if pair[0] != pair[1])
    return pair[side]


def _are_synchronized(
    histories: dict[int, list[StepRecord]], i: int, pair: tuple[int, int]
) -> bool:
    """Return whether some gradients of the step before `i` were equal on both ranks."""
    one, other = (histories[rank][i - 1].parameters for rank in pair)
    return any(
        a.gradient is not None and b.gradient is not None and not a.gradient.differs(b.gradient)
        for a, b in zip(one, other, strict=True)
    )


def _any_ddp(step: StepRecord) -> bool:
    return any(each.ddp for each in step.parameters)


def _names(parameters: Sequence[ParameterRecord]) -> str:
    """Return the names of parameters: `head.weight`, or `head.weight and 3 more`."""
    first = f"`{parameters[0].name}`"
    return (
        first
        if len(parameters) == 1
        else f"{first} and {plural(len(parameters) - 1, 'more parameter')}"
    )
