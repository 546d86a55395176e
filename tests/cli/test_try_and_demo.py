"""`toolgram try` and `toolgram demo`, as someone would run them."""

from __future__ import annotations

import pytest

import toolgram
from tests.cli.running import run
from tests.properties.selection import quarter
from toolgram.cli.demo import MOST_LINES, screen

SCREEN = 24


def tried(text: str, *options: str) -> tuple[int, str]:
    result = run("try", *options, text=text)
    return result.exit_code, result.output


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "test_try_reads_all_of_an_example"))
def test_try_reads_all_of_an_example(name: str) -> None:
    # Several formats may read one example alike; none may be shown that reads less of it than its own does.
    fmt = toolgram.get_format(name)
    status, output = tried(fmt.example)
    assert status == 0
    shown = output.split()[1]
    ours = fmt.parse(fmt.example)
    found = toolgram.get_format(shown).parse(fmt.example)
    assert [(call.name, call.status) for call in found.tool_calls] == [
        (call.name, call.status) for call in ours.tool_calls
    ]
    assert f"toolgram explain --format {shown}" in output


@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_format_fits_on_a_screen(name: str) -> None:
    lines = list(screen(toolgram.get_format(name)))
    assert MOST_LINES / 2 < len(lines) <= SCREEN - 2
    assert not any("\n" in line.plain for line in lines)
    assert any("complete" in line.plain for line in lines)
