"""Calls that are JSON objects: alone, in a list, or one after the other, with or without markers around them.

Strategy: the fragments of the shipped formats read the JSON; here are the markers around it and the names of its
keys.  More is taken than the template shows, because models do write it: keys in any order, an object for a list and a
list for an object, the usual names of the keys, and OpenAI's wrapper around the function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence

from toolgram.derive.format_builder import TEXTS, FormatBuilder, Path, add_closers, close_arguments, pieces, whole
from toolgram.derive.result import ArgumentsStyle, DiffAnalysisResult, JsonFields
from toolgram.spec.composition import START
from toolgram.spec.data import Literal

LIST, DONE = "WAITING_FOR_TOOL", "CALLS_COMPLETE"
_MEMBERS = ("WAITING_FOR_TOOL_KEY", "PARSING_NAME_COMPLETED", "WAITING_FOR_NAME", "PARSING_ARGUMENTS_COMPLETED")
_KEY = re.compile(r"\w+\Z")
_USUAL = {"name": ("name",), "arguments": ("arguments", "parameters"), "id": ("id",)}  # as the shared grammar has them
_VALUES = {"name": "STRING", "arguments": "(arguments | STRING | NULL)", "id": "(STRING | _repair_id)"}
_ARGS = "args"  # a key that models write for the arguments; the shared grammar has a rule for it


def add_json_calls(builder: FormatBuilder, result: DiffAnalysisResult) -> list[str]:
    """Add the calls, and return the states after a call, which text leaves."""
    calls, markers = result.calls, result.markers
    assert calls is not None
    listed = calls.section_start.rstrip().endswith("[")
    section = calls.section_start.rstrip().removesuffix("[") if listed else calls.section_start
    section_end = calls.section_end.lstrip().removeprefix("]") if listed else calls.section_end
    before = whole(builder, markers.per_call_start)
    outer = whole(builder, section)
    if not before:
        before, outer = outer, []
    closers = [*pieces(markers.per_call_end)]
    literals = [shape.text for shape in builder.terminals.values() if isinstance(shape, Literal)]
    several = listed or not any(text[0] == "[" for text in literals)
    python = calls.arguments.style is ArgumentsStyle.PYTHON_DICT
    if before or python:  # nothing tells a call without a marker from prose but that it is JSON
        builder.about["python_json"] = True
    if result.json_fields.name_is_key:
        builder.use("json_named_call_list", {START: DONE})
        builder.take("named_envelope", "call_list", "envelope")
    else:
        _Keys(builder, result.json_fields).add()
    rule = _opening(builder, outer, before)
    said = calls.separator.strip()  # between the members of a list, the list has it
    closed = bool(closers or pieces(section_end))
    again = "" if before and closed and (listed or not said) else _separator(builder, said, before)
    rule += _objects(builder, before, closers, again, several)
    leaving = [DONE]
    closing = [*closers, *pieces(section_end)]
    if closing:
        rule.append(add_closers(builder, "TOOL_CALL_END", closing, [DONE], leaving))
        close_arguments(builder, closing[0], DONE)
    builder.owe([*outer, *before], closing)
    builder.rules.insert(0, f"calls.3: {' '.join(rule)}")
    return leaving


def _objects(
    builder: FormatBuilder, before: Sequence[str], closers: Sequence[str], again: str, several: bool
) -> list[str]:
    """Return the rule of the objects themselves, and of what is between two. `several` objects may be a list."""
    direct = bool(before) and not closers  # objects after one another, in one section
    sources = [*(["content", "reasoning"] if not before else []), *([DONE] if direct else [])]
    builder.to("start_map item", sources, "WAITING_FOR_TOOL_KEY")
    builder.to("start_array", sources if several else [], "WAITING_FOR_TOOL_ITEM")
    next_one = "(call_list | envelope)" if several else "envelope"  # a bracket may begin a marker of text instead
    rule = ["(call_list | envelope)" if before else next_one, "_ws"]
    if again or direct:
        between = f"({again} _ws)?" if again and direct else f"{again} _ws" if again else ""
        after = "(call_list | envelope)" if again and not direct else next_one
        rule.append(f"({between} {after} _ws)*")
    return rule


def _opening(builder: FormatBuilder, outer: Sequence[str], before: Sequence[str]) -> list[str]:
    """Return the rule of the markers that lead to the JSON."""
    rule: list[str] = []
    path = Path(builder, list(TEXTS))
    if outer:
        inner = path.fork()
        for name in builder.literals("TOOL_CALLS", outer):
            inner.step(name, builder.state("WAITING_FOR_TOOL_CALL", "held"))
        rule.append(f"({inner.text()})?")
        path = Path(builder, [*TEXTS, *inner.states])
    return [*rule, path.markers("TOOL_CALL", before, LIST).text()]


def _separator(builder: FormatBuilder, text: str, before: Sequence[str]) -> str:
    """Return what is between two calls, if it is more than blanks."""
    text = text or ";"
    if builder.has(text) and not before:
        text = ","
    if builder.has(text):
        return ""
    builder.blanks()
    name = builder.literal("SEPARATOR", text)
    if not before:
        builder.to(name, DONE, LIST)
        return name
    waiting = builder.state("WAITING_FOR_NEXT_TOOL", "held")  # not LIST: a sign that prose has may lead here
    builder.to(name, DONE, waiting)
    builder.to("start_map item", waiting, "WAITING_FOR_TOOL_KEY")
    builder.to("start_array", waiting, "WAITING_FOR_TOOL_ITEM")
    builder.loop_blanks(waiting)
    return name


class _Keys:
    """The keys of a call: those of the shared fragment, others that mean the same, and those that mean nothing.

    A key of the template is another spelling of the fragment's; if it means something else there, the fragment's
    is renamed.
    """

    def __init__(self, builder: FormatBuilder, fields: JsonFields) -> None:
        self.builder = builder
        other = "call_id" if "id" in (fields.name_field, fields.args_field) else "id"
        self.given = {"name": fields.name_field, "arguments": fields.args_field, "id": fields.id_field or other}
        wrapper = fields.function_field or "function"
        self.wrapper = wrapper if wrapper not in self.given.values() else ""
        self.constants = {fields.gen_id_field: ["string", "number"]} if fields.gen_id_field else {}
        for name in fields.constants:
            if _KEY.match(name):
                self.constants[name] = ["string", "number", "boolean", "null"]
        taken = {*self.given.values(), self.wrapper}
        self.constants = {name: kinds for name, kinds in self.constants.items() if name not in taken}
        self.taken = {*taken, *self.constants}
        self.roles = {role: role if self._free(role, key) else key for role, key in self.given.items()}

    def _free(self, spelling: str, key: str) -> bool:
        """Return whether a spelling of `key` means nothing else."""
        return spelling == key or spelling not in self.taken

    def spellings(self, role: str) -> list[str]:
        """Return all spellings of a key."""
        key = self.given[role]
        return list(dict.fromkeys([key, *(each for each in _USUAL[role] if self._free(each, key))]))

    def add(self) -> None:
        """Add the fragments with these keys, and the rules of the grammar."""
        builder = self.builder
        renamed = {f"item.{role}": f"item.{key}" for role, key in self.roles.items()}
        kind = self._kind()
        builder.use("json_call_list", {START: DONE, **renamed, "item.type": f"item.{kind}"})
        if self.wrapper:
            builder.use("json_function", {"item.function": f"item.{self.wrapper}"})
        for name, kinds in {kind: ["string"], **self.constants}.items():
            for event in ["map_key"] * (name != kind) + kinds:
                builder.to(f"{event} item.{name}", _MEMBERS, "=")
        builder.about["same_path"] = self._same_paths()
        self._rules()

    def _kind(self) -> str:
        """Return the key of what kind of call it is; the template may use the usual one for another member."""
        return "type" if self._free("type", "") or "type" in self.constants else "kind"

    def _same_paths(self) -> dict[str, str]:
        """Return other spellings of the keys, and the same inside OpenAI's wrapper, with what they mean."""
        same: dict[str, str] = {}
        for role, path in self.roles.items():
            for spelling in self.spellings(role):
                if spelling != path:
                    same[f"item.{spelling}"] = f"item.{path}"
                if self.wrapper:
                    same[f"item.{self.wrapper}.{spelling}"] = f"item.{path}"
        return same

    def _rules(self) -> None:
        """Add the shared grammar, with the keys that it does not have."""
        names = ["call_list", "envelope"]
        rules: list[str] = []
        for role, usual in _USUAL.items():
            spellings = self.spellings(role)
            own = spellings if {*usual} - {*spellings} else [each for each in spellings if each not in usual]
            if own:
                how = "%override" if own == spellings else "%extend"
                keys = _literals(own)
                names += [f"{role}_field", *re.findall(r"\w+", _VALUES[role])]
                if how == "%override" and role == "arguments" and self._free(_ARGS, ""):
                    keys = f"({keys} | _repair_{_ARGS})"
                    names.append(f"_repair_{_ARGS}")
                rules.append(f"{how} {role}_field: {keys} _colon {_VALUES[role]}")
        if self.constants:
            names += ["type_field", "STRING", "NULL"]
            self.builder.take("json", "NUMBER", "TRUE", "FALSE")
            keys = _literals(dict.fromkeys(["type", *self.constants]))
            rules.append(f"%override type_field: {keys} _colon (STRING | NUMBER | TRUE | FALSE | NULL)")
        elif self._kind() != "type":
            names.append("type_field")
            rules.append(f'%override type_field: {_literals([self._kind()])} _colon "\\"function\\""')
        self.builder.take("envelope", *names, *(["_colon"] if rules else []))
        self.builder.rules += rules


def _literals(keys: Iterable[str]) -> str:
    """Return the part of a rule that is one of these keys, with their quotes."""
    written = [json.dumps(json.dumps(key, ensure_ascii=False), ensure_ascii=False) for key in keys]
    return written[0] if len(written) == 1 else f"({' | '.join(written)})"
