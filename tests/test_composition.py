"""Machines made of fragments: what is put in, what follows from states, and which entry goes before which."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolgram
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


def test_what_follows_from_the_states() -> None:
    machine = composed(
        "format: {stop: [EOS]}\n"
        "machine:\n"
        "  recovered: DONE\n"
        "  states:\n"
        "    - {name: DONE, tags: [content], text: WAITING_FOR_TOOL_START, stop: false}\n"
        "    - {names: [HELD, ALSO_HELD], tags: [held]}\n"
        "    - {name: FIRM}\n"
        "  transitions: [{trigger: A, source: content, dest: HELD}]\n"
    )
    home = "WAITING_FOR_TOOL_START"
    assert states(machine) == {
        "DONE": ["content"],
        "HELD": ["held"],
        "ALSO_HELD": ["held"],
        "FIRM": [],
        home: ["content"],
        "RECOVERING": ["malformed"],
        "ALL_TOOLS_COMPLETE": [],
    }
    end = ("ALL_TOOLS_COMPLETE", None)
    assert rows(machine) == {
        ("DONE", "A"): ("HELD", None),
        (home, "A"): ("HELD", None),
        ("DONE", "TEXT"): (home, None),
        (home, "TEXT"): (home, None),
        (home, "EOS"): (home, None),
        ("RECOVERING", "EOS"): (home, None),
        ("FIRM", "malformed"): ("RECOVERING", "fail_call"),
        ("RECOVERING", "recovered"): ("DONE", None),
        **{(state, "end"): end for state in ("DONE", home, "FIRM", "RECOVERING")},
    }


def test_the_file_goes_before_the_fragment_and_that_before_what_follows() -> None:
    machine = composed(
        "format: {}\n"
        "machine:\n"
        "  import: [{fragment: reasoning, OPEN: THINK, CLOSE: NO_MORE}]\n"
        "  transitions:\n"
        "    - {trigger: NO_MORE, source: REASONING, dest: REASONING}\n"
        "    - {trigger: end, source: REASONING, dest: WAITING_FOR_TOOL_START}\n"
    )
    assert rows(machine)["REASONING", "NO_MORE"] == ("REASONING", None)
    assert rows(machine)["REASONING", "end"] == ("WAITING_FOR_TOOL_START", None)
    assert rows(machine)["WAITING_FOR_TOOL_START", "THINK"] == ("REASONING", None)


def test_an_import_may_rename_paths_of_json() -> None:
    machine = composed(
        "format: {}\nmachine:\n  import:\n"
        "    - {fragment: json_call_list, item.name: item.tool, item.type: item.kind}\n"
        "    - {fragment: json_function, item.function: item.call}\n"
        "  transitions: [{trigger: A, source: content, dest: WAITING_FOR_TOOL_LIST}]\n"
    )
    found = rows(machine)
    assert found["PARSING_NAME", "string item.tool"] == ("PARSING_NAME_COMPLETED", "name")
    assert found["WAITING_FOR_NAME", "string item.kind function"] == ("WAITING_FOR_NAME", None)
    assert found["WAITING_FOR_TOOL_KEY", "map_key item.call"] == ("PARSING_FUNCTION", None)
    assert not any(trigger.endswith(("item.name", "item.type", "item.function")) for _, trigger in found)


def test_an_entry_keeps_its_file_and_line() -> None:
    machine = composed("format: {}\nmachine:\n  import: [{fragment: reasoning, OPEN: THINK, CLOSE: NO_MORE}]\n")
    declared = machine.data["machine"]
    at = next(index for index, row in enumerate(declared["transitions"]) if row["trigger"] == "NO_MORE")
    path, line = machine.place("machine", "transitions", at)
    assert Path(path) == HOME / "common" / "reasoning.yaml"
    assert "trigger: CLOSE" in Path(path).read_text(encoding="utf-8").splitlines()[line - 1]


def test_a_folder_may_have_fragments_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "mine.yaml").write_text(
        "fragment: {about: Mine., exits: [OUT]}\nimport: [{fragment: reasoning, WAITING_FOR_TOOL_START: OUT}]\n"
    )
    machine = composed("format: {}\nmachine: {import: [{fragment: mine, OPEN: A, CLOSE: B}]}\n", tmp_path)
    assert rows(machine)["REASONING", "B"] == ("OUT", None)
    assert rows(machine)["OUT", "TEXT"] == ("WAITING_FOR_TOOL_START", None)
    assert machine.fragments["REASONING"] == "reasoning"
    assert "mine" in fragment_names([tmp_path, HOME])


@pytest.mark.parametrize(
    ("entry", "problem", "remedy"),
    [
        ("{fragment: resoning}", "there is no fragment resoning", "reasoning"),
        ("{fragment: ../reasoning}", "there is no fragment ../reasoning", "reasoning"),
        ("{fragment: reasoning, OPN: THINK}", "the fragment reasoning has no OPN", "write `OPEN`"),
        ("{OPEN: THINK}", "this is not an import", "fragment: reasoning"),
    ],
)
def test_a_bad_import_is_one_error_with_its_line(entry: str, problem: str, remedy: str) -> None:
    with pytest.raises(FormatError) as caught:
        composed(f"format: {{}}\nmachine:\n  import:\n    - {entry}\n")
    assert problem in caught.value.problem
    assert remedy in caught.value.remedy
    assert caught.value.line == 4


def test_fragments_that_import_one_another_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    for name, other in (("one", "two"), ("two", "one")):
        text = f"fragment: {{about: No end.}}\nimport: [{{fragment: {other}}}, {{fragment: {other}}}]\n"
        (tmp_path / "common" / f"{name}.yaml").write_text(text)
    with pytest.raises(FormatError, match="more than 64 fragments"):
        composed("format: {}\nmachine: {import: [{fragment: one}]}\n", tmp_path)
