"""Advice on crashes, shared by exercises of several notebooks."""

from __future__ import annotations

from helpers.checks.failure_advice import CrashAdvice

GROUP_AS_OP = CrashAdvice(
    r"(?s)incompatible function arguments.*arg0: torch\._C\._distributed_c10d\.ReduceOp\) -> None",
    "The second positional argument of `all_reduce` is `op`. To pass a group, use the keyword: `group=...`.",
)
