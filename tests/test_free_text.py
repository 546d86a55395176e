"""The terminals of free text in shipped grammars follow from their machines: what the generator writes stands there."""

from __future__ import annotations

from pathlib import Path

import pytest

import toolgram
from tests.generators.free_text import written

# Grammars that say the same in another way, and why. That it is the same, `toolgram check` and the properties hold.
IN_OTHER_WORDS = {
    "functionary_v3_2": "of several `>` in a row, the last three are the marker",
    "granite_3": "a phrase that closes a thought is a marker only where the thought began with a phrase",
    "llama3_json": "a brace may begin a call",
    "llama4_pythonic": "a bracket may begin a call",
    "xlam": "a bracket may begin a call",
}


@pytest.mark.parametrize("name", [name for name in toolgram.format_names() if name not in IN_OTHER_WORDS])
def test_free_text_is_what_no_marker_of_the_machine_begins(name: str) -> None:
    spec = toolgram.get_format(name).spec
    path = Path(spec.grammar_path)
    wanted = written(path, spec)
    assert path.read_text("utf-8") == wanted, f"run python -m tests.generators.free_text {name}"


@pytest.mark.parametrize("name", IN_OTHER_WORDS)
def test_an_exception_is_one(name: str) -> None:
    spec = toolgram.get_format(name).spec
    path = Path(spec.grammar_path)
    assert path.read_text("utf-8") != written(path, spec), f"{name} is no exception any more"
