"""Every shipped format is in every property: none is left out by a list of its own, or by having no generator."""

import ast
from pathlib import Path

import pytest

import toolgram
from tests.generators.alphabet import contexts, critical_alphabet
from tests.generators.calls_in_halves import around_string, around_value
from tests.generators.grammar_walks import covering_words, walks
from tests.properties import selection

HERE = Path(__file__).parent
# Those that are not about shipped formats, or about one text of one format for each kind of text that is held.
OTHER = {"test_derived", "test_memory", "test_selection"}
MANY = [f"format_{number}" for number in range(60)]


@pytest.mark.parametrize("path", sorted(HERE.glob("test_*.py")), ids=lambda path: path.stem)
def test_every_property_takes_its_formats_from_one_place(path: Path) -> None:
    if path.stem in OTHER:
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
    for test in tests:
        decorators = [ast.unparse(decorator) for decorator in test.decorator_list]
        assert "every_format" in decorators, f"{path.name}: {test.name} chooses its own formats"
    assert "format_names" not in path.read_text(encoding="utf-8"), f"{path.name} makes a list of formats"


def test_few_formats_are_all_taken() -> None:
    names = toolgram.format_names()
    assert selection.window(names, "test_any", selection.ALL) == names
    assert selection.window(names[: selection.PER_RUN], "test_any", "1") == names[: selection.PER_RUN]


@pytest.mark.parametrize("property_name", ["test_a", "test_b", "test_every_character_belongs_to_one_event"])
def test_over_consecutive_seeds_every_property_meets_every_format(property_name: str) -> None:
    windows = [selection.window(MANY, property_name, str(seed)) for seed in range(len(MANY) // selection.PER_RUN)]
    assert all(len(window) == selection.PER_RUN for window in windows)
    assert sorted(name for window in windows for name in window) == sorted(MANY)


@pytest.mark.parametrize("name", toolgram.format_names())
def test_every_format_has_outputs_made_from_its_files(name: str) -> None:
    """What all properties are built on: without it, a new format would be in them with nothing to read."""
    found = walks(name)
    words = list(covering_words(found))
    assert words
    assert {symbol for word in words for symbol in word} == {s for ways in found.edges.values() for s, _ in ways}
    assert len(critical_alphabet(name)) > 10
    states = set()
    for context in contexts(name):
        parser = toolgram.get_format(name).parser(prefix="")
        parser.feed(context)
        states.add(parser.state)
    assert {state for state in states if "ARGUMENTS" in state}, "no context leads into a call"
    assert around_string(name)
    assert around_value(name)
