"""Whether calls fit their tools: each against its JSON Schema, and what is wrong in words that a model understands.

Strategy: jsonschema-rs does the work, with regular expressions that run in linear time and with no way to fetch
anything. Schemas come from requests, so what it refuses is not an error here: another pattern is taken out, and a note
says so. All faults of a call are reported at once, since each round trip to a model costs seconds;
`reply` is what to send back as the result of the call.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from toolgram.errors import ToolgramError
from toolgram.late_imports import install_line
from toolgram.limits import LONGEST_FAULT, LONGEST_NEAREST_NAME, MOST_FAULTS, MOST_PATTERNS
from toolgram.tools.reading import read_tools

if TYPE_CHECKING:
    import jsonschema_rs


class Checkable(Protocol):
    """A `toolgram.message.Message`. This module is below that one, and the calls are read, not made."""

    tool_calls: Any  # those that are complete or truncated
    malformed: Any  # those that failed
    anomalies: Any  # what was unusual, with the reasons of failed calls


class Fault(NamedTuple):
    """One thing that is wrong. `path` leads to it from the arguments (`items[2].price`), "" for the arguments."""

    path: str
    problem: str

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self.path else self.problem


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """One call of a message. `notes` say what its schema asks for and nobody checked."""

    id: str
    name: str
    faults: tuple[Fault, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_valid(self) -> bool:
        """Whether the call may be made."""
        return not self.faults

    @property
    def reply(self) -> str:
        """What to send to the model as the result of the call; "" if nothing is wrong."""
        if not self.faults:
            return ""
        said = "\n".join(f"- {fault}" for fault in self.faults)
        return f"The call of {_short(self.name)} was not made:\n{said}\nCorrect this and call again."


def validate(message: Checkable, tools: Sequence[Any] | None) -> list[CheckedCall]:
    """Validate every call of the message, in order, those that were cut off or malformed last.

    `tools` are in any known shape. Raises ToolgramError if their shape is unknown, or if jsonschema-rs is not
    installed. Costs about ten microseconds per call, and a millisecond for a schema that was not seen before.
    """
    declared = {tool.name: tool for tool in read_tools(tools) if tool.name}
    checked = []
    for call in message.tool_calls:
        if call.status != "complete":
            fault = Fault("", "The output ended before the call did. Its arguments are not whole.")
            checked.append(CheckedCall(call.id, call.name, (fault,)))
        elif call.name not in declared:
            checked.append(CheckedCall(call.id, call.name, (_unknown(call.name, declared),)))
        else:
            tool = declared[call.name]
            schema = tool.parameters if tool.is_function else None
            checked.append(CheckedCall(call.id, call.name, *_against(schema, json.loads(call.arguments))))
    why = {anomaly.call: anomaly.why for anomaly in message.anomalies if anomaly.kind == "malformed" and anomaly.why}
    for failed in message.malformed:
        problem = f"The call could not be read: {why.get(failed.index, 'its arguments are not JSON')}."
        checked.append(CheckedCall(failed.id, failed.name, (Fault("", _short(problem)),)))
    return checked


def _unknown(name: str, declared: Iterable[str]) -> Fault:
    names = list(declared)
    near = get_close_matches(name[:LONGEST_NEAREST_NAME], names, n=1) if names else []
    listed = ", ".join(names[:MOST_FAULTS]) + (", ..." if len(names) > MOST_FAULTS else "")
    hint = (
        f"Did you mean {near[0]}?" if near else f"The functions are: {listed}." if names else "There are no functions."
    )
    return Fault("", f"There is no function {_short(name)}. {hint}")


def _against(schema: Mapping[str, Any] | None, arguments: Any) -> tuple[tuple[Fault, ...], tuple[str, ...]]:
    if not schema:
        return (), ()
    try:
        text = json.dumps(schema, sort_keys=True)
    except (TypeError, ValueError, RecursionError):
        return (), ("the schema is not JSON, so the arguments were not checked",)
    validator, notes = _validator(text)
    if validator is None:
        return (), notes
    faults: list[Fault] = []
    try:
        for error in validator.iter_errors(arguments):
            if len(faults) == MOST_FAULTS:
                faults.append(Fault("", "There is more. This is the beginning."))
                break
            faults.append(Fault(_path(error.instance_path), _short(error.message)))
    except ValueError as error:  # nested deeper than the library looks
        faults.append(Fault("", _short(f"The arguments cannot be checked: {error}")))
    return tuple(faults), notes


@lru_cache(maxsize=256)
def _validator(text: str) -> tuple[jsonschema_rs.Validator | None, tuple[str, ...]]:
    """Return what checks arguments against a schema, and what it leaves out. None if the schema cannot be used."""
    try:
        import jsonschema_rs
    except ModuleNotFoundError:
        raise ToolgramError(
            f"validation needs jsonschema-rs, which is not installed: {install_line('jsonschema_rs')}"
        ) from None
    schema, notes = json.loads(text), list[str]()
    for _ in range(MOST_PATTERNS):
        try:
            options = jsonschema_rs.RegexOptions()
            return jsonschema_rs.validator_for(schema, pattern_options=options, retriever=_refuse), tuple(notes)
        except jsonschema_rs.ValidationError as error:
            refused = _without_pattern(schema, error)
            if refused is None:
                return None, (f"the schema cannot be used, so the arguments were not checked: {_short(error.message)}",)
            schema, note = refused
            notes.append(note)
        except ValueError as error:
            return None, (f"the schema cannot be used, so the arguments were not checked: {_short(str(error))}",)
    return None, (f"the schema has more than {MOST_PATTERNS} patterns that are not supported",)


def _refuse(uri: str) -> Any:
    raise ValueError("schemas are not fetched")


def _without_pattern(schema: Any, error: jsonschema_rs.ValidationError) -> tuple[Any, str] | None:
    """Return the schema without the pattern that the library refuses, and a note; None if something else is wrong."""
    path = list(error.instance_path)
    if path[-1:] != ["pattern"] and path[-2:-1] != ["patternProperties"]:
        return None
    made = copy.deepcopy(schema)
    holder = made
    for step in path[:-1]:
        holder = holder[step]
    if not isinstance(holder, dict) or path[-1] not in holder:
        return None
    gone = holder.pop(path[-1])
    pattern = gone if path[-1] == "pattern" else path[-1]
    if not isinstance(pattern, str):
        return None
    return made, f"{_path(path[:-1])}: the pattern {_short(pattern)} is not supported and was not checked"


def _path(steps: Sequence[Any]) -> str:
    """Return a path as programmers write it."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)
    return _short(text.removeprefix("."))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_FAULT else f"{text[: LONGEST_FAULT - 3]}..."
