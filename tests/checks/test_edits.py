"""Apply edits to programs, and refuse an edit that fits nowhere or in two places."""

from __future__ import annotations

import ast

import pytest

from helpers.checks.edits import apply_edit, make_edit

BASE = '''\
def average(model: Module) -> None:
    """Average the gradients."""
    for parameter in model.parameters():
        if parameter.requires_grad:
            # Every rank makes the same calls.
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
    dist.barrier()
    for buffer in model.buffers():
        if buffer.requires_grad:
            dist.barrier()
'''.splitlines()


def applied(edit: str) -> str:
    return "\n".join(apply_edit(BASE, edit))


def test_edit_inherits_indentation_of_neighbors() -> None:
    made = applied(
        "- dist.all_reduce(parameter.grad)\n+ if rank == 0:\n+     dist.all_reduce(parameter.grad)"
    )
    assert "            if rank == 0:\n                dist.all_reduce(parameter.grad)\n" in made


def test_context_line_positions_edit() -> None:
    made = applied("+ rank = dist.get_rank()\n  for parameter in model.parameters():")
    assert "    rank = dist.get_rank()\n    for parameter in" in made
    made = applied("  if parameter.grad is None:\n+     missing += 1")
    assert "is None:\n                missing += 1\n" in made


def test_previous_line_disambiguates_repeated_line() -> None:
    made = applied("  parameter.grad /= dist.get_world_size()\n- dist.barrier()")
    assert made.count("dist.barrier()") == 1 and made.endswith("dist.barrier()")


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ("- dist.barrier()", "`dist.barrier\\(\\)` fits in 2 places"),
        ("- dist.send(x)", "`dist.send\\(x\\)` is not in the program"),
        (
            "- dist.all_reduce(parameter.grad)\n- if parameter.requires_grad:",
            "is not in the program below the line before it",
        ),
        ("+ dist.send(x)", "contains no line"),
        ("  dist.all_reduce(parameter.grad)\n? x", "does not begin with"),
    ],
)
def test_refuses_missing_or_ambiguous_edit(edit: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        applied(edit)


PROGRAMS = {
    "other names": (
        "def average(m):\n    for p in m.parameters():\n        if p.requires_grad:\n"
        "            if p.grad is None:\n                p.grad = torch.zeros_like(p)\n"
        "            dist.all_reduce(p.grad)\n    dist.barrier()\n    for b in m.buffers():\n"
        "        if b.requires_grad:\n            dist.barrier()\n",
        ["- parameter.grad /= dist.get_world_size()"],
    ),
    "a new function": (
        "def zeros(p):\n    return p.grad\n\n" + "\n".join(BASE),
        ["+ def zeros(p):", "+     return p.grad", "  def average(model: Module) -> None:"],
    ),
    "a line above a loop": (
        "\n".join(BASE).replace("    for param", "    n = 0\n    for param"),
        ["+ n = 0", "  for parameter in model.parameters():"],
    ),
    "the last line": ("\n".join(BASE[:-1] + ["            pass"]), None),
}


@pytest.mark.parametrize(("program", "edit"), PROGRAMS.values(), ids=PROGRAMS)
def test_shortest_edit_reproduces_program(program: str, edit: list[str] | None) -> None:
    found = make_edit(BASE, program, 8)
    assert edit is None or found.splitlines() == edit
    assert ast.parse(applied(found))


def test_dissimilar_programs_yield_no_edit() -> None:
    assert make_edit(BASE, "def average(model):\n    return [1, 2, 3]\n", 8) == ""
