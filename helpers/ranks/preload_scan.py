"""Find in a program's text what it will import, so that the rank server can import it once.

The first optimizer, DDP or compiled function of a process imports 800 modules, which takes a second on each
rank of each launch. If the text of a cell or the data for the ranks names such a thing, the server imports it
before it forks. Programs that use none of them do not wait, and need no memory for them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

_COMPILER = ("torch._dynamo",)
_SHARDED = ("torch.distributed.tensor", "torch.distributed.fsdp", *_COMPILER)
_WORDS: dict[str, tuple[str, ...]] = {
    r"optim|SGD|Adam": _COMPILER,
    r"DistributedDataParallel|DDP|torch\.nn\.parallel": (
        *_COMPILER,
        "torch.distributed.algorithms.join",
        "torch.distributed.algorithms.ddp_comm_hooks.default_hooks",
    ),
    r"compile": (*_COMPILER, "torch._dynamo.backends.debugging", "torch._functorch.aot_autograd"),
    r"fully_shard|fsdp|FSDP|FullySharded": _SHARDED,
    r"DTensor|distribute_tensor|device_mesh|parallelize_module": (
        "torch.distributed.tensor",
        "torch.distributed.tensor.parallel",
        *_COMPILER,
    ),
    r"pipelining|PipelineStage": ("torch.distributed.pipelining", *_COMPILER),
    r"ZeroRedundancy": ("torch.distributed.optim", *_COMPILER),
    r"distributed\.checkpoint|dcp": ("torch.distributed.checkpoint", *_COMPILER),
    r"_functional_collectives|funcol": ("torch.distributed._functional_collectives",),
    # torch compares a given gradient's shape with its tensor's by symbolic shapes: 485 modules.
    r"\.backward\((?!\)|retain_graph)|autograd\.grad|autograd\.backward": (
        "torch.fx.experimental.symbolic_shapes",
    ),
    r"numpy|np\.": ("numpy.random",),
}
_ALL = {re.compile(words.encode()): modules for words, modules in _WORDS.items()}
# Programs of exercises. A payload also names the engine's own modules, but they are imported already.
_OURS = re.compile(rb"helpers\.exercises(?:\.\w+)+")
# Inductor starts processes when it is imported, but a rank server must start only ranks.
_OF_TORCH = re.compile(r"torch(?!\._inductor)(?:\.[A-Za-z_]\w*)+", re.ASCII)
_CHECKED = b"helpers.checks.driver"
_DRIVERS = ("helpers.checks.driver", "helpers.checks.adversarial")
# Look through this many bytes. Beyond them there are tensors, not names.
_MOST = 1 << 20


def wanted_by(*texts: bytes) -> list[str]:
    """Return the modules that a program will import. texts: its source, or its pickled form."""
    heads = [text[:_MOST] for text in texts]
    ours = {name.decode() for text in heads for name in _OURS.findall(text)}
    drivers = _DRIVERS if any(_CHECKED in text for text in heads) else ()
    heads += _sources(ours)
    found = [
        name for words, modules in _ALL.items() if any(map(words.search, heads)) for name in modules
    ]
    # Only modules that this process has imported: texts of other processes must not choose imports.
    programs = [n for n in sorted(ours) if "in_ranks" in n.split(".") and n in sys.modules]
    return list(dict.fromkeys([*found, *drivers, *programs]))


def of_torch(names: Iterable[str]) -> list[str]:
    """Return the modules of torch among the names that a rank reports as imported."""
    return [name for name in names if _OF_TORCH.fullmatch(name)]


def _sources(names: Iterable[str]) -> list[bytes]:
    """Return the source of our own modules that a payload names, such as an exercise's program."""
    files = (getattr(sys.modules.get(name), "__file__", None) for name in names)
    return [Path(file).read_bytes() for file in files if file]
