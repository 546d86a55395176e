"""What a grammar overrides need not be imported by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lark import Lark

import toolgram
from tests.properties.selection import every_format
from tests.tables import table
from toolgram.spec.computed_imports import with_computed_imports
from toolgram.spec.grammar_file import load_lark, with_imports

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "one.lark": 'start: (A | _b)*\n_b: B | _c\n_c: C\nA: "a"\nB: "b"\nC: "c"\n',
    "two.lark": '%import .one (A)\nother: A | D\nD: "d"\n%declare VALUE\n',
}
LISTED = re.compile(r"^%import (\S+) \((.*)\)$", re.MULTILINE)


def load(base: str | None, name: str) -> tuple[str, str]:
    if name not in FILES:
        raise FileNotFoundError(name)
    return name, FILES[name]


def completed(text: str) -> str:
    return with_computed_imports(text, "own.lark", load)


@pytest.mark.parametrize(
    ("text", "imports"),
    table(__file__, "what_is_overridden_is_imported_from_the_first_file_that_has_it"),
)
def test_what_is_overridden_is_imported_from_the_first_file_that_has_it(text: str, imports: str) -> None:
    found = completed(text)
    assert imports in found.splitlines()
    assert found.count("\n") == text.count("\n")
    assert completed(found) == found


@pytest.mark.parametrize("text", ['start: A\nA: "a"\n', "", '%import .one (start)\nx: D\nD: "d"\n'])
def test_a_text_that_overrides_nothing_is_kept(text: str) -> None:
    assert completed(text) == text


def test_a_name_that_no_file_has_is_refused_with_its_line_and_the_nearest_names() -> None:
    with pytest.raises(toolgram.FormatError) as caught:
        completed('%import .two (other)\n\n%override OTHER: "x"\n%override others: D\n')
    assert (caught.value.path, caught.value.line) == ("own.lark", 3)
    with pytest.raises(toolgram.FormatError, match="override other, or define others"):
        completed("%import .two (other)\n%override others: D\n")


@every_format
def test_the_whole_grammar_is_a_file_that_lark_itself_loads(name: str) -> None:
    spec = toolgram.get_format(name).spec
    whole = toolgram.get_format(name).whole_grammar_text
    Lark(whole, parser="earley", source_path=spec.grammar_path, import_paths=[str(ROOT / "grammars")])


@every_format
def test_computed_imports_mean_what_written_ones_do(name: str) -> None:
    spec = toolgram.get_format(name).spec
    written = with_imports(spec.grammar_text, spec.grammar_path, spec.import_paths)
    ours, theirs = (load_lark(each, spec.grammar_path, spec.import_paths) for each in (spec.grammar_text, written))
    assert set(map(str, ours.rules)) == set(map(str, theirs.rules))
    assert set(map(str, ours.terminals)) == set(map(str, theirs.terminals))


@pytest.mark.parametrize("path", [*(ROOT / "grammars").glob("**/*.lark")], ids=lambda path: path.stem)
def test_no_file_imports_more_than_eight_names_from_another(path: Path) -> None:
    counts: dict[str, int] = {}
    for module, names in LISTED.findall(path.read_text(encoding="utf-8")):
        counts[module] = counts.get(module, 0) + len(names.split(","))
    assert all(count <= 8 for count in counts.values()), counts
