"""Read one row of a log: find its output text and its options, and parse the message.

Strategy: a row is looked up by dotted paths and answered with plain data. A row that cannot be read is answered with
the reason, so that answers stay aligned with the input. What rows repeat is read once: the tools of a request, and
formats by name.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import toolgram
from toolgram.adapters.reading import evidence_in
from toolgram.bulk.errors import BadRow
from toolgram.bulk.json_rows import is_exact, read_row, read_row_exactly
from toolgram.call_ids import call_ids_of
from toolgram.errors import ToolgramError, UnknownFormat
from toolgram.formats import Format, get_format
from toolgram.message import Message
from toolgram.spec.as_json import dump
from toolgram.tools.reading import Tools, read_tools

_ABSENT: Any = object()


@dataclasses.dataclass(frozen=True)
class Columns:
    """Dotted paths of the columns that say how to read a row. Without a value, the options of the run hold."""

    tools: str | None = None
    prefix: str | None = None
    format: str | None = None
    finish_reason: str | None = None

    def named(self) -> list[str]:
        """Return the columns that are given."""
        return [path for path in (self.tools, self.prefix, self.format, self.finish_reason) if path is not None]


@dataclasses.dataclass(frozen=True)
class RowOptions:
    """How to read the rows. `field` is the dotted path of the output text, `keep` are columns to pass on.

    `format` may be None if each row names its own (`columns.format`): one of `own`, or one that ships.
    """

    field: str
    format: Format | None = None
    tools: Sequence[Any] | None = None
    prefix: str | None = None
    finish_reason: str | None = None
    strict: bool = False
    keep: tuple[str, ...] = ()
    columns: Columns = Columns()
    validate: bool = False
    own: Mapping[str, Format] = dataclasses.field(default_factory=dict)

    def paths(self) -> list[str]:
        """Return every path that is looked up in a row."""
        return [self.field, *self.keep, *self.columns.named()]

    def fingerprint(self) -> dict[str, Any]:
        """Return what the answers depend on, as JSON-able data."""
        said = {**vars(self), "keep": list(self.keep), "columns": self.columns.named() and vars(self.columns)}
        said["format"] = None if self.format is None else _digest(self.format)
        said["own"] = {name: _digest(fmt) for name, fmt in self.own.items()}
        return {"toolgram": toolgram.__version__, **said}


def _digest(fmt: Format) -> str:
    return hashlib.sha256(json.dumps(dump(fmt.spec), sort_keys=True).encode()).hexdigest()


class Answer(NamedTuple):
    """The answer to one row: the columns to keep of it, and a message or the reason why there is none."""

    kept: dict[str, Any]
    message: Message | None
    error: str = ""
    validation: list[dict[str, Any]] | None = None  # if it was asked for


class RowReader:
    """Reads rows with the options of a run. Made once per process. `found` are the named columns that some row has."""

    def __init__(self, options: RowOptions) -> None:
        self._options = options
        self._tools: Any = read_tools(options.tools)  # read once; a parser takes them unchanged
        self._field = _lookup(options.field)
        self._keep = [(path, _lookup(path, None)) for path in options.keep]
        self._named = [*self._keep, *((path, _lookup(path, None)) for path in options.columns.named())]
        self.found: set[str] = set()
        columns = options.columns
        self._own_tools, self._own_prefix = _lookup(columns.tools), _lookup(columns.prefix)
        self._own_format, self._own_reason = _lookup(columns.format), _lookup(columns.finish_reason)

    def answer_line(self, line: bytes) -> Answer:
        """Return the answer to a row of JSON lines. Never raises on any line."""
        try:
            row = read_row(line)
        except BadRow as error:
            return Answer({}, None, str(error))
        answer = self.answer(row)
        if answer.kept and not all(map(is_exact, answer.kept.values())):
            exact = read_row_exactly(line)
            answer = answer._replace(kept={path: find(exact) for path, find in self._keep})
        return answer

    def answer(self, row: Any) -> Answer:
        """Return the answer to a row that is a mapping. Never raises on any row."""
        kept: dict[str, Any] = {}
        try:
            if not isinstance(row, dict):
                raise BadRow(f"a row must be an object, not {_kind(row)}")
            kept |= {path: find(row) for path, find in self._keep}
            self.found.update(path for path, find in self._named if path not in self.found and find(row) is not None)
            field, value = self._options.field, self._field(row)
            if value is _ABSENT:
                raise BadRow(f"no field {field!r}; the row has {', '.join(map(repr, list(row)[:20])) or 'none'}")
            if not isinstance(value, str):
                raise BadRow(f"field {field!r} is {_kind(value)}, not text")
            tools = self._tools_of(self._own_tools(row))
            message = self._message(row, value, tools)
            return Answer(kept, message, "", checked_calls(message, tools) if self._options.validate else None)
        except BadRow as error:
            return Answer(kept, None, str(error))

    def _message(self, row: dict[str, Any], text: str, tools: Any) -> Message:
        options = self._options
        fmt = self._format(self._own_format(row))
        if fmt is None:
            raise BadRow(f"field {options.columns.format!r} names no format, and no other was given: --format NAME")
        prefix = _text_or(self._own_prefix(row), options.prefix, options.columns.prefix)
        said = _text_or(self._own_reason(row), None, options.columns.finish_reason)
        reason = options.finish_reason if said is None else evidence_in(said)
        return fmt.parse(text, tools, prefix, reason, options.strict, call_ids_of(text, fmt.spec.call_ids))

    def _format(self, name: Any) -> Format | None:
        if name is _ABSENT or name is None:
            return self._options.format
        said = _text_or(name, "", self._options.columns.format) or ""
        try:
            return self._options.own.get(said) or get_format(said)
        except UnknownFormat as error:
            raise BadRow(f"{error.problem}; one that does not ship is in FILE.formats, beside its rows") from None

    def _tools_of(self, tools: Any) -> Any:
        if tools is _ABSENT or tools is None:
            return self._tools
        column = self._options.columns.tools
        try:
            return _tools_in(tools if isinstance(tools, str) else json.dumps(tools))
        except (ToolgramError, TypeError, ValueError, RecursionError) as error:
            raise BadRow(f"field {column!r}: {error}") from None


@lru_cache(maxsize=256)
def _tools_in(text: str) -> Tools:
    """Return the tools in JSON text. They are cached, because most rows of a log offer the same ones."""
    return read_tools(json.loads(text))


def _lookup(path: str | None, default: Any = _ABSENT) -> Callable[[Any], Any]:
    """Return a function that finds the value at a dotted path. Digits index lists, and a key may contain the dots."""
    if path is None:
        return lambda row: default
    if "." not in path:
        return lambda row: row.get(path, default)
    steps = path.split(".")

    def find(row: Mapping[str, Any]) -> Any:
        if path in row:
            return row[path]
        value: Any = row
        for step in steps:
            if isinstance(value, dict) and step in value:
                value = value[step]
            elif isinstance(value, list) and step.isdecimal() and int(step[:18]) < len(value):
                value = value[int(step[:18])]
            else:
                return default
        return value

    return find


def _text_or(value: Any, default: str | None, column: str | None) -> str | None:
    if value is _ABSENT or value is None:
        return default
    if not isinstance(value, str):
        raise BadRow(f"field {column!r} is {_kind(value)}, not text")
    return value


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else f"a {type(value).__name__}")


def checked_calls(message: Message, tools: Any) -> list[dict[str, Any]]:
    """Return the calls of a message, checked against the schemas of their tools, as plain data."""
    return [
        {"id": call.id, "name": call.name, "valid": call.is_valid, "faults": [fault._asdict() for fault in call.faults],
         "notes": list(call.notes), "reply": call.reply or None}
        for call in message.validate(tools)
    ]  # fmt: skip


# The columns of a message that are lists, and the fields of their items.
ITEMS: dict[str, tuple[str, ...]] = {
    "tool_calls": ("id", "name", "arguments", "status"),
    "malformed": ("index", "id", "name", "arguments", "source", "start"),
    "anomalies": ("kind", "start", "text", "call", "why"),
}
MESSAGE_COLUMNS = ("content", "reasoning", *ITEMS, "finish_reason")
ADDED = (*MESSAGE_COLUMNS, "error")  # the columns of an answer


def message_columns(message: Message | None) -> dict[str, Any]:
    """Return a message as columns of plain data of the same types for every row; without one, they are empty."""
    if message is None:
        return {name: [] if name in ITEMS else None for name in MESSAGE_COLUMNS}
    columns = message.to_dict()
    for name, fields in ITEMS.items():
        columns[name] = [{field: item.get(field) for field in fields} for item in columns[name]]
    return columns
