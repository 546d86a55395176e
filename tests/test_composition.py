"""Machines made of fragments: what is put in, what follows from states, and which entry goes before which."""

from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.tables import table
from toolgram.errors import FormatError
from toolgram.spec.composition import compose, fragment_loader, fragment_names
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
    assert states(again) == states(MachineFile(name, data, {}))
    assert again.data["format"] == data["format"]


def test_machine_files_are_at_most_a_third_of_what_they_stand_for(root: Path) -> None:
    """All files and all fragments in characters, compared with all composed machines."""
    machines = root / "machines"
    written = sum(len(path.read_text(encoding="utf-8")) for path in machines.rglob("*.yaml"))
    whole = sum(len(machine_text(toolgram.get_format(name).machine_dict, "")) for name in toolgram.format_names())
    assert written <= whole / 3, f"{written} characters, composed {whole}"


def test_json_in_tags_is_a_page(root: Path) -> None:
    assert len(_lines(root / "machines/hermes.yaml")) <= 45  # eleven of them are an output
    assert len(_lines(root / "grammars/hermes.lark")) <= 28


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


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
    declared = data.get("machine", data).get("transitions", ())
    marks = [entry.get("repair", False) for entry in declared]
    assert marks == sorted(marks)
    assert text.count(REPAIRS) == any(marks)
    assert text.partition(REPAIRS)[0].count("repair: true") == 0
