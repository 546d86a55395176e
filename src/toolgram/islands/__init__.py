"""Islands: the embedded languages that a machine enters and leaves.

A format's own language is regular; what it embeds is not.  Each module here reads one embedded language
incrementally, with an explicit stack, and knows nothing of machines or events.  All are one small protocol (`Island`)
and stand in one table by the name that a snapshot has for them, so that a stream needs one place for the open one.
One island may hold another: an envelope holds the scanner of its arguments.

* `json_table`, `json_values`: the JSON grammar at character level, passing the model's own bytes through,
* `json_strings`: JSON that was written as a JSON string,
* `json_envelope`: the JSON object around a call, read by ijson, whose events are the machine's triggers,
* `python_literals`: Python keyword arguments and literals, transcoded to JSON while they arrive,
* `python_repairs`: the same with a local slip, or with quotes inside a string,
* `tagged_values`: what stands between two markers, raw text or a literal,
* `literal_repairs`: such a literal where it is wrong in one place,
* `xml_values`: the same with sections and entities of XML,
* `notated_values`: JSON with quotes and keys of its own,
* `nested_elements`: elements inside elements, named after the members of a value,
* `error_recovery`: how far a broken value reaches.

A new kind of value is a module here, its row in the table of this file, and a tag in the vocabulary of machine files
(`VALUE_TYPES`). In a grammar, the rule of the value is the tag with `_value` behind it. Exports need a row in
`export.tagged_arguments`. What is no value needs a reader in `runtime` besides.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from toolgram.spec.vocabulary import value_type

if TYPE_CHECKING:
    from toolgram.tools.parameters import Place, Types


class OpenBrackets(NamedTuple):
    """What is open where a value breaks: the brackets, the quote of the string, and how to read on from there.

    With `in_list`, the first bracket is that of a list of calls; with `python`, parentheses and single quotes count.
    """

    stack: str
    quote: str = ""
    in_list: bool = False
    python: bool = False


class Island(Protocol):
    """One embedded value, being read. After `read`, the island's other attributes say what came of it."""

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos`, as far as possible; the new position. `final`: nothing follows `text`."""

    def open_brackets(self) -> OpenBrackets | None:
        """What is open, for error recovery; None if brackets say nothing."""

    def dump(self) -> list[Any]:
        """All that the next `read` depends on, as JSON-able data."""

    @classmethod
    def load(cls, data: Any) -> Island:
        """Load what `dump` returned. Raises ValueError for anything else."""


class Value(Island, Protocol):
    """An island that is the value of an argument: `out` is JSON that the last `read` has made certain."""

    out: str

    @property
    def done(self) -> bool:
        """The value is over."""

    @property
    def broken(self) -> bool:
        """The character at the returned position does not fit."""


class MarkedValue(Value, Protocol):
    """A value that ends at a marker: text, or a literal."""

    tail: int  # how many characters were taken after those that have written `out`

    @property
    def is_text(self) -> bool:
        """Everything that comes before the marker is text as it is."""

    @property
    def is_literal(self) -> bool:
        """A literal is certain, and passed on while it comes."""

    @property
    def in_string(self) -> bool:
        """No marker can be at the next character."""

    @property
    def odd(self) -> bool:
        """The value is not of a declared type."""

    @property
    def repairs(self) -> list[str]:
        """Kinds of anomalies: what a literal deviates in."""

    @property
    def unclosed(self) -> bool:
        """A literal is certain, and not whole."""

    def finish(self) -> str:
        """The JSON that the closing marker makes certain."""


_ISLANDS = {  # loaded when first needed: most formats need one or two
    "json": "json_values.JsonScanner",
    "json_value": "json_item.JsonValue",
    "json_string": "json_strings.JsonStringScanner",
    "envelope": "json_envelope.Envelope",
    "python": "python_literals.PythonScanner",
    "repaired_python": "python_repairs.RepairingPythonScanner",
    "literal": "literal_repairs.LiteralScanner",
    "tagged": "tagged_values.TaggedValue",
    "xml": "xml_values.XmlValue",
    "notated": "notated_values.NotatedScanner",
    "elements": "nested_elements.ElementsScanner",
    "recovery": "error_recovery.ErrorRecovery",
}
_NAMES = {path.partition(".")[2]: name for name, path in _ISLANDS.items()}


@cache
def island_class(name: str) -> Any:
    """The class of an island. Raises KeyError where there is none of this name."""
    module, _, name = _ISLANDS[name].partition(".")
    return getattr(import_module(f"toolgram.islands.{module}"), name)


def value_kind(typed: str, alone: bool) -> str:
    """The name of the island for a value: by its state's tag, and whether it ends by itself or else by a marker."""
    kind = value_type(typed)
    return kind.alone or "json_value" if alone else kind.to_marker or "tagged"


def value_island(
    kind: str, typed: str, types: Types, notation: tuple[str, ...], key: str = "", place: Place | None = None
) -> Value:
    """A value of a kind. `typed` is its state's tag, `types` are those that its parameter may have, None if it is
    not declared, `key` is the parameter's name and `place` all that is declared for it, and `notation` the format's."""
    island = island_class(kind)
    if kind == "tagged":
        value: Value = island(_told(typed, types), typed == "json", typed == "trimmed")
    elif kind == "xml":
        value = island(types)
    elif kind == "elements":
        value = island(notation, key, place) if place is not None else island(notation, key)
    else:
        value = island(notation, types) if kind == "notated" else island()
    return value


def plain_value(kind: str, typed: str, types: Types, raw: str) -> str | None:
    """The JSON of a whole value between markers, where that is certain at once; else None, and its island reads it."""
    if kind != "tagged" or typed == "json":
        return None
    found: str | None = island_class(kind).plain(raw, _told(typed, types), typed == "trimmed")
    return found


def read_whole(value: Value, text: str, pos: int) -> tuple[int, str]:
    """Read a value to its end, or to that of `text`: the new position, and its JSON. Some stop on the way."""
    written = []
    while pos < len(text) and not (value.done or value.broken):
        end = value.read(text, pos, True)
        written.append(value.out)
        if end == pos:
            break
        pos = end
    return pos, "".join(written)


def _told(typed: str, types: Types) -> Types:
    """The types of a value whose markers may say whether it is text. What is declared goes before that."""
    if typed == "text":
        return types if types and "string" not in types else frozenset({"string"})
    return types if types or typed != "json" else frozenset()


def dump_island(island: Island | None) -> list[Any] | None:
    """An island as JSON-able data, its name first."""
    return None if island is None else [_NAMES[type(island).__name__], island.dump()]


def load_island(data: Any) -> Island | None:
    """The inverse of `dump_island`. Raises ValueError for anything else."""
    if data is None:
        return None
    name, dumped = checked(data, tuple(_ISLANDS), list)
    island: Island = island_class(name).load(dumped)
    return island


def dump_types(types: Types) -> list[str] | None:
    """The types of a value as JSON-able data."""
    return None if types is None else sorted(types)


def load_types(data: list[Any] | None) -> Types:
    """The inverse of `dump_types`. Raises ValueError if one is no string."""
    return None if data is None else frozenset(checked(data, *[str] * len(data)))


def checked(data: Any, *kinds: Any) -> list[Any]:
    """The values of a dumped list, each of its kind: a type, None, or a value out of a tuple or range.

    A tuple holds what a value may be, types or values. Raises ValueError where one does not fit.
    """
    if type(data) is not list or len(data) != len(kinds):
        raise ValueError(f"expected a list of {len(kinds)}")
    for value, kind in zip(data, kinds, strict=True):
        if not _is_of(value, kind):
            raise ValueError(f"a {type(value).__name__} or its value does not belong there")
    return data


def _is_of(value: Any, kind: Any) -> bool:
    if isinstance(kind, tuple):
        return any(_is_of(value, one) for one in kind)
    if isinstance(kind, range):
        return type(value) is int and value in kind
    if isinstance(kind, type):
        return type(value) is kind
    return type(value) is type(kind) and bool(value == kind)
