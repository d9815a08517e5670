"""Make a rank wait for keys of a store as under torchrun, and show the wait to its launcher.

A rank's default group meets at a `FileStore`, which is faster to join than torchrun's `TCPStore`. If learners
use the default group's store directly, the two kinds behave differently (torch 2.13): a `FileStore` raises a
plain RuntimeError instead of a DistStoreError, and up to a second too late, because it counts whole seconds.
So Python's calls on the default group's store are changed to behave like calls on a `TCPStore`. Calls from
C++, including gloo's, and a `FileStore` created by a learner are unchanged.

While a rank waits, its status thread reads the keys from the frame of `_wait`: see `key_wait_of`.
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

from helpers.trace.frames import clip_text, is_course_code

# Functions that compute a call's keys and timeout from its arguments.
_ArgumentReader = Callable[..., tuple[list[str], timedelta]]
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.02
_MAX_NAME, _MAX_KEYS = 80, 8
_LIBC = ctypes.CDLL(None)


@dataclass(frozen=True)
class KeyWait:
    """A wait for keys that another process or thread must set.

    Attributes:
        call: The call, such as "store.get".
        port: The port of the server with the keys; 0 for a file or this process.
        ends_in_s: The time until the call times out, in seconds.
        number: The number of the wait, unique in this process.
    """

    call: Annotated[str, Meta(max_length=_MAX_NAME)]
    keys: Annotated[
        tuple[Annotated[str, Meta(max_length=_MAX_NAME)], ...], Meta(max_length=_MAX_KEYS)
    ]
    port: int
    ends_in_s: float
    number: int


def install(path: str) -> None:
    """Route this process's waiting calls on every kind of store through `_wait`.

    path: the file of the default group's store.
    """
    from torch._C._distributed_c10d import Store

    def is_default(base: object) -> bool:
        return type(base).__name__ == "FileStore" and getattr(base, "path", "") == path

    store_class: Any = Store
    readers: dict[str, _ArgumentReader] = {
        "get": lambda store, key: ([key], store.timeout),
        "wait": lambda store, keys, timeout=None: (list(keys), timeout or store.timeout),
        "multi_get": lambda store, keys: (list(keys), store.timeout),
        "queue_pop": lambda store, key, block=True: ([key] * block, store.timeout),
    }
    for name, read_arguments in readers.items():
        _wrap_method(store_class, name, read_arguments, is_default)


def _wrap_method(
    store_class: Any,
    name: str,
    read_arguments: _ArgumentReader,
    is_default: Callable[[object], bool],
) -> None:
    original = getattr(store_class, name)

    @functools.wraps(original)
    def call(store: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            keys, timeout = read_arguments(store, *args, **kwargs)
        except TypeError:  # torch's message explains the wrong arguments.
            return original(store, *args, **kwargs)
        base = getattr(store, "_underlying_non_prefix_store", store)
        ends_s = time.monotonic() + timeout.total_seconds()
        call_original = functools.partial(original, store, *args, **kwargs)
        if is_default(base) and name in {"get", "wait"}:
            poll = functools.partial(_wait_for_file, store, keys, timeout, ends_s)
            _wait(poll, name, base, keys, ends_s)
            return call_original() if name == "get" else None
        return _wait(call_original, name, base, keys, ends_s)

    setattr(store_class, name, call)


def _wait(wait: Callable[[], Any], name: str, base: Any, keys: list[str], ends_s: float) -> Any:
    return wait()  # `key_wait_of` reads the other arguments from this frame.


def _wait_for_file(store: Any, keys: list[str], timeout: timedelta, ends_s: float) -> None:
    from torch.distributed import DistStoreError

    pause_s = _FIRST_PAUSE_S
    while not store.check(keys):
        left_s = ends_s - time.monotonic()
        if left_s <= 0:
            milliseconds = round(timeout.total_seconds() * 1000)
            names = ", ".join(f"/{key}" for key in keys)
            raise DistStoreError(f"wait timeout after {milliseconds}ms, keys: {names}")
        # Do not use `time.sleep`: the launcher distinguishes torch's polling from a learner's sleep, which is
        # not a wait, by the system call.
        _LIBC.usleep(int(1e6 * min(pause_s, left_s)))
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def key_wait_of(frame: FrameType | None) -> KeyWait | None:
    """Return a thread's current wait for keys, searching from its innermost frame outwards."""
    while frame is not None:
        if frame.f_code is _wait.__code__:
            arguments, caller = frame.f_locals, frame.f_back and frame.f_back.f_back
            if not arguments["keys"] or caller is None or is_course_code(caller.f_code):
                return None  # Keys of the course's code mean nothing to the learner.
            port = getattr(arguments["base"], "port", 0)
            keys = tuple(clip_text(str(key), _MAX_NAME) for key in arguments["keys"][:_MAX_KEYS])
            ends_s = arguments["ends_s"]
            name = f"store.{arguments['name']}"
            return KeyWait(name, keys, port, ends_s - time.monotonic(), int(1e9 * ends_s))
        frame = frame.f_back
    return None
