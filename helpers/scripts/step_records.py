"""Define a rank's records of each step of a script checked for silent faults: plain data, as JSON lines.

The rank writes one file (`Writer`), and the launcher reads it after the run (`read_records`).
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import DecodeError, ValidationError, json

Line = tuple[str, int, str]
"""A line of code in a rank's report: file, line, function."""

SHARDED = "sharded"
"""The key of parameters of which each rank holds a different part."""


class StopAfterSteps(BaseException):
    """The rank has taken its steps. A script's `except Exception` does not catch this."""


@dataclass(frozen=True)
class TensorDigest:
    """A tensor represented by a few numbers.

    Attributes:
        hash: A number that is equal for tensors in which all bits are equal.
        sums: The sum of each part.
        sizes: The sum of absolute values of each part, as the scale for differences.
        count: The number of elements of a part.
        epsilon: The relative precision of its dtype.
    """

    hash: str
    sums: list[float]
    sizes: list[float]
    count: int
    epsilon: float

    def differs(self, other: TensorDigest) -> bool:
        """Return whether two tensors differ by more than rounding errors."""
        if self.hash == other.hash:
            return False
        if len(self.sums) != len(other.sums):
            return True
        # Rounding errors have random signs, so the error of a sum grows with the square root of its length.
        tolerance = 8 * max(self.epsilon, other.epsilon) / max(1, self.count) ** 0.5
        return any(
            not abs(one - two) <= tolerance * max(size, other_size)  # this also holds if one is NaN
            for one, two, size, other_size in zip(
                self.sums, other.sums, self.sizes, other.sizes, strict=True
            )
        )


@dataclass(frozen=True)
class ParameterRecord:
    """A parameter before a step.

    Attributes:
        key: "" if all ranks should hold the same values; otherwise, ranks with the same key should hold the
            same values.
        ddp: The ranks among which DDP reduces its gradient; empty if DDP does not reduce it.
        reduced: The number of times that the script's own calls reduced its gradient since the last step.
        met: The ranks with which the script's own calls have shared the parameter or its gradient at any
            time.
    """

    name: str
    shape: list[int]
    value: TensorDigest
    gradient: TensorDigest | None
    key: str = ""
    ddp: list[int] = field(default_factory=list)
    reduced: int = 0
    met: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class StepRecord:
    """An optimizer before one of its steps, or at the end.

    Attributes:
        optimizer: Its number, in the order of the first steps of this rank's optimizers.
        step: The number of steps that it has taken.
        rates: The learning rates of its parameter groups.
        reduced_at: The line at which the script itself last reduced a gradient.
        is_last: Whether this is the state at the end, without gradients.
    """

    optimizer: int
    kind: str
    step: int
    line: Line | None
    parameters: list[ParameterRecord]
    rates: list[float]
    reduced_at: Line | None = None
    is_last: bool = False


@dataclass(frozen=True)
class InputRecord:
    """The input of a training step's model.

    Attributes:
        step: The number of optimizer steps that the rank had taken.
        rows: A hash of each of its first samples; empty once a loader has begun its second pass.
        group: The ranks with which the model's gradients are reduced, if torch reduces them.
    """

    model: str
    line: Line | None
    step: int
    hash: str
    rows: list[str]
    group: list[int]


@dataclass(frozen=True)
class Sighting:
    """A fault seen by a single rank. kind: see `step_findings`."""

    kind: str
    line: Line | None
    words: str
    other_line: Line | None = None


@dataclass(frozen=True)
class LoadRecord:
    """A call of a module's `load_state_dict`."""

    line: Line | None
    step: int


@dataclass
class RankRecords:
    """All records of one rank.

    Attributes:
        communicates: Whether the script passed tensors other than parameters, gradients and small
            results to other ranks, as pipelines and tensor parallel layers do.
        cooperates: Whether the script called torch.distributed itself, or used a DistributedSampler.
        stopped: Whether the rank was stopped after its steps.
    """

    steps: list[StepRecord] = field(default_factory=list)
    inputs: list[InputRecord] = field(default_factory=list)
    sightings: list[Sighting] = field(default_factory=list)
    loads: list[LoadRecord] = field(default_factory=list)
    communicates: bool = False
    cooperates: bool = False
    stopped: bool = False

    @property
    def step_count(self) -> int:
        """The largest number of steps taken by one of the rank's optimizers."""
        # An optimizer destroyed before the end has no last record, only one before its last step.
        return max((record.step + (not record.is_last) for record in self.steps), default=0)


@dataclass(frozen=True)
class _Entry:
    """A line of the file, with exactly one field set."""

    step: StepRecord | None = None
    input: InputRecord | None = None
    sighting: Sighting | None = None
    load: LoadRecord | None = None
    communicates: bool = False
    cooperates: bool = False
    stopped: bool = False


class Writer:
    """Writes one rank's records."""

    def __init__(self, folder: str, rank: int) -> None:
        self._path = Path(folder) / f"{rank}.jsonl"
        self._encode = json.encode

    def write(self, **entry: StepRecord | InputRecord | Sighting | LoadRecord | bool) -> None:
        """Append a record. entry: one field of an `_Entry`."""
        with self._path.open("ab") as file:
            file.write(self._encode(_Entry(**entry)) + b"\n")  # type: ignore[arg-type]


def read_records(folder: str, world_size: int) -> list[RankRecords]:
    """Return the records of each rank."""
    ranks = []
    for rank in range(world_size):
        records = RankRecords()
        with contextlib.suppress(FileNotFoundError):
            for line in (Path(folder) / f"{rank}.jsonl").read_bytes().splitlines():
                with contextlib.suppress(DecodeError, ValidationError):
                    _add(records, json.decode(line, type=_Entry))
        ranks.append(records)
    return ranks


def _add(records: RankRecords, entry: _Entry) -> None:
    if entry.step is not None:
        records.steps.append(entry.step)
    if entry.input is not None:
        records.inputs.append(entry.input)
    if entry.sighting is not None:
        records.sightings.append(entry.sighting)
    if entry.load is not None:
        records.loads.append(entry.load)
    records.communicates |= entry.communicates
    records.cooperates |= entry.cooperates
    records.stopped |= entry.stopped
