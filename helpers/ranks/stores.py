"""Waiting for a key of a store, as processes under torchrun do, and so that the wait can be named.

A rank's default group meets at a `FileStore`, which is faster to join than torchrun's `TCPStore`. Where
learners use that store themselves the two differ (torch 2.13): a `FileStore` gives up with a plain
RuntimeError in place of a DistStoreError, and up to a second late, as it counts whole seconds. So Python's
calls of that one store are made to behave like a `TCPStore`'s. Calls that C++ makes, gloo's among them, and a
`FileStore` that the learner makes stay as torch has them.

While a rank waits, its launcher reads from the frame of `_wait` what it waits for: see `wait_of`.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from types import FrameType
from typing import Annotated, Any

from msgspec import Meta

from helpers.trace.frames import clipped, is_ours

# From the arguments of a call: the keys that it waits for, and for how long.
_Given = Callable[..., tuple[list[str], timedelta]]
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.02
_MAX_NAME, _MAX_KEYS = 80, 8
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class KeyWait:
    """A wait for keys that somebody must set.

    call: "store.get" or the like. port: of the server that keeps the keys, 0 if it is a file or this process.
    ends_in_s: when the call gives up. number: another one for each wait of this process.
    """

    call: Annotated[str, Meta(max_length=_MAX_NAME)]
    keys: Annotated[
        tuple[Annotated[str, Meta(max_length=_MAX_NAME)], ...], Meta(max_length=_MAX_KEYS)
    ]
    port: int
    ends_in_s: float
    number: int


def install(path: str) -> None:
    """Have this process's calls of every kind of store that wait go through `_wait`.

    path: the file of the default group's store.
    """
    from torch._C._distributed_c10d import Store

    def is_default(base: object) -> bool:
        return type(base).__name__ == "FileStore" and getattr(base, "path", "") == path

    kinds: Any = Store
    waits: dict[str, _Given] = {
        "get": lambda store, key: ([key], store.timeout),
        "wait": lambda store, keys, timeout=None: (list(keys), timeout or store.timeout),
        "multi_get": lambda store, keys: (list(keys), store.timeout),
        "queue_pop": lambda store, key, block=True: ([key] * block, store.timeout),
    }
    for name, given in waits.items():
        _wrap(kinds, name, given, is_default)


def _wrap(kinds: Any, name: str, given: _Given, is_default: Callable[[object], bool]) -> None:
    plain = getattr(kinds, name)

    @functools.wraps(plain)
    def call(store: Any, *args: Any, **named: Any) -> Any:
        try:
            keys, timeout = given(store, *args, **named)
        except TypeError:  # torch's own message says what is wrong with the arguments
            return plain(store, *args, **named)
        base = getattr(store, "_underlying_non_prefix_store", store)
        ends_s = time.monotonic() + timeout.total_seconds()
        wait = functools.partial(plain, store, *args, **named)
        if is_default(base) and name in {"get", "wait"}:
            poll = functools.partial(_wait_for_file, store, keys, timeout, ends_s)
            _wait(poll, name, base, keys, ends_s)
            return wait() if name == "get" else None
        return _wait(wait, name, base, keys, ends_s)

    setattr(kinds, name, call)


def _wait(wait: Callable[[], Any], name: str, base: Any, keys: list[str], ends_s: float) -> Any:
    return wait()  # the other arguments are for `wait_of`, which finds them in this frame


def _wait_for_file(store: Any, keys: list[str], timeout: timedelta, ends_s: float) -> None:
    from torch.distributed import DistStoreError

    pause_s = _FIRST_PAUSE_S
    while not store.check(keys):
        left_s = ends_s - time.monotonic()
        if left_s <= 0:
            milliseconds = round(timeout.total_seconds() * 1000)
            names = ", ".join(f"/{key}" for key in keys)
            raise DistStoreError(f"wait timeout after {milliseconds}ms, keys: {names}")
        # Not `time.sleep`: by the system call the launcher tells torch's polling from a learner's own sleep,
        # which it must not take for a wait.
        _LIBC.usleep(int(1e6 * min(pause_s, left_s)))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def wait_of(frame: FrameType | None) -> KeyWait | None:
    """Return the wait for keys in which a thread is, from its innermost frame outwards."""
    while frame is not None:
        if frame.f_code is _wait.__code__:
            given, caller = frame.f_locals, frame.f_back and frame.f_back.f_back
            if not given["keys"] or caller is None or is_ours(caller.f_code):
                return (
                    None  # what runs around an answer uses keys of which its author knows nothing
                )
            port = getattr(given["base"], "port", 0)
            keys = tuple(clipped(str(key), _MAX_NAME) for key in given["keys"][:_MAX_KEYS])
            ends_s = given["ends_s"]
            name = f"store.{given['name']}"
            return KeyWait(name, keys, port, ends_s - time.monotonic(), int(1e9 * ends_s))
        frame = frame.f_back
    return None
