"""Find out from a program's text which modules it will import, so that the server imports them once.

The first optimizer, DDP or compiled function of a process imports 800 modules, which takes a second on each
rank of each launch. If the text of a cell or the data for the ranks mentions one of these features, the
server imports its modules before forking. Other programs need neither the time nor the memory for these
modules.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

_COMPILER_MODULES = ("torch._dynamo",)
_SHARDING_MODULES = ("torch.distributed.tensor", "torch.distributed.fsdp", *_COMPILER_MODULES)
_MODULES_BY_PATTERN: dict[str, tuple[str, ...]] = {
    r"optim|SGD|Adam": _COMPILER_MODULES,
    r"DistributedDataParallel|DDP|torch\.nn\.parallel": (
        *_COMPILER_MODULES,
        "torch.distributed.algorithms.join",
        "torch.distributed.algorithms.ddp_comm_hooks.default_hooks",
    ),
    r"compile": (
        *_COMPILER_MODULES,
        "torch._dynamo.backends.debugging",
        "torch._functorch.aot_autograd",
    ),
    r"fully_shard|fsdp|FSDP|FullySharded": _SHARDING_MODULES,
    r"DTensor|distribute_tensor|device_mesh|parallelize_module": (
        "torch.distributed.tensor",
        "torch.distributed.tensor.parallel",
        *_COMPILER_MODULES,
    ),
    r"pipelining|PipelineStage": ("torch.distributed.pipelining", *_COMPILER_MODULES),
    r"ZeroRedundancy": ("torch.distributed.optim", *_COMPILER_MODULES),
    r"distributed\.checkpoint|dcp": ("torch.distributed.checkpoint", *_COMPILER_MODULES),
    r"_functional_collectives|funcol": ("torch.distributed._functional_collectives",),
    # When a gradient is passed, torch compares its shape with the tensor's by symbolic shapes, which need 485
    # modules.
    r"\.backward\((?!\)|retain_graph)|autograd\.grad|autograd\.backward": (
        "torch.fx.experimental.symbolic_shapes",
    ),
    r"numpy|np\.": ("numpy.random",),
}
_MODULES_BY_REGEX = {
    re.compile(words.encode()): modules for words, modules in _MODULES_BY_PATTERN.items()
}
# Programs of exercises. A payload also mentions the engine's modules, but these are already imported.
_EXERCISE_MODULE_PATTERN = re.compile(rb"helpers\.exercises(?:\.\w+)+")
# Inductor starts processes when it is imported, but a rank server must start only ranks.
_TORCH_MODULE_PATTERN = re.compile(r"torch(?!\._inductor)(?:\.[A-Za-z_]\w*)+", re.ASCII)
_DRIVER_NAME = b"helpers.checks.driver"
_DRIVER_MODULES = ("helpers.checks.driver", "helpers.checks.adversarial")
# Number of bytes to search. The rest of a payload contains tensors, not names.
_MAX_SCANNED_BYTES = 1 << 20


def find_imports(*texts: bytes) -> list[str]:
    """Return the modules that a program will import. texts: the program's source, or its pickled form."""
    beginnings = [text[:_MAX_SCANNED_BYTES] for text in texts]
    exercise_modules = {
        name.decode() for text in beginnings for name in _EXERCISE_MODULE_PATTERN.findall(text)
    }
    drivers = _DRIVER_MODULES if any(_DRIVER_NAME in text for text in beginnings) else ()
    beginnings += _read_sources(exercise_modules)
    found = [
        name
        for words, modules in _MODULES_BY_REGEX.items()
        if any(map(words.search, beginnings))
        for name in modules
    ]
    # Use only modules that this process has imported, because other processes' strings must not choose
    # imports.
    programs = [
        n for n in sorted(exercise_modules) if "in_ranks" in n.split(".") and n in sys.modules
    ]
    return list(dict.fromkeys([*found, *drivers, *programs]))


def torch_modules(names: Iterable[str]) -> list[str]:
    """Return torch's modules among those that a rank reports as imported."""
    return [name for name in names if _TORCH_MODULE_PATTERN.fullmatch(name)]


def _read_sources(names: Iterable[str]) -> list[bytes]:
    """Return the source of the course's modules named in a payload, such as an exercise's program."""
    files = (getattr(sys.modules.get(name), "__file__", None) for name in names)
    return [Path(file).read_bytes() for file in files if file]
