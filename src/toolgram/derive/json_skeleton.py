"""Calls that are JSON objects: alone, in a list, or one behind the other, with or without markers around them.

Strategy: the machine of every such format is the same but for its markers and the names of its keys.  More is taken
than the template shows, because models do write it: keys in any order, an object for a list and a list for an object,
the usual names of the keys, and OpenAI's wrapper around the function.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolgram.derive.drafts import RECOVERING, Draft
from toolgram.derive.paths import Path, each_optional, pieces
from toolgram.derive.result import DiffAnalysisResult

_KEY = re.compile(r"\w+\Z")


def add_json_calls(draft: Draft, result: DiffAnalysisResult, entries: Sequence[str]) -> list[str]:
    """Add the calls. `entries` are the states of free text; returns the states behind a call, which text leaves."""
    calls, markers, fields = result.calls, result.markers, result.json_fields
    assert calls is not None
    listed = calls.section_start.rstrip().endswith("[")
    section = calls.section_start.rstrip().removesuffix("[") if listed else calls.section_start
    section_end = calls.section_end.lstrip().removeprefix("]") if listed else calls.section_end
    before = _whole(draft, markers.per_call_start)
    outer = _whole(draft, section)
    if not before:
        before, outer = outer, []
    closers = [*pieces(markers.per_call_end)]
    ends = pieces(section_end)
    recovering = draft.state(RECOVERING, "malformed")
    done = draft.state("CALLS_COMPLETE", "content")
    texts = [*entries, done, recovering]
    path = Path(draft, texts)
    rule: list[str] = []
    if outer:
        inner = _markers(path, "TOOL_CALLS", outer)
        rule.append(f"({inner.text()})?")
        path = Path(draft, [*texts, *inner.states])
    if before:
        alone, alone_end = _alone(draft, result, before)
        path = _markers(path, "TOOL_CALL", before)
        opened = path.states
        if alone:
            other = _markers(Path(draft, texts), "SOLE_TOOL_CALL", alone)
            opened = [*opened, *other.states]
            rule = [f"({' '.join([*rule, *path.symbols])} | {other.text()})"]
        else:
            rule += path.symbols
    else:
        alone_end = []
        opened = [state for state in texts if state != recovering]
    _add_object(draft, result, opened, done, recovering)
    objects = "(call_list | envelope)"
    rule.append(objects)
    rule.append("_ws")
    again = _separator(draft, calls.separator, done)
    direct = bool(before) and not closers  # objects behind one another, in one section
    for state in [*([again] if again else []), *([done] if direct else [])]:
        draft.to("start_map item", state, "WAITING_FOR_TOOL_KEY")
        draft.to("start_array", state, "WAITING_FOR_TOOL")
    if again or direct:
        between = "(SEPARATOR _ws)? " if again and direct else "SEPARATOR _ws " if again else ""
        rule.append(f"({between}{objects} _ws)*")
    leaving = [done]
    closing = _closers(draft, [*closers, *ends], leaving, recovering)
    if alone_end:
        behind = [done]
        closing = [f"({' | '.join([*closing, *_closers(draft, alone_end, behind, recovering)])})"]
        leaving += behind[1:]
    rule += closing
    draft.rules.append(f"calls.3: {' '.join(part for part in rule if part)}")
    _add_rules(draft, result)
    draft.imports.append(".common.json (arguments, STRING, NULL, _BLANK)")
    if not fields.name_is_key:
        draft.about["same_path"] = _same_paths(result)
    return leaving


def _alone(draft: Draft, result: DiffAnalysisResult, before: list[str]) -> tuple[list[str], list[str]]:
    """The markers around a sole call, where they are not those of several."""
    assert result.calls is not None
    if result.calls.single is None:
        return [], []
    start, end = result.calls.single
    markers = result.markers
    opening = _whole(draft, start.rstrip().removesuffix("[") + markers.per_call_start)
    closing = pieces(markers.per_call_end + end.lstrip().removeprefix("]"))
    return (opening, closing) if opening and opening != before else ([], [])


def _whole(draft: Draft, marker: str) -> list[str]:
    """The pieces of a marker; one, where its first means something else in free text."""
    cut = pieces(marker)
    return [marker.strip()] if cut and draft.has(cut[0]) else cut


def _markers(path: Path, role: str, texts: Sequence[str]) -> Path:
    inner = Path(path.draft, path.states)
    for name in path.draft.literals(role, texts):
        inner.step(name, path.draft.state("WAITING_FOR_TOOL_LIST", "held"))
    return inner


def _separator(draft: Draft, text: str, done: str) -> str:
    """What stands between two calls, where it is more than blanks: the state behind it."""
    text = text.strip()
    if text not in (";", ",", "|", "&") and not pieces(text):
        text = ";"
    if text == "," or not text:
        text = ","
    name = draft.literal("SEPARATOR", text)
    if name != "SEPARATOR":
        return ""
    waiting = draft.state("WAITING_FOR_NEXT_TOOL", "held")
    draft.to(name, done, waiting)
    draft.loop_blanks(waiting)
    return waiting


def _closers(draft: Draft, texts: Sequence[str], leaving: list[str], recovering: str) -> list[str]:
    """The markers behind a call, each of which may be missing."""
    names = draft.literals("TOOL_CALL_END", texts)
    for name in names:
        dest = draft.state("TOOL_COMPLETE", "content")
        draft.to(name, leaving[-1], dest)
        draft.to(name, recovering, dest)
        leaving.append(dest)
    return [each_optional(names)] if names else []


def _add_object(draft: Draft, result: DiffAnalysisResult, opened: Sequence[str], done: str, recovering: str) -> None:
    """The states inside the JSON, from the bracket that opens a list or an object on."""
    fields = result.json_fields
    waiting = draft.state("WAITING_FOR_TOOL", "held")
    key = draft.state("WAITING_FOR_TOOL_KEY", "held")
    complete = draft.state("IN_LIST_COMPLETE")
    arguments = draft.state("PARSING_ARGUMENTS", "arguments")
    completed = draft.state("PARSING_ARGUMENTS_COMPLETED")
    ignoring = draft.state("IGNORING_MEMBER", "ignored")
    draft.to("start_array", opened, waiting)
    draft.to("end_array", [waiting, complete], done)
    draft.to("start_map item", [*opened, waiting, complete], key)
    if fields.name_is_key:
        named = draft.state("PARSING_NAME_COMPLETED", "name", "held")
        draft.to("map_key item.*", key, named, "name")
        draft.to("start_map item.*", named, arguments, "start_call")
        draft.to("string item.*", named, arguments, "start_call")
        draft.to("null item.*", named, completed, "start_call", "no_arguments")
        draft.to("end_map item.*", arguments, completed)
    else:
        _add_members(draft, result, key, arguments, completed)
    draft.to("map_key", completed, ignoring)
    draft.to("value_end", ignoring, completed)
    draft.to("end_map item", completed, complete, "end_call")
    draft.to("recovered", recovering, complete)


def _paths(result: DiffAnalysisResult) -> tuple[str, str, str]:
    fields = result.json_fields
    return f"item.{fields.name_field}", f"item.{fields.args_field}", f"item.{fields.id_field or 'id'}"


def _add_members(draft: Draft, result: DiffAnalysisResult, key: str, arguments: str, completed: str) -> None:
    """Name, arguments, id and what else may stand there, in any order."""
    name_path, args_path, id_path = _paths(result)
    parsing = draft.state("PARSING_NAME", "name", "held")
    named = draft.state("PARSING_NAME_COMPLETED", "held")
    starting = draft.state("WAITING_FOR_ARGUMENTS_START", "held")
    early = draft.state("WAITING_FOR_EARLY_ARGUMENTS", "held")
    parsing_early = draft.state("PARSING_EARLY_ARGUMENTS", "arguments", "held")
    unnamed = draft.state("WAITING_FOR_NAME", "held")
    late = draft.state("PARSING_LATE_NAME", "name", "held")
    draft.to(f"map_key {name_path}", key, parsing)
    draft.to(f"string {name_path}", parsing, named, "name")
    draft.to(f"map_key {args_path}", named, starting)
    draft.to(f"start_map {args_path}", starting, arguments, "start_call")
    draft.to(f"string {args_path}", starting, arguments, "start_call")
    draft.to(f"null {args_path}", starting, completed, "start_call", "no_arguments")
    draft.to(f"end_map {args_path}", arguments, completed)
    draft.to(f"map_key {args_path}", key, early)
    draft.to(f"start_map {args_path}", early, parsing_early)
    draft.to(f"string {args_path}", early, parsing_early)
    draft.to(f"null {args_path}", early, unnamed, "no_arguments")
    draft.to(f"end_map {args_path}", parsing_early, unnamed)
    draft.to(f"map_key {name_path}", unnamed, late)
    draft.to(f"string {name_path}", late, completed, "name", "start_call")
    anywhere = [key, named, unnamed]
    draft.to(f"map_key {id_path}", [*anywhere, completed], "=")
    draft.to(f"string {id_path}", anywhere, "=", "call_id")
    draft.to(f"string {id_path}", completed, "=")
    for path, kinds in _constants(result).items():
        draft.to(f"map_key {path}", [*anywhere, completed], "=")
        for kind in kinds:
            draft.to(f"{kind} {path}", [*anywhere, completed], "=")
    wrapper = f"item.{result.json_fields.function_field or 'function'}"
    if wrapper not in (name_path, args_path, id_path):
        inside = draft.state("PARSING_FUNCTION", "held")
        draft.to(f"map_key {wrapper}", key, inside)
        draft.to(f"start_map {wrapper}", inside, key)
        draft.to(f"end_map {wrapper}", completed, completed)


def _constants(result: DiffAnalysisResult) -> dict[str, list[str]]:
    """Members that carry nothing: path -> events of the values that they may have."""
    fields = result.json_fields
    found = {"item.type": ["string"]}
    if fields.gen_id_field:
        found[f"item.{fields.gen_id_field}"] = ["string", "number"]
    for name in fields.constants:
        if _KEY.match(name):
            found[f"item.{name}"] = ["string", "number", "boolean", "null"]
    taken = {*_paths(result)}
    return {path: kinds for path, kinds in found.items() if path not in taken}


def _same_paths(result: DiffAnalysisResult) -> dict[str, str]:
    """Other spellings of the keys, and the same inside OpenAI's wrapper."""
    name_path, args_path, id_path = _paths(result)
    wrapper = f"item.{result.json_fields.function_field or 'function'}"
    taken = {name_path, args_path, id_path, wrapper, *_constants(result)}
    same: dict[str, str] = {}
    for path, spellings in ((name_path, ("name",)), (args_path, ("arguments", "parameters")), (id_path, ("id",))):
        last = path.removeprefix("item.")
        for spelling in (last, *spellings):
            if f"item.{spelling}" not in taken:
                same.setdefault(f"item.{spelling}", path)
            if wrapper not in (name_path, args_path, id_path):
                same.setdefault(f"{wrapper}.{spelling}", path)
    return same


def _add_rules(draft: Draft, result: DiffAnalysisResult) -> None:
    fields = result.json_fields
    draft.rules += [
        'call_list: "[" _BLANK? [_item ("," _BLANK? _item)*] "]"',
        "_item: envelope _BLANK?",
    ]
    if fields.name_is_key:
        draft.rules += [
            'envelope: "{" _BLANK? name_field _colon arguments_field _BLANK? "}"',
            "name_field: STRING",
            "arguments_field: arguments | STRING | NULL",
        ]
    else:
        names = [path.removeprefix("item.") for path in _paths(result)]
        wrapper = fields.function_field or "function"
        draft.rules += [
            'envelope: "{" _fields "}"',
            'inner_envelope: "{" _fields "}"',
            '_fields: _BLANK? _field ("," _BLANK? _field)*',
            "_field: (name_field | id_field | arguments_field | constant_field | function_field) _BLANK?",
            f'name_field: "\\"{names[0]}\\"" _colon STRING',
            f'arguments_field: "\\"{names[1]}\\"" _colon (arguments | STRING | NULL)',
            f'id_field: "\\"{names[2]}\\"" _colon STRING',
            f'function_field: "\\"{wrapper}\\"" _colon inner_envelope',
            "constant_field: "
            + " | ".join(
                f'"\\"{path.removeprefix("item.")}\\"" _colon (STRING | NUMBER | TRUE | FALSE | NULL)'
                for path in _constants(result)
            ),
        ]
        draft.imports.append(".common.json (NUMBER, TRUE, FALSE)")
    draft.rules.append('_colon: _BLANK? ":" _BLANK?')
