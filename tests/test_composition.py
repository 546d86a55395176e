"""Machines made of fragments: what is put in, what follows from states, and which entry goes before which."""

import re
from pathlib import Path
from typing import Any

import pytest
from lark import Lark

import toolgram
from tests.own_format import write_own_format
from tests.properties.selection import every_format
from tests.tables import table
from toolgram.errors import FormatError
from toolgram.program.free_text import free_text
from toolgram.spec.composition import compose, fragment_loader, fragment_names
from toolgram.spec.computed_imports import with_computed_imports
from toolgram.spec.declarations import FREE_TEXT, short_name
from toolgram.spec.grammar_file import load_lark, terminal_line, with_imports
from toolgram.spec.machine_checks import check_machine
from toolgram.spec.machine_file import MachineFile, load_machine
from toolgram.spec.machine_text import machine_text

HOME = Path(__file__).resolve().parents[1] / "machines"


def composed(text: str, folder: Path = HOME) -> MachineFile:
    machine = load_machine(text, str(folder / "own.yaml"))
    check_machine(machine)
    return compose(machine, fragment_loader([folder, HOME]))


def rows(machine: MachineFile) -> dict[tuple[str, str], tuple[str, Any]]:
    found: dict[tuple[str, str], tuple[str, Any]] = {}
    for row in machine.data["machine"]["transitions"]:
        for source in [row["source"]] if isinstance(row["source"], str) else row["source"]:
            dest = source if row["dest"] == "=" else row["dest"]
            assert found.setdefault((source, row["trigger"]), (dest, row.get("after"))) == (dest, row.get("after"))
    return found


def states(machine: MachineFile) -> dict[str, list[str]]:
    return {state["name"]: state.get("tags", []) for state in machine.data["machine"]["states"]}


@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_composed_machine_composed_again_is_the_same(name: str) -> None:
    data = toolgram.get_format(name).machine_dict
    again = composed(machine_text(data))
    assert rows(again) == rows(MachineFile(name, data, {}))
    assert (states(again), again.data["format"]) == (states(MachineFile(name, data, {})), data["format"])


def test_machine_files_are_at_most_a_third_of_what_they_stand_for(root: Path) -> None:
    """All files and all fragments in characters, compared with all composed machines."""
    written = sum(len(path.read_text(encoding="utf-8")) for path in (root / "machines").rglob("*.yaml"))
    whole = sum(len(machine_text(toolgram.get_format(name).machine_dict, "")) for name in toolgram.format_names())
    assert written <= whole / 3, f"{written} characters, composed {whole}"


def test_json_in_tags_is_a_page(root: Path) -> None:
    for name, most in (("machines/hermes.yaml", 45), ("grammars/hermes.lark", 28)):  # eleven lines are an output
        assert len((root / name).read_text(encoding="utf-8").splitlines()) <= most


@pytest.mark.parametrize("name", table(__file__, "composed"))
def test_a_machine_is_composed(name: str, tmp_path: Path) -> None:
    """A row of `composed` has a machine, perhaps fragments of its folder, and what is then in the composed machine."""
    row = table(__file__, "composed")[name]
    (tmp_path / "common").mkdir()
    for fragment, text in row.get("fragments", {}).items():
        (tmp_path / "common" / f"{fragment}.yaml").write_text(text)
    machine = composed(row["machine"], tmp_path)
    found = rows(machine)
    wanted = {(source, trigger): (dest, *after) for source, trigger, dest, *after in row.get("rows", ())}
    assert {key: found.get(key, ())[: len(each)] for key, each in wanted.items()} == wanted
    assert len(found) == len(wanted) or not row.get("all_rows")
    assert [key for key in found for gone in row.get("no_trigger", ()) if key[1].endswith(gone)] == []
    assert states(machine) == row.get("states", states(machine))
    if "others" in row:
        assert {each for each in states(machine) if not each.startswith("LISTED_")} == {*row["others"]}
    if "same_path" in row:
        assert machine.data["format"].get("same_path") == row["same_path"]
    assert machine.fragments.items() >= row.get("from", {}).items()
    assert {*fragment_names([tmp_path, HOME])} >= {*row.get("fragments", ())}


def test_a_spelling_of_the_file_keeps_its_place() -> None:
    own = "format: {same_path: {item.parameters: item.id}}\nmachine:\n  import: [{fragment: json_call_list}]\n"
    assert composed(own).place("format", "same_path", "item.parameters") == (str(HOME / "own.yaml"), 1)


def test_an_entry_keeps_its_file_and_line() -> None:
    machine = composed("format: {}\nmachine:\n  import: [{fragment: reasoning, OPEN: THINK, CLOSE: NO_MORE}]\n")
    declared = machine.data["machine"]
    at = next(index for index, row in enumerate(declared["transitions"]) if row["trigger"] == "NO_MORE")
    path, line = machine.place("machine", "transitions", at)
    assert Path(path) == HOME / "common" / "reasoning.yaml"
    assert "trigger: CLOSE" in Path(path).read_text(encoding="utf-8").splitlines()[line - 1]


@pytest.mark.parametrize(("entry", "problem", "remedy"), table(__file__, "a_bad_import_is_one_error_with_its_line"))
def test_a_bad_import_is_one_error_with_its_line(entry: str, problem: str, remedy: str) -> None:
    with pytest.raises(FormatError) as caught:
        composed(f"format: {{}}\nmachine:\n  import:\n    - {entry}\n")
    assert problem in caught.value.problem
    assert remedy in caught.value.remedy
    assert caught.value.line == 4


@pytest.mark.parametrize("prefix", ["", ", prefix: A_"])
def test_fragments_that_import_one_another_are_an_error(prefix: str, tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    for name, other in (("one", "two"), ("two", "one")):
        entry = f"{{fragment: {other}{prefix}}}"
        text = f"fragment: {{about: No end.}}\nimport: [{entry}, {entry}]\nstates: [S]\n"
        (tmp_path / "common" / f"{name}.yaml").write_text(text)
    with pytest.raises(FormatError, match="more than 64 fragments"):
        composed(f"format: {{}}\nmachine: {{import: [{{fragment: one{prefix}}}]}}\n", tmp_path)


REPAIRS = "# --- repairs: what models get wrong ---"


@pytest.mark.parametrize("path", sorted(HOME.rglob("*.yaml")), ids=lambda path: path.stem)
def test_repairs_come_after_the_strict_transitions(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    data = load_machine(text, str(path)).data
    marks = [entry.get("repair", False) for entry in data.get("machine", data).get("transitions", ())]
    assert (marks, text.count(REPAIRS)) == (sorted(marks), any(marks))
    assert text.partition(REPAIRS)[0].count("repair: true") == 0


# --- grammars: what one overrides need not be imported by name ------------------------------------------------------

REPOSITORY = HOME.parent
FILES = {
    "one.lark": 'start: (A | _b)*\n_b: B | _c\n_c: C\nA: "a"\nB: "b"\nC: "c"\n',
    "two.lark": '%import .one (A)\nother: A | D\nD: "d"\n%declare VALUE\n',
}
LISTED = re.compile(r"^%import (\S+) \((.*)\)$", re.MULTILINE)


def load_file(base: str | None, name: str) -> tuple[str, str]:
    if name not in FILES:
        raise FileNotFoundError(name)
    return name, FILES[name]


def completed(text: str) -> str:
    return with_computed_imports(text, "own.lark", load_file)


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
def test_computed_imports_mean_what_written_ones_do(name: str) -> None:
    spec = toolgram.get_format(name).spec
    written = with_imports(spec.grammar_text, spec.grammar_path, spec.import_paths)
    ours, theirs = (load_lark(each, spec.grammar_path, spec.import_paths) for each in (spec.grammar_text, written))
    assert set(map(str, ours.rules)) == set(map(str, theirs.rules))
    assert set(map(str, ours.terminals)) == set(map(str, theirs.terminals))


@pytest.mark.parametrize("path", [*(REPOSITORY / "grammars").glob("**/*.lark")], ids=lambda path: path.stem)
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
def test_lark_itself_loads_the_whole_grammar_which_has_a_definition_for_each_declaration(name: str) -> None:
    fmt = toolgram.get_format(name)
    spec, grammars = fmt.spec, [str(REPOSITORY / "grammars")]
    Lark(fmt.whole_grammar_text, parser="earley", source_path=spec.grammar_path, import_paths=grammars)
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
    assert re.fullmatch(free_text(toolgram.get_format("gemma4").spec)["NOTATED_STRING"], '<|"|>a "b"<|"|>')


def test_what_no_state_reads_never_matches() -> None:
    assert not re.search(free_text(toolgram.get_format("mistral_v11").spec)["VALUE"], "any text")


@pytest.mark.parametrize(("lines", "definition"), table(__file__, "a_declaration_may_come_from_an_imported_file"))
def test_a_declaration_may_come_from_an_imported_file(lines: str, definition: str, tmp_path: Path) -> None:
    (tmp_path / "piece.lark").write_text("%declare TEXT\ntext: TEXT\n")
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
