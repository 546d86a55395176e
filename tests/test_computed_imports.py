"""What a grammar overrides need not be imported by name."""

import re
from pathlib import Path

import pytest
from lark import Lark

import toolgram
from tests.own_format import write_own_format
from tests.properties.selection import every_format
from tests.tables import table
from toolgram.program.free_text import free_text
from toolgram.spec.computed_imports import with_computed_imports
from toolgram.spec.declarations import FREE_TEXT, short_name
from toolgram.spec.grammar_file import load_lark, terminal_line, with_imports

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
    ("text", "imports"), table(__file__, "what_is_overridden_is_imported_from_the_first_file_that_has_it")
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


# --- free text and values that a grammar declares -------------------------------------------------------------------

# Grammars that define such a terminal in another way, and why. `toolgram check` compares it with the parser.
WRITTEN = table(__file__, "written")


@pytest.mark.parametrize("name", toolgram.format_names())
def test_free_text_is_declared_unless_there_is_a_reason(name: str) -> None:
    text = toolgram.get_format(name).grammar_text
    assert any(terminal_line(text, each) for each in FREE_TEXT) == (name in WRITTEN)


@every_format
def test_the_whole_grammar_has_a_definition_for_each_declaration(name: str) -> None:
    fmt = toolgram.get_format(name)
    spec = fmt.spec
    whole = load_lark(fmt.whole_grammar_text, spec.grammar_path, spec.import_paths)
    assert whole.declared == ()
    found = {short_name(each.name): each.pattern.to_regexp() for each in whole.terminals}
    for declared in map(short_name, spec.declared):
        assert re.compile(found[declared]).groups == 0
    assert "TEXT" in found
    assert whole.rules


def test_the_definitions_exclude_the_markers_of_their_states() -> None:
    found = {name: re.compile(each) for name, each in free_text(toolgram.get_format("hermes").spec).items()}
    assert found["TEXT"].match("a <b> \n<tool_call>")[0] == "a <b> \n"  # type: ignore[index]
    assert found["THOUGHT"].match("a <function=f> </think>")[0] == "a <function=f> "  # type: ignore[index]
    gemma = free_text(toolgram.get_format("gemma4").spec)["NOTATED_STRING"]
    assert re.fullmatch(gemma, '<|"|>a "b"<|"|>')


def test_what_no_state_reads_never_matches() -> None:
    spec = toolgram.get_format("mistral_v11").spec
    assert not re.search(free_text(spec)["VALUE"], "any text")


PIECE = "%declare TEXT\ntext: TEXT\n"


@pytest.mark.parametrize(("lines", "definition"), table(__file__, "a_declaration_may_come_from_an_imported_file"))
def test_a_declaration_may_come_from_an_imported_file(lines: str, definition: str, tmp_path: Path) -> None:
    (tmp_path / "piece.lark").write_text(PIECE)
    own, machine = write_own_format(tmp_path)
    grammar = (
        own.read_text()
        .replace("start: (TEXT | call)*", lines)
        .replace('OPEN: "<\\"a\\";b|c>&{d}%%:#1;`--\\\\n[e]"', 'OPEN: "<<"')
    )
    own.write_text("".join(line for line in grammar.splitlines(keepends=True) if not line.startswith("TEXT:")))
    fmt = toolgram.load_format(own, machine)
    whole = fmt.whole_grammar_text
    assert definition in whole
    assert "%declare" not in whole
    Lark(whole, import_paths=[*fmt.spec.import_paths, str(tmp_path)], parser="earley").parse("a<b<<f:{}")


def test_a_wrong_declaration_is_refused_with_its_line_and_the_names(tmp_path: Path) -> None:
    own, machine = write_own_format(tmp_path)
    own.write_text(own.read_text() + "%declare TEXTS\n")
    with pytest.raises(toolgram.FormatError) as caught:
        toolgram.load_format(own, machine)
    assert caught.value.line == len(own.read_text().splitlines())
    assert "TEXT, THOUGHT, VALUE, NOTATED_STRING" in caught.value.remedy
