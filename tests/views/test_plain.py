from __future__ import annotations

import pytest

from helpers.views.plain import clean, clip, for_log, one_line, plural, short_bytes, split_lines
from helpers.views.values import short_value


@pytest.mark.parametrize(
    ("dirty", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("tab\tkept\nand newline", "tab\tkept\nand newline"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("10%\r20%\r30%", "30%"),
        ("10%\rdone\r", "done"),
        ("bell\x07 nul\x00", "bell\ufffd nul\ufffd"),
        ("evil\u202etxt.exe", "evil\ufffdtxt.exe"),
        ("half\ud83d", "half\ufffd"),
        ("[rank0]:[E1121 12:00:13.181089191 Gloo.cpp:2901] late", "[E Gloo.cpp] late"),
        ("first\n[W1121 09:11:12.123456789 socket.cpp:7] 2", "first\n[W socket.cpp] 2"),
        ("[E1121 is mine] as it is", "[E1121 is mine] as it is"),
        ("\x1b]never closed\nnext line", "\nnext line"),
    ],
)
def test_removes_terminal_codes_and_control_characters(dirty: str, shown: str) -> None:
    assert clean(dirty) == shown


def test_cleaned_text_can_be_encoded() -> None:
    clean("".join(map(chr, range(0x110000)))).encode()


def test_omits_middle_of_long_output() -> None:
    lines = split_lines("\n".join(map(str, range(1000))), max_lines=10)
    assert lines == (
        "0",
        "1",
        "2",
        "3",
        "4",
        "… 990 lines not shown …",
        *map(str, range(995, 1000)),
    )


def test_clips_texts_and_writes_plurals() -> None:
    assert one_line("  a\n b\t", 10) == "a b"
    assert len(one_line("x" * 10_000_000, 60)) == 60
    assert clip("abcdef", 4) == "abc…"
    assert [plural(n, "message") for n in (0, 1, 1200)] == [
        "0 messages",
        "1 message",
        "1,200 messages",
    ]


@pytest.mark.parametrize(
    ("nbytes", "shown"),
    [
        (0, "0 B"),
        (640, "640 B"),
        (1000, "1 kB"),
        (1_600_000, "1.6 MB"),
        (2**40, "1.1 TB"),
        (999_999, "1 MB"),
        (150_000, "150 kB"),
        (2**60, "1153 PB"),
        (10**40, "huge"),
    ],
)
def test_short_byte_counts_fit_six_characters(nbytes: int, shown: str) -> None:
    assert short_bytes(nbytes) == shown


def test_truncates_only_large_tensors() -> None:
    torch = pytest.importorskip("torch")
    assert short_value(torch.tensor([1.0, 2.0])) == "tensor([1., 2.])"
    assert short_value(torch.arange(6).reshape(2, 3)) == "tensor([[0, 1, 2], [3, 4, 5]])"
    assert short_value(torch.tensor(3)) == "tensor(3)"
    assert short_value(torch.arange(1000)) == "tensor([0, 1, 2, 3, 4, 5, …]) of shape (1000,)"
    assert short_value(torch.zeros(2, 500)) == (
        "tensor([0., 0., 0., 0., 0., 0., …]) of shape (2, 500)"
    )
    assert short_value(torch.zeros(0, 5)) == "tensor([], size=(0, 5))"
    assert short_value({"a": torch.zeros(1000)}).startswith("{'a': tensor([0.")


def test_truncates_values_and_omits_addresses() -> None:
    assert short_value(None) == "None"
    assert short_value(list(range(100))).endswith("18, 19, …]")
    assert len(short_value("x" * 10**6)) <= 400
    assert " at 0x" not in short_value(object())
    assert short_value({"b", "a", "c"}) == "{'a', 'b', 'c'}"


def test_broken_repr_shows_type_name() -> None:
    class Broken:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    class Tensor:
        """Not torch's."""

    assert "Broken" in short_value(Broken())
    assert "Tensor" in short_value(Tensor())


def test_log_prefix_inside_message_loses_time() -> None:
    said = (
        "RuntimeError: [rank0]:[F1121 16:18:18.226 ProcessGroupGloo.cpp:1537] Check failed: 8 vs 4"
    )
    assert clean(said) == "RuntimeError: [F ProcessGroupGloo.cpp] Check failed: 8 vs 4"


@pytest.mark.parametrize(
    "line",
    ["::stop-commands::x", "  ::error::x", "##vso[task.x]", "##teamcity[x]", "section_end:1:x"],
)
def test_disarms_ci_commands_in_log_lines(line: str) -> None:
    for text in (line, f"rank 0 printed\n{line}\nand more"):
        assert f"| {line}".replace("##[", "## [") in for_log(text)
    assert "##[" not in for_log("rank 0 printed ##[error]x")
    assert for_log("a::b\n# c") == "a::b\n# c"
