"""Compare the calls of `new_group` across ranks, through a separate store of the check."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import Any

from torch._C._distributed_c10d import FileStore, Store
from torch.distributed import distributed_c10d

from helpers.ranks.rank_context import launch_folder, span

DEADLINE = timedelta(seconds=20)
"""Timeout of every wait in this module: longer than any case may take."""
_NO_MORE_GROUPS = "nothing"
_next_store = count()


class GroupsDiffer(RuntimeError):
    """The ranks do not ask for the same groups in the same order."""


@contextmanager
def watch_new_group(rank: int, world_size: int) -> Iterator[None]:
    """Record each call of `new_group`; raise GroupsDiffer if ranks ask for different groups.

    torch does not compare the groups, because a group's name comes from a counter on each rank. If the
    counters differ, ranks read the addresses of a different group, so some hang and others get a wrong sum.
    """
    real, made = distributed_c10d._new_group_with_tag, 0
    store = open_check_store(f"groups {next(_next_store)}", world_size)

    def compare_group(ranks: Sequence[int] | None = None, *args: Any, **kwargs: Any) -> Any:
        nonlocal made
        asked = sorted(range(world_size) if ranks is None else ranks)
        with span(f"new_group {' '.join(map(str, asked))}"):
            if not kwargs.get("use_local_synchronization"):
                made += 1
                _compare_with_peers(store, made, str(asked), rank, world_size)
            return real(ranks, *args, **kwargs)

    distributed_c10d._new_group_with_tag = compare_group
    try:
        yield
        # releases a rank that waits for this rank's next call
        store.set(f"{made + 1}/{rank}", _NO_MORE_GROUPS)
    finally:
        distributed_c10d._new_group_with_tag = real


def _compare_with_peers(store: Store, call: int, ranks: str, rank: int, world_size: int) -> None:
    store.set(f"{call}/{rank}", ranks)
    for other in range(world_size):
        theirs = store.get(f"{call}/{other}").decode()
        if theirs != ranks:
            what = (
                "has returned without this call"
                if theirs == _NO_MORE_GROUPS
                else f"passes {theirs}"
            )
            raise GroupsDiffer(
                f"in call {call} of new_group, rank {rank} passes {ranks}, but rank {other} {what}. Every "
                "rank must call new_group for every group in the same order, even for groups that it "
                "isn't in."
            )


def open_check_store(name: str, world_size: int) -> Store:
    # A FileStore deletes its file when the last of `world_size` clients closes it. A store that clients open
    # and close in turn must therefore expect more clients than will ever open it.
    store = FileStore(str(launch_folder() / f"program {name}"), 1000 * world_size)
    store.set_timeout(DEADLINE)
    return store
