"""Describe a program's outcome in plain text that is comparable between all ways.

Both sides write values with `text_of`: a plain rank before exiting, and the kernel after a launch.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from dataclasses import dataclass
from typing import Any

VALUE, HANG = "value", "hang"
_SHOWN_ELEMENTS = 40


@dataclass(frozen=True)
class Outcome:
    """The outcome of a program.

    kind: "value", or the kind of failure. values, output: one text for each rank. rank, message: those of
    the root cause. named: the engine's error, such as "Deadlock". seconds: the time of the whole run.
    """

    kind: str
    values: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    rank: int | None = None
    message: str = ""
    named: str = ""
    seconds: float = 0.0

    @property
    def short(self) -> str:
        """One line for a reader."""
        if self.kind == VALUE:
            same = len(set(self.values)) == 1
            values = f"all {self.values[0]}" if same else ", ".join(self.values)
            printed = "; printed " + repr("|".join(self.output)) if any(self.output) else ""
            return _cut(f"{values}{printed}", 400)
        at = f" on rank {self.rank}" if self.rank is not None else ""
        name = f" ({self.named})" if self.named else ""
        return _cut(f"{self.kind}{name}{at}: {self.message}", 400)

    def as_json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def from_json(data: dict[str, Any]) -> Outcome:
    """Read the JSON written by `as_json`."""
    data = {**data, "values": tuple(data["values"]), "output": tuple(data["output"])}
    return Outcome(**data)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# --- differences -----------------------------------------------------------------------------------


def difference(plain: Outcome, other: Outcome, expected: Any = None) -> str:
    """Return, in one line, the difference between another way's outcome and the plain one, or "".

    expected: an outcome in DIFFERS, which replaces the plain one. It is a kind or the name of the
    engine's error (several names separated by "|" if chance decides), or the values by rank.
    """
    if isinstance(expected, str):
        return (
            ""
            if {other.kind, other.named} & set(expected.split("|"))
            else f"expected {expected}, got {other.short}"
        )
    if expected is not None:
        plain = Outcome(VALUE, tuple(text_of(value) for value in expected), other.output)
    if plain.kind != other.kind:
        return f"{plain.short}  ->  {other.short}"
    if plain.kind != VALUE:
        return _output_of_failed(plain, other)
    for rank, (one, two) in enumerate(zip(plain.values, other.values, strict=True)):
        if one != two:
            return f"value of rank {rank}: {_cut(one, 200)}  ->  {_cut(two, 200)}"
    for rank, (one, two) in enumerate(zip(plain.output, other.output, strict=True)):
        one, two = printed(one), printed(two)
        if one != two:
            return f"output of rank {rank}: {_tail(one, two)!r}  ->  {_tail(two, one)!r}"
    return ""


def _output_of_failed(plain: Outcome, other: Outcome) -> str:
    """Only compare the failed rank's output before its failure, because others may be killed at any point."""
    if plain.kind == HANG or plain.rank is None or plain.rank != other.rank:
        return ""
    one, two = (_before_traceback(o.output[plain.rank]) for o in (plain, other))
    if one == two:
        return ""
    return f"output of failed rank {plain.rank}: {_tail(one, two)!r}  ->  {_tail(two, one)!r}"


def fingerprint(source: str, outcome: Outcome) -> str:
    """Return a digest of a program and of the parts of its outcome that `difference` compares."""
    compared: tuple[object, ...] = (outcome.kind,)
    if outcome.kind == VALUE:
        compared = (outcome.values, tuple(map(printed, outcome.output)))
    elif outcome.kind != HANG and outcome.rank is not None:
        compared = (outcome.kind, _before_traceback(outcome.output[outcome.rank]))
    return hashlib.sha256(repr((source, *compared)).encode(errors="surrogatepass")).hexdigest()[:16]


def _before_traceback(output: str) -> str:
    # Once ranks are connected, torch's sys.excepthook begins each line with the rank
    return re.split(r"(?:\[rank\d+\]: )?Traceback \(most recent", printed(output))[0].strip("\n")


def _tail(one: str, two: str) -> str:
    """Remove the common beginning of two outputs, and return the length of the first."""
    same = 0
    while same < min(len(one), len(two)) and one[same] == two[same]:
        same += 1
    return _cut(one[max(0, same - 20) :], 120) + f" ({len(one)} characters)"


_TORCHS_OWN = re.compile(
    r"^\[(W|I|E|rank\d|Gloo|torch)|^[WIE]\d{4} \d\d:|^terminate called|^(USDT|INFO|STAGE):\d"
    r"|^Exception raised from|^frame #\d+:|^Process SpawnProcess-\d+:"
)
_OF_WARNING = r"^(?:.*:\d+|cell \[\d+\], line \d+): (?=\w*Warning:)"
_PLACE = re.compile(rf'{_OF_WARNING}|(?<=File )".*", line \d+', re.MULTILINE)


def printed(output: str) -> str:
    """Return a program's output, without paths and without lines from the launcher."""
    lines, after_warning = [], False
    for line in output.split("\n"):
        source_of_warning = after_warning and line.startswith("  ")
        place = re.match(_OF_WARNING, line)
        if not _TORCHS_OWN.match(line) and not source_of_warning:
            lines.append(_PLACE.sub("", line))
        after_warning = place is not None
    return "\n".join(lines).strip("\n")


# --- errors ------------------------------------------------------------------------------------------

_TORCHS_ERRORS = {"RuntimeError", "DistBackendError", "DistNetworkError", "DistStoreError"}
_PEER_WENT = re.compile(
    r"connection (closed|reset|was closed|refused)|broken pipe|closed by peer|gloo/transport|"
    r"failed to recv|sendBytes failed|recvValue|should dump",
    re.IGNORECASE,
)


def says_that_a_peer_went(kind: str, message: str) -> bool:
    """Return whether an error is a consequence of another rank's exit, without a cause in this rank.

    This is only used for finding the rank that failed first. The kinds of errors are compared unchanged.
    """
    return kind in _TORCHS_ERRORS and bool(_PEER_WENT.search(message))


# --- values ------------------------------------------------------------------------------------------


def text_of(value: Any) -> str:
    """Write a value exactly: its type, dtype and shape, and every bit of it."""
    try:
        return _text_of(value)
    except RecursionError:
        return "<a value that holds itself>"


def _text_of(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_text_of(k)}: {_text_of(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}({', '.join(sorted(map(_text_of, value)))})"
    if isinstance(value, list):
        return "[" + ", ".join(map(_text_of, value)) + "]"
    if isinstance(value, tuple) and type(value).__name__ == "Size":
        return f"Size({list(value)})"
    if isinstance(value, tuple):
        name = type(value).__name__ if hasattr(value, "_fields") else ""
        return f"{name}({', '.join(map(_text_of, value))})"
    if isinstance(value, (bytes, bytearray)):
        return _long(repr(bytes(value)), bytes(value))
    if type(value) is str:
        return _long(repr(value), value.encode("utf-8", "surrogatepass"))
    if value is None or type(value) in {bool, int, float, complex, range}:
        return repr(value)
    return _text_of_array(value)


def _text_of_array(value: Any) -> str:
    import numpy as np
    import torch

    if type(value).__name__ == "AsyncCollectiveTensor":
        value = value.wait()
    if type(value) in {torch.Tensor, torch.nn.Parameter} and _plain_layout(value):
        return _text_of_tensor(value.detach().resolve_conj().resolve_neg().contiguous())
    if isinstance(value, (torch.dtype, torch.device)):
        return repr(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "biufc":
        data = np.ascontiguousarray(value)
        text = _long(repr(value.tolist()), data.tobytes())
        return f"{type(value).__name__}({value.dtype.str}, {list(value.shape)}, {text})"
    return f"<{type(value).__name__}>"


def _plain_layout(value: Any) -> bool:
    import torch

    return value.layout == torch.strided and not value.is_quantized and not value.is_meta


def _text_of_tensor(value: Any) -> str:
    import torch

    if value.numel() <= _SHOWN_ELEMENTS:
        text = repr(value.tolist())
    else:
        text = _digest(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return f"tensor({str(value.dtype).removeprefix('torch.')}, {list(value.shape)}, {text})"


def _long(text: str, data: bytes) -> str:
    return text if len(text) <= 1000 else f"{text[:20]}… {len(data)} bytes {_digest(data)}"


def _digest(data: bytes) -> str:
    return "sha256 " + hashlib.sha256(data).hexdigest()[:16]
