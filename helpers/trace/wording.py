"""Words shared by several reports: names of ranks, groups and tags, and verbs that agree with them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from helpers.trace.events import Event, Trace


def name_ranks(ranks: Sequence[int]) -> str:
    """Return "rank 2", "ranks 0, 1 and 2", or "no rank"."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    return "ranks " + ", ".join(map(str, ranks[:-1])) + f" and {ranks[-1]}" if ranks else "no rank"


def name_group(call: Event, trace: Trace) -> str:
    """Return "the group of all ranks", or the members of a call's group."""
    if set(call.group_ranks) == set(range(trace.world_size)):
        return "the group of all ranks"
    return f"the group of {name_ranks(call.group_ranks)}"


def name_keys(keys: Sequence[str]) -> str:
    """Return "the key 'x'" or "the keys 'x', 'y'"."""
    names = ", ".join(map(repr, keys))
    return f"the key {names}" if len(keys) == 1 else f"the keys {names}"


def describe_tag(event: Event) -> str:
    """Describe the tag of a send or a receive, and whether it is the default."""
    return f"with tag {event.tag}" + ("" if event.tag else " (the default)")


def has_or_have(members: Collection[object]) -> str:
    """Return "has" or "have", whichever agrees with the number of members."""
    return "have" if len(members) > 1 else "has"


def is_or_are(members: Collection[object]) -> str:
    """Return "is" or "are", whichever agrees with the number of members."""
    return "are" if len(members) > 1 else "is"


def it_or_them(members: Collection[object]) -> str:
    """Return "it" or "them", whichever agrees with the number of members."""
    return "them" if len(members) > 1 else "it"


def does_or_do(members: Collection[object]) -> str:
    """Return "does" or "do", whichever agrees with the number of members."""
    return "does" if len(members) == 1 else "do"
