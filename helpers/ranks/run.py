"""What a launch gives back: frozen data that views and checks read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from helpers.trace.events import Trace

if TYPE_CHECKING:
    from helpers.ranks.failures import RankFailure
    from helpers.ranks.site import Traffic


@dataclass(frozen=True)
class Run:
    """What happened on each rank of one launch.

    values[r]: what rank r returned (None if it did not return). output[r]: what it printed.
    trace: every communication call. failure: None, or why the launch did not end well.
    seconds: call to result in the launching process. notes: what else the reader should know.
    traffic: what was seen from outside of the ranks, where they ran behind walls and all answered.
    """

    world_size: int
    values: list[Any]
    output: list[str]
    trace: Trace
    failure: RankFailure | None = None
    backend: str = "gloo"
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    traffic: Traffic | None = None

    @property
    def ok(self) -> bool:
        return self.failure is None

    def __repr__(self) -> str:
        from helpers.views.lanes import lanes_text

        return lanes_text(self)

    def _repr_html_(self) -> str:
        from helpers.views.lanes import lanes_html

        return lanes_html(self)
