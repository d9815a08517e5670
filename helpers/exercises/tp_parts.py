"""What is wrong with parts that notebook 13's ranks gave back, in words, and how a clue is looked up.

`PartsAre` is the `expected` value of a case; `LookFor` turns what it says, or an error, into advice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from helpers.exercises.compare import difference
from helpers.exercises.model import Case
from helpers.ranks.failures import Deadlock, RankDied, RankFailed
from helpers.ranks.run import Run


@dataclass(frozen=True)
class PartsAre:
    """What a rank must give back by name; called with what it gave, "" or what is wrong first.

    called: what the learner calls the output. most_bytes: of all that the layer may hold. instead:
    outputs that usual mistakes give, by the words for them. shapes: of the parameters on this rank.
    """

    wanted: Mapping[str, torch.Tensor | None]
    world_size: int
    called: str = "output"
    most_bytes: int | None = None
    instead: Mapping[str, torch.Tensor] = field(default_factory=dict)
    shapes: Mapping[str, list[int]] | None = None

    def __call__(self, value: Any) -> str:
        if not isinstance(value, dict):
            return f"its {self.called} did not come back"
        if problem := self._holds(value):
            return problem
        if value.get("kind of output"):
            kind = value["kind of output"]
            what = "nothing came back" if kind == "NoneType" else f"it is a {kind}, not a tensor"
            return f"{self.called}: {what}"
        for name, wanted in self.wanted.items():
            if problem := self._part(wanted, value.get(name)):
                usual = self._usual(value[name]) if name == "output" else ""
                return f"{self.called if name == 'output' else name}: {problem}{usual}"
        if value.get("logits as given") is False:
            return "the logits that it was given have changed"
        if value.get("spoilt"):
            return f"{value['spoilt']}, and autograd may need it once more"
        if value.get("autograd warned"):
            return "autograd warns that it does not know how to differentiate a call in forward"
        return ""

    def _holds(self, value: dict[str, Any]) -> str:
        held, most = value.get("bytes held"), self.most_bytes
        shapes = value.get("shapes")
        for name in ("weight", "bias"):
            wanted, got = self.wanted.get(name), value.get(name)
            if isinstance(wanted, torch.Tensor) and not isinstance(got, torch.Tensor):
                return f"the layer has no parameter called {name}"
        if isinstance(held, int) and most is not None and held > most:
            own = [self._part(self.wanted.get(n), value.get(n)) for n in ("weight", "bias")]
            if not any(own):
                return f"the layer keeps {held:,} bytes; its own parts have {most:,}"
        if self.shapes is not None and isinstance(shapes, dict):
            for name, shape in self.shapes.items():
                if shapes.get(name) != shape:
                    return f"{name} has the shape {shapes.get(name)} on this rank, not {shape}"
        return ""

    def _part(self, wanted: torch.Tensor | None, got: Any) -> str:
        if wanted is None:
            return "" if got is None else "there should be none"
        if got is None:
            return "there is none"
        problem = difference(wanted, got)
        return problem + self._relation(wanted, got) if problem else ""

    def _usual(self, got: Any) -> str:
        """Name the usual mistake that gives this output; and a number's own two values."""
        for words, mistaken in self.instead.items():
            if not difference(mistaken, got):
                return f": {words}"
        wanted = self.wanted["output"]
        if wanted is not None and not wanted.dim() and isinstance(got, torch.Tensor):
            return f": {got.item():g}, and {wanted.item():g} is right" if got.numel() == 1 else ""
        return ""

    def _relation(self, wanted: torch.Tensor, got: Any) -> str:
        if not isinstance(got, torch.Tensor) or got.shape != wanted.shape:
            return ""
        if not got.isfinite().all():
            return ": there is nan or inf in it"
        n = self.world_size
        for factor, words in ((n, f"{n} times what is right"), (1 / n, f"1/{n} of what is right")):
            if torch.allclose(got.double(), wanted.double() * factor, rtol=1e-4):
                return f": it is {words}"
        return ""


@dataclass(frozen=True)
class LookFor:
    """The first thing to look at: (what the problem or the error says, advice), in this order.

    {n} in an advice becomes the world size.
    """

    clues: tuple[tuple[str, str], ...]

    def __call__(self, case: Case, run: Run) -> str:
        said = _said(case, run)
        for pattern, advice in (_NOTHING, *self.clues, *_FAILURES):
            if re.search(pattern, said):
                return advice.replace("{n}", str(case.world_size))
        return ""


_NOTHING = ("did not come back|nothing came back", "Is there a `return` on every path?")
_FAILURES = (
    (
        "^deadlock",
        "Every rank must make the same calls in the same order, forward and backward: no call may "
        "depend on the rank.",
    ),
    (
        "^died",
        "Calls that met had tensors of different lengths. What is summed must have the same shape on "
        "all ranks.",
    ),
    (
        "and autograd may need it once more",
        "`all_reduce` writes into its tensor, and autograd may have kept that for others: sum a clone.",
    ),
    (
        "does not require grad",
        "The output has no graph: something in forward has cut it (detach, no_grad, a copy into a new "
        "tensor), so backward cannot begin.",
    ),
    (
        "autograd warns",
        "`dist.all_reduce` on a tensor that autograd watches is unknown to it, and torch says that the "
        "gradient may silently be wrong. Let CopyToRanks and SumOverRanks communicate, by `.apply(...)`.",
    ),
    (
        "in-place operation",
        "Something is written into a tensor that autograd still needs. Work on a copy.",
    ),
)


def _said(case: Case, run: Run) -> str:
    failure = run.failure
    if isinstance(failure, Deadlock):
        return "deadlock"
    if isinstance(failure, RankDied):
        return "died"
    if isinstance(failure, RankFailed):
        return f"{failure.error.kind}: {failure.error}"
    if failure is not None:
        return ""
    pairs = zip(case.expected or (), run.values, strict=True)
    return next(filter(None, (str(wanted(value)) for wanted, value in pairs)), "")
