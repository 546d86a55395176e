"""Every place that can refuse a format file does, and says where and what to write instead.

Strategy: a row changes a shipped format in one place and names the error.  The places in the source that make an error
are found in the source itself, and each must have been reached by a row: a new one without a row fails.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import toolgram
from tests import test_unreadable_files
from tests.properties.selection import quarter
from tests.work import at_most
from toolgram import errors
from toolgram.errors import FormatError
from toolgram.formats import grammar_home
from toolgram.spec import call_flow
from toolgram.spec.faults import faults
from toolgram.spec.files import spec_from_texts

SOURCES = (
    "machine_file",
    "machine_checks",
    "grammar_file",
    "grammar_size",
    "computed_imports",
    "declarations",
    "building",
    "faults",
    "call_flow",
)
PACKAGE = Path(toolgram.__file__).parent / "spec"
Machine = dict[str, Any]
Texts = tuple[str, str]  # the grammar, the machine

MISTRAL, HERMES, QWEN, LLAMA = "mistral_v11", "hermes", "qwen3_coder", "llama4_pythonic"
INNER = "%import .common.json_in_tags (start)\n%override name_field: STRING\n"


def written(machine: Machine) -> str:
    """A machine file with one line per entry."""
    lines = ["format:", *(f"  {key}: {json.dumps(value)}" for key, value in machine["format"].items()), "machine:"]
    for key, value in machine["machine"].items():
        rows = key in ("states", "transitions") and isinstance(value, list) and value
        lines += (
            [f"  {key}:", *(f"    - {json.dumps(each)}" for each in value)]
            if rows
            else [f"  {key}: {json.dumps(value)}"]
        )
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
    grammar, text = _base(name)
    machine: Machine = yaml.safe_load(text)
    rows(machine).append(row("NEW", "WAITING_FOR_TOOL_START", "WAITING_FOR_TOOL_START"))
    return "\n".join([grammar, *lines, ""]), written(machine)


def rows(machine: Machine) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = machine["machine"]["transitions"]
    return found


def row(trigger: str, source: str, dest: str, *after: str) -> dict[str, Any]:
    return {"trigger": trigger, "source": source, "dest": dest, "after": [*after]}


def at(machine: Machine, source: str, trigger: str) -> dict[str, Any]:
    return next(each for each in rows(machine) if each["source"] == source and each["trigger"] == trigger)


def state(machine: Machine, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(each for each in machine["machine"]["states"] if each["name"] == name)
    return found


def tags(name: str, *new: str) -> Callable[[Machine], object]:
    return lambda machine: state(machine, name).update(tags=[*new])


def drop(source: str, *triggers: str) -> Callable[[Machine], object]:
    def change(machine: Machine) -> None:
        for trigger in triggers:
            rows(machine).remove(at(machine, source, trigger))

    return change


def more(*args: str) -> Callable[[Machine], object]:
    return lambda machine: rows(machine).append(row(*args))


def lead(source: str, trigger: str, dest: str) -> Callable[[Machine], object]:
    return lambda machine: at(machine, source, trigger).update(dest=dest)


def acts(source: str, trigger: str, *after: str) -> Callable[[Machine], object]:
    return lambda machine: at(machine, source, trigger).update(after=[*after])


def about(**keys: Any) -> Callable[[Machine], object]:
    return lambda machine: machine["format"].update(keys)


def imports(entry: object) -> Callable[[Machine], object]:
    return lambda machine: machine["machine"].update({"import": [entry]})


def both(*changes: Callable[[Machine], object]) -> Callable[[Machine], object]:
    return lambda machine: [change(machine) for change in changes]


def adding(text: str) -> Texts:
    return _base(MISTRAL)[0], _base(MISTRAL)[1] + text


# Each row: what is given, and what the error says.
ROWS: dict[str, tuple[Callable[[], Texts], str]] = {
    # the YAML
    "no YAML": (lambda: adding("x: ["), "not valid YAML"),
    "no mapping": (lambda: (_base(MISTRAL)[0], "- a"), "not a YAML mapping"),
    "too long": (lambda: adding("#" * (1 << 18)), "longer than 262144 characters"),
    "an alias": (lambda: adding("x: &a []\ny: *a\n"), r"an alias \(`\*a`\)"),
    "a tag": (lambda: adding("x: !!python/name:os.system ''\n"), "a YAML tag"),
    "entries": (lambda: adding(f"x: [{'a, ' * 20_000}]\n"), "more than 10000 entries"),
    "depth": (lambda: adding(f"x: {'[' * 20}{']' * 20}\n"), "nested more than 16 deep"),
    "a key twice": (lambda: adding("machine: {}\n"), "`machine` is there twice"),
    # keys and values
    "auto": (lambda: changed(MISTRAL, lambda m: m["machine"].update(auto_transitions=True)), "auto transitions"),
    "misspelt": (lambda: changed(MISTRAL, about(special_token=[])), "unknown key `special_token`"),
    "misspelt in a row": (lambda: changed(MISTRAL, lambda m: rows(m)[3].update(afer="name")), "unknown key `afer`"),
    "a wrong type": (lambda: changed(MISTRAL, about(models="Mistral")), "`models` is not a list of texts"),
    "a list in a row": (lambda: changed(MISTRAL, lambda m: rows(m)[3].update(dest=["A"])), "`dest` is not a text"),
    "no choice": (lambda: changed(MISTRAL, about(parser="lark")), "unknown parser `lark`"),
    "a missing key": (lambda: changed(MISTRAL, lambda m: rows(m)[3].pop("dest")), "the key `dest` is missing"),
    "one quote": (lambda: changed(MISTRAL, about(notation=["<q>"])), "not two quotes"),
    "an end that is text": (lambda: changed(MISTRAL, about(turn_end="end")), "`turn_end` is not blank"),
    "no state": (lambda: changed(MISTRAL, lambda m: m["machine"]["states"].append(1)), "not a state"),
    "a tag of a state": (lambda: changed(MISTRAL, tags("REASONING", "reasning")), "unknown tag `reasning`"),
    "two meanings": (lambda: changed(MISTRAL, tags("REASONING", "reasoning", "content")), "both reasoning and content"),
    "no value": (lambda: changed(MISTRAL, tags("REASONING", "json")), "tagged `json` and reads no value"),
    "no arguments": (lambda: changed(MISTRAL, tags("REASONING", "reasoning", "python")), "reads no arguments"),
    "two spellings": (lambda: changed(MISTRAL, tags("REASONING", "arguments", "python", "encoded")), "both `python`"),
    "a final tag": (lambda: changed(MISTRAL, tags("ALL_TOOLS_COMPLETE", "content")), "the final state .* has tags"),
    "a state twice": (
        lambda: changed(MISTRAL, lambda m: m["machine"]["states"].append("REASONING")),
        "REASONING is declared twice",
    ),
    "no name": (lambda: changed(MISTRAL, lambda m: m["machine"]["states"].append("*")), "cannot be the name"),
    "no transition": (lambda: changed(MISTRAL, lambda m: rows(m).append(1)), "not a transition"),  # type: ignore[arg-type]
    "an action": (lambda: changed(MISTRAL, lambda m: rows(m)[3].update(after="endcall")), "unknown action `endcall`"),
    # the grammar
    "no grammar": (lambda: ("start: (", _base(MISTRAL)[1]), "grammar"),
    "an alias in a list": (lambda: defined(MISTRAL, "%import .a (A, b -> c)"), "not a Lark grammar"),
    "no rule": (lambda: defined(MISTRAL, "x: nothing"), "Lark refuses the grammar"),
    "no start": (lambda: ("begin: TEXT\nTEXT: /a/", _base(MISTRAL)[1]), "no rule `start`"),
    "no expression": (lambda: defined(MISTRAL, "NEW: /(/"), "not a regular expression"),
    "nested set": (lambda: defined(MISTRAL, "NEW: /[[a-z]{1,9}/"), "too complex for a trigger"),
    "too complex": (lambda: defined(MISTRAL, "NEW: /a+b+/"), "too complex"),
    "over the limit": (lambda: defined(MISTRAL, "NEW: /[a-z]{1,99999}/"), "too complex"),
    "without a limit": (lambda: defined(MISTRAL, "NEW: /[a-z][a-z]{0,}/"), "too complex"),
    "nested": (lambda: defined(MISTRAL, "NEW: /(?:[a-z]{1,32}){1,99}/"), "too complex"),
    "in a group": (lambda: defined(MISTRAL, "NEW: /(?:[a-z])[a-z]{0,63}/"), "too complex"),
    "long text": (lambda: defined(MISTRAL, f"NEW: /{'a' * 300}/"), "too complex"),
    "an unknown declaration": (
        lambda: defined(MISTRAL, "%declare TEXTS"),
        "`%declare` names TEXTS, which does not follow",
    ),
    "an unknown override": (
        lambda: defined(QWEN, '%override TOOL_CALLS: "<calls>"'),
        "TOOL_CALLS is overridden, and no imported file has it",
    ),
    "an inner override": (lambda: (INNER, defined(HERMES)[1]), "only a file that .common.json_in_tags imports has it"),
    "a declared rule": (lambda: defined(MISTRAL, "x: y", "%declare y"), "`%declare` names y, which does not follow"),
    "nothing reads it": (
        lambda: defined(MISTRAL, 'NEW: "new"', "%declare VALUE"),
        "no state of the machine has the tag `value`",
    ),
    "a long grammar": (lambda: defined(MISTRAL, "//" + "x" * (1 << 15)), "longer than 32768 characters"),
    "many lines": (lambda: defined(MISTRAL, *(f"X{n}: /a/" for n in range(501))), "more than 500 lines"),
    "repetitions": (lambda: defined(MISTRAL, 'x: ("a"~0..999999)'), "larger than 100000 symbols"),
    "choices": (lambda: defined(MISTRAL, f"x: {'[WS] ' * 40}"), "larger than 100000 symbols"),
    "doublings": (
        lambda: defined(MISTRAL, "X0: /a/", *(f"X{n}: X{n - 1} X{n - 1}" for n in range(1, 40))),
        "larger than 100000 symbols",
    ),
    "a circle": (lambda: ("%import .hermes (start)\n", _base(HERMES)[1]), "imports itself"),
    "a template": (lambda: defined(MISTRAL, "_t{x}: x x", "x: _t{WS}"), "uses a template"),
    "groups": (lambda: defined(MISTRAL, f"x: {'(' * 70}WS{')' * 70}"), "nested more than 64 deep"),
    # names
    "the initial state": (lambda: changed(MISTRAL, lambda m: m["machine"].update(initial="START")), "START is not dec"),
    "no end": (lambda: changed(MISTRAL, lambda m: state(m, "ALL_TOOLS_COMPLETE").pop("final")), "0 states are marked"),
    "an unknown state": (lambda: changed(MISTRAL, lead("REASONING", "END_THINK", "THERE")), "THERE is not declared"),
    "ambiguous": (lambda: changed(MISTRAL, more("EOS", "REASONING", "REASONING")), "`EOS` is ambiguous"),
    "a trigger": (lambda: changed(MISTRAL, lambda m: rows(m)[3].update(trigger="TOOL_CAL")), "unknown trigger"),
    "stop": (lambda: changed(MISTRAL, about(stop=["NAME"])), "`stop` names NAME|NAME"),
    "pairs": (
        lambda: changed(HERMES, about(closed_by={"TOOL_CALL": "TOOL_CALL_END"})),
        "`closed_by` names TOOL_CALL_END",
    ),
    "pair": (lambda: changed(HERMES, about(closed_by={"TOOL_CALL": 1})), "`closed_by` is not a mapping of names"),
    "special": (lambda: changed(MISTRAL, about(special_tokens=["NAME"])), "`special_tokens` names NAME"),
    "same path": (lambda: changed(HERMES, about(same_path={"item.args": "item.argument"})), "names item.argument"),
    "line calls": (lambda: changed(HERMES, about(line_calls="PARSING_NAM")), "PARSING_NAM, which is not a held state"),
    "suffix of none": (lambda: changed(HERMES, about(suffix=":b71c")), "which no marker has"),
    "suffix": (lambda: changed(HERMES, about(suffix="call>")), "not a sign with up to 64"),
    "notation": (lambda: changed(MISTRAL, about(notation=["<", ">"])), "no state reads notated"),
    # the graph
    "unreachable": (lambda: changed(MISTRAL, drop("WAITING_FOR_CALL_ID", "WS")), "PARSING_CALL_ID is unreachable"),
    "held text": (lambda: changed(MISTRAL, tags("REASONING", "reasoning", "held")), "text state REASONING is held"),
    "a name": (lambda: changed(MISTRAL, tags("PARSING_NAME", "name")), "reads a name but is not held"),
    "no recovery": (lambda: changed(MISTRAL, drop("RECOVERING", "recovered")), "when the broken call is over"),
    "held value": (lambda: changed(QWEN, tags("PARSING_ARGUMENT_VALUE", "value", "held")), "`value` and `held`"),
    "never comes": (lambda: changed(MISTRAL, more("NAME", "PARSING_ARGUMENTS", "REASONING")), "`NAME` never comes"),
    "the beginning": (
        lambda: changed(MISTRAL, lambda m: m["machine"].update(initial="WAITING_FOR_TOOL")),
        "no output can begin in WAITING_FOR_TOOL|is unreachable",
    ),
    "a held beginning": (
        lambda: changed(
            MISTRAL,
            both(
                more("EOS", "WAITING_FOR_TOOL", "REASONING"),
                lambda m: m["machine"].update(initial="WAITING_FOR_TOOL"),
            ),
        ),
        "no output can begin in WAITING_FOR_TOOL",
    ),
    "no quotes": (
        lambda: changed(
            QWEN,
            both(
                tags("PARSING_ARGUMENT_VALUE", "value", "notated"),
                more("value_end", "PARSING_ARGUMENT_VALUE", "WAITING_FOR_ARGUMENT_KEY"),
            ),
        ),
        "does not say how they are quoted",
    ),
    "no tags": (
        lambda: changed(
            QWEN,
            both(
                tags("PARSING_ARGUMENT_VALUE", "value", "elements"),
                more("value_end", "PARSING_ARGUMENT_VALUE", "WAITING_FOR_ARGUMENT_KEY"),
            ),
        ),
        "does not say how their tags begin",
    ),
    "no end of a value": (
        lambda: changed(QWEN, drop("PARSING_ARGUMENT_VALUE", "PARAMETER_END", "PARAMETER_END_LINE", "PARAMETER")),
        "no transition for the end of the value|is unreachable",
    ),
    "no end of what is ignored": (
        lambda: changed(HERMES, drop("IGNORING_MEMBER", "value_end")),
        "no transition for the end of the value",
    ),
    "any type alone": (
        lambda: changed(QWEN, more("value_end", "PARSING_ARGUMENT_VALUE", "WAITING_FOR_ARGUMENT_KEY")),
        "does not end by itself",
    ),
    "echo": (lambda: changed(QWEN, tags("PARSING_ARGUMENT_VALUE", "value", "echo")), "is tagged `echo`"),
    "no end of arguments": (
        lambda: changed(HERMES, drop("PARSING_ARGUMENTS", "end_map item.arguments")),
        "which is `end_map item.arguments`",
    ),
    "a late id of no call": (
        lambda: changed(MISTRAL, acts("WAITING_FOR_CALL_ID", "ID", "late_call_id")),
        "`late_call_id` while no call is open",
    ),
    "reasoning closed in a call": (
        lambda: changed(MISTRAL, acts("WAITING_FOR_TOOL", "NAME", "name", "unopened_reasoning")),
        "`unopened_reasoning` while no content is read",
    ),
    "behind the end": (lambda: changed(MISTRAL, more("EOS", "ALL_TOOLS_COMPLETE", "REASONING")), "the output is over"),
    "another end": (lambda: changed(MISTRAL, lead("REASONING", "end", "REASONING")), "only `end` leads to the final"),
    "text that does not stay": (
        lambda: changed(MISTRAL, lead("REASONING", "TEXT", "TOOL_COMPLETE")),
        "text does not go",
    ),
    "malformed to structure": (
        lambda: changed(HERMES, lead("TOOL_COMPLETE", "malformed", "WAITING_FOR_TOOL")),
        "which reads no text",
    ),
    "recovered to arguments": (
        lambda: changed(MISTRAL, lead("RECOVERING", "recovered", "PARSING_ARGUMENTS")),
        "in which no text can go on",
    ),
    "no arguments begin": (
        lambda: changed(MISTRAL, lead("WAITING_FOR_OBJECT", "object_start", "WAITING_FOR_OBJECT")),
        "reads no arguments",
    ),
    "no parentheses": (
        lambda: changed(MISTRAL, more("object_empty", "WAITING_FOR_OBJECT", "TOOL_COMPLETE", "start_call")),
        "Python arguments may begin",
    ),
    "one bracket twice": (
        lambda: changed(HERMES, more("object_start", "WAITING_FOR_TOOL", "PARSING_ARGUMENTS", "start_call")),
        "both begin with",
    ),
    "one character twice": (
        lambda: (
            defined(HERMES, "NEW: /[ a]{1,9}/")[0],
            changed(HERMES, more("NEW", "WAITING_FOR_TOOL", "WAITING_FOR_TOOL"))[1],
        ),
        "begin with the same character",
    ),
    "one text twice": (lambda: defined(MISTRAL, 'NEW: "[THINK]"'), "are the same text"),
    "a prefix": (lambda: defined(MISTRAL, 'NEW: "[THI"'), "is a prefix of"),
    "a bracket as text": (
        lambda: (lambda texts: (texts[0], texts[1].replace('"[THINK]"', '"{"')))(
            (
                defined(HERMES, 'NEW: "{"')[0],
                changed(HERMES, more("NEW", "WAITING_FOR_TOOL", "WAITING_FOR_TOOL"))[1],
            )
        ),
        "and `start_map item` both begin with",
    ),
    # the flow of a call
    "text in a call": (
        lambda: changed(
            QWEN,
            both(
                tags("PARSING_ARGUMENT_KEY_COMPLETED", "held"),
                more("TEXT", "PARSING_ARGUMENT_KEY_COMPLETED", "WAITING_FOR_TOOL_START"),
            ),
        ),
        "there would be text in an open call",
    ),
    "arguments twice": (
        lambda: changed(LLAMA, more("object_start", "EMPTY_ARGUMENTS", "PARSING_ARGUMENTS", "start_call")),
        "arguments twice",
    ),
    "an import": (lambda: changed(MISTRAL, imports(1)), "not an import"),
    "a prefix of states": (
        lambda: changed(MISTRAL, imports({"fragment": "reasoning", "prefix": "A-"})),
        "`prefix` is .A-",
    ),
    "a nameless state": (
        lambda: changed(MISTRAL, lambda m: m["machine"]["states"].append({"tags": ["held"]})),
        "one of `name` and `names`",
    ),
    "started twice": (lambda: changed(MISTRAL, acts("PARSING_ARGUMENTS", "object_end", "start_call")), "call is open"),
    "declared unnamed": (
        lambda: changed(MISTRAL, acts("PARSING_ARGUMENTS", "object_end", "declared_name")),
        "`declared_name` before any name was read",
    ),
    "started unnamed": (lambda: changed(MISTRAL, acts("WAITING_FOR_TOOL", "NAME")), "`start_call` before `name`"),
    "ended twice": (
        lambda: changed(MISTRAL, acts("PARSING_ARGUMENTS", "object_end", "end_call", "end_call")),
        "no call is open",
    ),
    "ended inside": (
        lambda: changed(MISTRAL, acts("PARSING_ARGUMENTS", "end", "end_call")),
        "while the arguments are open",
    ),
    "ended in parts": (
        lambda: changed(QWEN, acts("WAITING_FOR_ARGUMENT_KEY", "INVOKE_END", "end_call")),
        "before `close_arguments`",
    ),
    "ended before": (
        lambda: changed(QWEN, acts("WAITING_FOR_ARGUMENTS_START", "INVOKE_END", "start_call", "end_call")),
        "before any arguments",
    ),
    "unclosed": (
        lambda: changed(QWEN, acts("WAITING_FOR_ARGUMENT_KEY", "PARAMETER", "unclosed_value")),
        "no value is read",
    ),
    "unclosed arguments": (
        lambda: changed(QWEN, acts("WAITING_FOR_ARGUMENT_KEY", "PARAMETER", "unclosed_arguments")),
        "no arguments are open",
    ),
    "closed before": (
        lambda: changed(QWEN, acts("WAITING_FOR_ARGUMENTS_START", "PARAMETER", "start_call")),
        "outside of `open_arg",
    ),
    "closed unopened": (
        lambda: changed(QWEN, acts("WAITING_FOR_ARGUMENTS_START", "INVOKE_END", "start_call", "close_arguments")),
        "while no arguments are open",
    ),
    "opened before": (
        lambda: changed(QWEN, acts("WAITING_FOR_ARGUMENTS_START", "PARAMETER", "open_arguments", "start_call")),
        "`open_arguments` before `start_call`",
    ),
    "a name of nothing": (
        lambda: changed(MISTRAL, acts("WAITING_FOR_OBJECT", "object_start", "name", "start_call")),
        "no text is read",
    ),
    "a name twice": (lambda: changed(MISTRAL, acts("WAITING_FOR_CALL_ID", "ID", "name")), "has a name already"),
    "the end of a name": (
        lambda: changed(MISTRAL, more("end", "PARSING_NAME_COMPLETED", "ALL_TOOLS_COMPLETE")),
        "the output ends and a call has not",
    ),
    "no arguments there": (
        lambda: changed(HERMES, lead("WAITING_FOR_TOOL", "WS", "PARSING_ARGUMENTS")),
        "and none begin",
    ),
    "python in JSON": (
        lambda: changed(HERMES, tags("PARSING_ARGUMENTS", "arguments", "python")),
        "which begin with `object_start`",
    ),
    "held behind the start": (
        lambda: changed(MISTRAL, both(tags("PARSING_ARGUMENTS", "arguments", "held"))),
        "a call starts and",
    ),
    "held behind the end": (
        lambda: changed(
            QWEN,
            both(
                tags("WAITING_FOR_ARGUMENT_KEY", "held"),
                lead("WAITING_FOR_ARGUMENT_KEY", "INVOKE_END", "WAITING_FOR_FUNCTION"),
            ),
        ),
        "a call ends and",
    ),
    "not held": (
        lambda: changed(
            MISTRAL,
            both(
                tags("WAITING_FOR_CALL_ID"),
                more("malformed", "WAITING_FOR_CALL_ID", "RECOVERING"),
                more("end", "WAITING_FOR_CALL_ID", "ALL_TOOLS_COMPLETE"),
            ),
        ),
        "is not held",
    ),
    "open in text": (lambda: changed(MISTRAL, acts("PARSING_ARGUMENTS", "malformed")), "the call is still open"),
    "JSON in text": (
        lambda: changed(HERMES, lead("TOOL_COMPLETE", "start_map item", "WAITING_FOR_TOOL_START")),
        "the JSON around",
    ),
    "broken and fits": (lambda: changed(MISTRAL, lead("REASONING", "END_THINK", "RECOVERING")), "and something fits"),
    "ignored without a key": (
        lambda: changed(HERMES, lead("PARSING_ARGUMENTS_COMPLETED", "end_map item", "IGNORING_MEMBER")),
        "no key comes",
    ),
    "a value without a key": (
        lambda: changed(QWEN, lead("WAITING_FOR_ARGUMENTS_START", "PARAMETER", "PARSING_ARGUMENT_VALUE")),
        "the value of an argument, and no key|unreachable",
    ),
    "many positions": (
        lambda: changed(
            HERMES,
            both(
                *(
                    more(f"{event} item.k{n}", "WAITING_FOR_TOOL_KEY", "WAITING_FOR_TOOL_KEY")
                    for event in ("map_key", "start_map")
                    for n in range(330)
                ),
                about(same_path={f"item.k{n}.name": "item.name" for n in range(330)}),
            ),
        ),
        "in more than 16384 ways",
    ),
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


def _path(name: str) -> str:
    return str(grammar_home() / "hermes.lark") if name == "a circle" else "own.lark"


def _check(error: FormatError, given: Callable[[], Texts], wanted: str) -> None:
    assert re.search(wanted, error.problem)
    assert error.remedy
    assert 0 <= error.line <= given()[error.path == "own.yaml"].count("\n") + 2  # the end of the file


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
            _check(refused(given, _path(name)), given, wanted)
    for row, _ in SPEC_ROWS.values():
        without(*row)
    test_unreadable_files.test_what_is_no_file_is_refused_at_once(tmp_path)
    test_unreadable_files.test_what_a_file_of_another_file_declares_has_no_name(tmp_path)
    assert _sites() - reached == set()


@pytest.mark.parametrize("count", [4, 12, 40])
def test_ways_that_multiply_behind_a_value_are_refused(count: int, tmp_path: Path) -> None:
    """Behind a marker that may end a value every way through the machine is followed: a file may ask for very many."""
    grammar, machine = (
        (grammar_home().parent / folder / f"qwen3_coder.{suffix}").read_text(encoding="utf-8")
        for folder, suffix in (("grammars", "lark"), ("machines", "yaml"))
    )
    places = range(count)
    states = ", ".join(f"X{at}" for at in places)
    grammar += "".join(f'M{at}: "<m{at}>"\n' for at in places) + f"rest: {' | '.join(f'M{at}' for at in places)}\n"
    rows = "".join(f"    - {{trigger: M{at}, source: [TOOL_COMPLETE, {states}], dest: X{at}}}\n" for at in places)
    added = f"  states: [{{names: [{states}], tags: [content]}}]\n  transitions:\n{rows}"
    machine = machine.replace("  transitions:\n", added)
    (tmp_path / "own.lark").write_text(grammar, encoding="utf-8")
    (tmp_path / "own.yaml").write_text(machine, encoding="utf-8")
    with at_most(calls=5_000_000), pytest.raises(FormatError, match="more than 2000 ways"):
        toolgram.load_format(tmp_path / "own.lark", tmp_path / "own.yaml")


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
    assert refused(lambda: changed(MISTRAL, about(special_token=[]))).remedy == "write `special_tokens`"
    assert refused(lambda: changed(MISTRAL, lead("REASONING", "END_THINK", "REASONNG"))).remedy == "write `REASONING`"
