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
        "  transitions: [{trigger: A, source: content, dest: WAITING_FOR_TOOL}]\n"
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
        (
            "{fragment: json_call, prefix: MY_, WAITING: A}",
            "the fragment json_call has no WAITING",
            "write `WAITING_FOR",
        ),
        ("{fragment: json_call, prefix: 'A-'}", "`prefix` is 'A-'", "write `prefix: LISTED_`"),
        ("{fragment: json_call, prefix: 1}", "this is not an import", "fragment: reasoning"),
        ("{OPEN: THINK}", "this is not an import", "fragment: reasoning"),
    ],
)
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


PREFIXED = (
    "format: {}\n"
    "machine:\n"
    "  import: [{fragment: json_call_list, prefix: LISTED_, WAITING_FOR_TOOL: LIST, item.name: item.tool}]\n"
    "  transitions: [{trigger: A, source: content, dest: LIST}]\n"
)


def test_a_prefix_renames_the_states_of_a_fragment_and_of_those_inside_it() -> None:
    machine = composed(PREFIXED)
    found = rows(machine)
    assert found["LIST", "start_array"] == ("LISTED_WAITING_FOR_TOOL_ITEM", None)  # json_items
    assert found["LISTED_PARSING_NAME", "string item.tool"] == ("LISTED_PARSING_NAME_COMPLETED", "name")  # json_call
    assert found["LISTED_WAITING_FOR_TOOL_KEY", "map_key item.tool_calls"][0] == "LISTED_WAITING_FOR_WRAPPED_LIST"
    assert found["RECOVERING", "recovered"] == ("LISTED_TOOL_COMPLETE", None)
    others = {"LIST", "WAITING_FOR_TOOL_START", "RECOVERING", "ALL_TOOLS_COMPLETE"}
    assert {name for name in states(machine) if not name.startswith("LISTED_")} == others


def test_a_prefix_leaves_exits_and_markers() -> None:
    machine = composed(
        "format: {}\nmachine:\n  import: [{fragment: reasoning, prefix: FIRST_, OPEN: THINK, CLOSE: END_THINK}]\n"
    )
    assert rows(machine)["WAITING_FOR_TOOL_START", "THINK"] == ("FIRST_REASONING", None)
    assert rows(machine)["FIRST_REASONING", "END_THINK"] == ("WAITING_FOR_TOOL_START", None)


def test_fragments_may_prefix_what_they_import(tmp_path: Path) -> None:
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "mine.yaml").write_text(
        "fragment: {about: Mine., exits: [TOOL_COMPLETE]}\n"
        "import: [{fragment: json_call, prefix: ITEM_}]\n"
        "transitions: [{trigger: start_map item, source: content, dest: ITEM_WAITING_FOR_TOOL_KEY}]\n"
    )
    text = "format: {{}}\nmachine: {{import: [{{fragment: mine, prefix: MY_{}}}]}}\n"
    found = rows(composed(text.format(""), tmp_path))
    assert found["WAITING_FOR_TOOL_START", "start_map item"] == ("MY_ITEM_WAITING_FOR_TOOL_KEY", None)
    assert found["MY_ITEM_PARSING_ARGUMENTS_COMPLETED", "end_map item"] == ("TOOL_COMPLETE", "end_call")
    found = rows(composed(text.format(", ITEM_PARSING_NAME: NAMING"), tmp_path))
    assert found["MY_ITEM_WAITING_FOR_TOOL_KEY", "map_key item.name"] == ("NAMING", None)


def test_other_spellings_of_fragments_are_the_format_s_too() -> None:
    own = "format: {same_path: {item.args: item.arguments}}\nmachine:\n  import: [{fragment: json_call_list}]\n"
    assert composed(own).data["format"]["same_path"] == {
        "item.args": "item.arguments",
        "item.parameters": "item.arguments",
    }


def test_the_file_s_own_spelling_goes_first() -> None:
    machine = composed(
        "format: {same_path: {item.parameters: item.id}}\nmachine:\n  import: [{fragment: json_call_list}]\n"
    )
    assert machine.data["format"]["same_path"] == {"item.parameters": "item.id"}
    assert machine.place("format", "same_path", "item.parameters") == (str(HOME / "own.yaml"), 1)


def test_a_path_that_is_read_is_no_other_spelling() -> None:
    machine = composed(
        "format: {}\nmachine:\n  import: [{fragment: json_call_list, item.arguments: item.parameters}]\n"
    )
    assert "same_path" not in machine.data["format"]


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
