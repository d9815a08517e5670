"""What one look at the machine found out: made by the probes, told by the doctor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class Finding:
    """One line of `course doctor`.

    status: "ok"; "warning": the course goes on, and `detail` says what does not work or is slower;
    "missing": the course cannot do without it. advice: what to do, empty where there is nothing.
    """

    name: str
    status: Status
    detail: str
    advice: str = ""
