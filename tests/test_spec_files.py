"""Every place that can refuse a format file does, and says where and what to write instead.

Strategy: a row of `wrong_files.yaml`, or of `ROWS` where it is computed, changes a shipped format in one place and
names the error. The places in the source that make an error are found in the source itself, and each must have been
reached by a row: a new one without a row fails.
"""

import ast
import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import yaml

import toolgram
from tests.own_format import load_own, write_own_format
from tests.properties.selection import quarter
from tests.tables import table
from tests.work import at_most
from toolgram import errors
from toolgram.errors import FormatError
from toolgram.formats import grammar_home
from toolgram.spec import call_flow
from toolgram.spec.faults import faults
from toolgram.spec.files import spec_from_texts

SOURCES = table(__file__, "sources")
PACKAGE = Path(toolgram.__file__).parent / "spec"
Machine = dict[str, Any]
Texts = tuple[str, str]  # the grammar, the machine

MISTRAL, HERMES = "mistral_v11", "hermes"
INNER = "%import .common.json_in_tags (start)\n%override name_field: STRING\n"


def written(machine: Machine) -> str:
    """A machine file with one line per entry."""
    lines = ["format:", *(f"  {key}: {json.dumps(value)}" for key, value in machine["format"].items()), "machine:"]
    for key, value in machine["machine"].items():
        if key in ("states", "transitions") and isinstance(value, list) and value:
            lines += [f"  {key}:", *(f"    - {json.dumps(each)}" for each in value)]
        else:
            lines.append(f"  {key}: {json.dumps(value)}")
    others = [f"{key}: {json.dumps(value)}" for key, value in machine.items() if key not in ("format", "machine")]
    return "\n".join([*lines, *others]) + "\n"


@cache
def _base(name: str) -> Texts:
    spec = toolgram.get_format(name).spec
    machine = spec.machine_dict
    machine["machine"]["transitions"] = [
        {"trigger": each.trigger, "source": each.source, "dest": each.dest, "after": [*each.actions]}
        for each in spec.transitions
    ]
    return spec.grammar_text, written(machine)


def changed(name: str, change: Callable[[Machine], object]) -> Texts:
    grammar, text = _base(name)
    machine: Machine = yaml.safe_load(text)
    change(machine)
    return grammar, written(machine)


def defined(name: str, *lines: str) -> Texts:
    """With more lines in the grammar, and the terminal NEW as a trigger."""
    grammar, machine = changed(name, lambda machine: _more(machine, ["NEW", *["WAITING_FOR_TOOL_START"] * 2]))
    return "\n".join([grammar, *lines, ""]), machine


def adding(text: str) -> Texts:
    return _base(MISTRAL)[0], _base(MISTRAL)[1] + text


def rows(machine: Machine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = machine["machine"]["transitions"]
    return found


def at(machine: Machine, source: str, trigger: str) -> dict[str, Any]:
    return next(each for each in rows(machine) if each["source"] == source and each["trigger"] == trigger)


def state(machine: Machine, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in machine["machine"]["states"] if each["name"] == name)
    return found


def _more(machine: Machine, given: Any) -> None:
    trigger, source, dest, *after = given
    rows(machine).append({"trigger": trigger, "source": source, "dest": dest, "after": after})


def _drop(machine: Machine, given: Any) -> None:
    for trigger in given[1:]:
        rows(machine).remove(at(machine, given[0], trigger))


# The changes of `wrong_files.yaml`.
CHANGES: dict[str, Callable[[Machine, Any], object]] = {
    "about": lambda machine, given: machine["format"].update(given),
    "machine": lambda machine, given: machine["machine"].update(given),
    "imports": lambda machine, given: machine["machine"].update({"import": given}),
    "state": lambda machine, given: machine["machine"]["states"].append(given),
    "tags": lambda machine, given: state(machine, given[0]).update(tags=given[1:]),
    "transition": lambda machine, given: rows(machine).append(given),
    "row": lambda machine, given: rows(machine)[given[0]].update(given[1]),
    "drop": _drop,
    "more": _more,
    "lead": lambda machine, given: at(machine, *given[:2]).update(dest=given[2]),
    "acts": lambda machine, given: at(machine, *given[:2]).update(after=given[2:]),
}


def made(row: dict[str, Any]) -> Texts:
    """The two files of a row of `wrong_files.yaml`."""
    if "adds" in row:
        return adding(row["adds"])
    if "lines" in row:
        return defined(row["of"], *row["lines"])

    def change(machine: Machine) -> None:
        for each in row["change"]:
            for what, given in each.items():
                CHANGES[what](machine, given)

    return changed(row["of"], change)


def _many_positions(machine: Machine) -> None:
    places = "WAITING_FOR_TOOL_KEY", "WAITING_FOR_TOOL_KEY"
    for number in range(330):
        _more(machine, [f"map_key item.k{number}", *places])
        _more(machine, [f"start_map item.k{number}", *places])
    machine["format"]["same_path"] = {f"item.k{number}.name": "item.name" for number in range(330)}


def _new_in_hermes(shape: str) -> Texts:
    """Hermes with a new terminal, which is allowed in a call."""
    inside = {"of": HERMES, "change": [{"more": ["NEW", "WAITING_FOR_TOOL", "WAITING_FOR_TOOL"]}]}
    return defined(HERMES, f"NEW: {shape}")[0], made(inside)[1]


WRITTEN: dict[str, dict[str, Any]] = yaml.safe_load(
    Path(__file__).with_name("wrong_files.yaml").read_text(encoding="utf-8")
)

# Each row: what is given, and what the error says.
ROWS: dict[str, tuple[Callable[[], Texts], str]] = {
    **{name: (partial(made, row), row["says"]) for name, row in WRITTEN.items()},
    "no mapping": (lambda: (_base(MISTRAL)[0], "- a"), "not a YAML mapping"),
    "too long": (lambda: adding("#" * (1 << 18)), "longer than 262144 characters"),
    "entries": (lambda: adding(f"x: [{'a, ' * 20_000}]\n"), "more than 10000 entries"),
    "a missing key": (lambda: changed(MISTRAL, lambda m: rows(m)[3].pop("dest")), "the key `dest` is missing"),
    "no grammar": (lambda: ("start: (", _base(MISTRAL)[1]), "grammar"),
    "no start": (lambda: ("begin: TEXT\nTEXT: /a/", _base(MISTRAL)[1]), "no rule `start`"),
    "an inner override": (lambda: (INNER, defined(HERMES)[1]), "only a file that .common.json_in_tags imports has it"),
    "a long grammar": (lambda: defined(MISTRAL, "//" + "x" * (1 << 15)), "longer than 32768 characters"),
    "many lines": (lambda: defined(MISTRAL, *(f"X{n}: /a/" for n in range(501))), "more than 500 lines"),
    "a circle": (lambda: ("%import .hermes (start)\n", _base(HERMES)[1]), "imports itself"),
    "no end": (lambda: changed(MISTRAL, lambda m: state(m, "ALL_TOOLS_COMPLETE").pop("final")), "0 states are marked"),
    "one character twice": (lambda: _new_in_hermes("/[ a]{1,9}/"), "begin with the same character"),
    "a bracket as text": (lambda: _new_in_hermes('"{"'), "and `start_map item` both begin with"),
    "many positions": (lambda: changed(HERMES, _many_positions), "in more than 16384 ways"),
}
# What would take long, or much memory, if it were not refused at once.
COSTLY = ("too long", "entries", "depth", "too complex", "nested", "long text", "a long grammar", "many lines",
          "repetitions", "choices", "doublings", "a circle", "groups", "many positions")  # fmt: skip

# What a file cannot leave out, since it follows from the states: refused where a specification is made otherwise.
SPEC_ROWS = {
    "no text": (("REASONING", "TEXT"), "does not say where TEXT leads"),
    "no way out": (("PARSING_ARGUMENTS", "end"), "no way to ALL_TOOLS_COMPLETE"),
    "no way back": (("PARSING_ARGUMENTS", "malformed"), "when the text does not fit"),
}


def without(source: str, trigger: str) -> list[FormatError]:
    """The faults of a specification without one transition."""
    spec = toolgram.get_format(MISTRAL).spec
    kept = tuple(each for each in spec.transitions if (each.source, each.trigger) != (source, trigger))
    return list(faults(replace(spec, transitions=kept)))


@pytest.mark.parametrize("name", SPEC_ROWS)
def test_a_wrong_specification_has_its_fault(name: str) -> None:
    row, wanted = SPEC_ROWS[name]
    assert any(re.search(wanted, fault.problem) for fault in without(*row))


def refused(given: Callable[[], Texts], path: str = "own.lark") -> FormatError:
    grammar, machine = given()
    with pytest.raises(FormatError) as caught:
        spec_from_texts(grammar, path, machine, "own.yaml", (str(grammar_home()),))
    return caught.value


def _sites() -> set[tuple[str, int]]:
    """Where the source makes an error: the module, and the line of the call."""
    found = set()
    for module in SOURCES:
        for node in ast.walk(ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", None)
                is_error = isinstance(node.func, ast.Attribute) and node.func.attr == "error"
                if name in ("FormatError", "_Fault") or is_error:
                    found.add((module, node.lineno))
    return found


def test_every_place_that_makes_an_error_has_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reached: set[tuple[str, int]] = set()
    for made in (errors.FormatError, call_flow._Fault):
        monkeypatch.setattr(made, "__init__", _noting(made.__init__, reached))
    counted = quarter(COSTLY, "wrong files")
    for name, (given, wanted) in ROWS.items():
        with at_most(calls=5_000_000) if name in counted else nullcontext():
            error = refused(given, str(grammar_home() / "hermes.lark") if name == "a circle" else "own.lark")
        assert re.search(wanted, str(error))
        assert error.remedy
        assert 0 <= error.line <= given()[error.path == "own.yaml"].count("\n") + 2  # the end of the file
    for row, _ in SPEC_ROWS.values():
        without(*row)
    test_what_is_no_file_is_refused_at_once(tmp_path)
    test_what_a_file_of_another_file_declares_has_no_name(tmp_path)
    assert _sites() - reached == set()


@pytest.mark.parametrize("count", [4, 12, 40])
def test_ways_that_multiply_after_a_value_are_refused(count: int, tmp_path: Path) -> None:
    """After a marker that may end a value every way through the machine is followed: a file may ask for very many."""
    fmt = toolgram.get_format("qwen3_coder")
    grammar, machine = fmt.grammar_text, fmt.machine_text
    places = range(count)
    states = ", ".join(f"X{at}" for at in places)
    grammar += "".join(f'M{at}: "<m{at}>"\n' for at in places) + f"rest: {' | '.join(f'M{at}' for at in places)}\n"
    rows = "".join(f"    - {{trigger: M{at}, source: [TOOL_COMPLETE, {states}], dest: X{at}}}\n" for at in places)
    added = f"  states: [{{names: [{states}], tags: [content]}}]\n  transitions:\n{rows}"
    machine = machine.replace("  transitions:\n", added)
    with at_most(calls=5_000_000), pytest.raises(FormatError, match="more than 2000 ways"):
        load_own(tmp_path, grammar, machine)


def _noting(make: Callable[..., None], reached: set[tuple[str, int]]) -> Callable[..., None]:
    def noting(self: Exception, *args: Any) -> None:
        for depth in (1, 2):  # the place itself, or `machine.error` and the place that called it
            frame = sys._getframe(depth)
            reached.add((Path(frame.f_code.co_filename).stem, frame.f_lineno))
        make(self, *args)

    return noting


def test_a_remedy_is_yaml_as_it_stands() -> None:
    remedy = without("REASONING", "TEXT")[0].remedy
    assert yaml.safe_load(remedy.split("`")[1]) == [{"trigger": "TEXT", "source": "REASONING", "dest": "="}]


def test_a_misspelt_name_is_told_the_right_one() -> None:
    for change, remedy in (
        ({"about": {"special_token": []}}, "write `special_tokens`"),
        ({"lead": ["REASONING", "END_THINK", "REASONNG"]}, "write `REASONING`"),
    ):
        assert refused(partial(made, {"of": MISTRAL, "change": [change]})).remedy == remedy


# --- files that cannot be read, or that import what cannot be read --------------------------------------------------

FORMAT = toolgram.get_format("mistral_v11")
TEXTS = FORMAT.grammar_text, FORMAT.machine_text


def _unreadable(folder: Path) -> list[Path]:
    """Paths that are no files to read: none, a device that never ends, a pipe, a long file, bytes."""
    pipe, long, octets = folder / "pipe", folder / "long", folder / "octets"
    os.mkfifo(pipe)
    long.write_bytes(b"#" * (1 << 21))
    octets.write_bytes(b"\xff\xfe")
    return [folder / "none", Path("/dev/zero"), folder, pipe, long, octets]


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    grammar, machine = TEXTS
    good = write_own_format(tmp_path, grammar, machine)
    toolgram.load_format(*good)
    for path in _unreadable(tmp_path):
        for files in ((path, good[1]), (good[0], path)):
            with pytest.raises(FormatError, match=r"cannot be read|is longer than"):
                toolgram.load_format(*files)


def test_an_endless_file_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "zero.lark").symlink_to("/dev/zero")
    with pytest.raises(FormatError, match="not a regular file"):
        load_own(tmp_path, "%import .zero (x)\nstart: x\n", TEXTS[1])


def test_many_imports_are_refused(tmp_path: Path) -> None:
    for number in range(40):
        text = f"%import .f{number + 1} (X)\nY: X X\n" if number < 39 else "X: /a/\n"
        (tmp_path / f"f{number}.lark").write_text(text, encoding="utf-8")
    (tmp_path / "own.yaml").write_text(TEXTS[1], encoding="utf-8")
    with pytest.raises(FormatError, match="more than 32 files"):
        toolgram.load_format(tmp_path / "f0.lark", tmp_path / "own.yaml")


def test_what_a_file_of_another_file_declares_has_no_name(tmp_path: Path) -> None:
    """Lark gives it a name with two prefixes, which no grammar can write."""
    grammar, machine = TEXTS
    (tmp_path / "inner.lark").write_text("text: TEXT\n%declare TEXT\n", encoding="utf-8")
    (tmp_path / "outer.lark").write_text("%import .inner (text)\nbody: text\n", encoding="utf-8")
    with pytest.raises(FormatError, match="TEXT is declared in a file that another imported file imports"):
        load_own(tmp_path, f"%import .outer (body)\n{grammar}", machine)
