"""Islands: the embedded languages that a machine enters and leaves.

A format's own language is regular; the languages that it embeds are not. Each module here reads one of them
incrementally, with an explicit stack, and knows nothing of machines or events. All follow one small protocol
(`Island`), so a stream has one slot for the open island. One may hold another: an envelope holds the scanner of its
arguments.

* `json_table`, `json_values`: JSON at character level; the model's own bytes pass through,
* `json_item`, `json_strings`: a JSON value that no marker ends; JSON written as a JSON string,
* `json_envelope`: the JSON object around a call, whose tokens are the machine's triggers, written as ijson does,
* `python_literals`: Python keyword arguments and literals, transcoded to JSON as they arrive,
* `json_repairs`, `python_repairs`, `literal_repairs`: the same with local mistakes,
* `tagged_values`, `escaped_values`, `escapes`: raw or escaped text or a literal between two markers; how it is escaped,
* `notated_values`, `nested_elements`: a format's own notation of JSON; elements named after the members of a value,
* `error_recovery`: where a broken value ends.

A new kind of value needs a module here, a row in the table of this file, a tag in the vocabulary of machine files
(`VALUE_TYPES`), and a row in `export.tagged_arguments`. In a grammar, its rule is the tag with `_value` at the end. An
island that is not a value also needs a reader in `runtime`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from toolgram.spec.vocabulary import value_type

if TYPE_CHECKING:
    from toolgram.tools.parameters import Place, Types


class OpenBrackets(NamedTuple):
    """The brackets and the quote that are open where a value breaks. With `in_list`, the first bracket opens a list of
    calls; with `python`, parentheses and single quotes count, and with `single_quotes` these in JSON."""

    stack: str
    quote: str = ""
    in_list: bool = False
    python: bool = False
    single_quotes: bool = False


class Island(Protocol):
    """An embedded value that is being read. After `read`, the island's other attributes hold the result."""

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on from `pos` as far as possible and return the new position. `final`: nothing follows `text`."""

    def open_brackets(self) -> OpenBrackets | None:
        """Return what is open, for error recovery; None if brackets say nothing."""

    def dump(self) -> list[Any]:
        """Return all that the next `read` depends on, as JSON-able data."""

    @classmethod
    def load(cls, data: Any) -> Island:
        """Load what `dump` returned."""


class Value(Island, Protocol):
    """An island that is the value of an argument: `out` is the JSON that the last `read` made certain."""

    out: str

    @property
    def done(self) -> bool:
        """True if the value is over."""

    @property
    def broken(self) -> bool:
        """True if the character at the returned position does not fit."""


class MarkedValue(Value, Protocol):
    """A value that ends at a marker: text, or a literal."""

    tail: int  # characters taken after those that wrote `out`

    @property
    def is_text(self) -> bool:
        """True if everything before the marker is plain text."""

    @property
    def is_literal(self) -> bool:
        """True if the value is certainly a literal, which is passed on as it comes."""

    @property
    def in_string(self) -> bool:
        """True if the next character cannot begin a marker."""

    @property
    def odd(self) -> bool:
        """True if the value does not have a declared type."""

    @property
    def repairs(self) -> list[str]:
        """The kinds of anomalies in the literal."""

    @property
    def unclosed(self) -> bool:
        """True if a literal is certain and not whole."""

    def finish(self) -> str:
        """Return the JSON that the closing marker makes certain."""


_ISLANDS = {  # loaded when first needed: most formats need one or two
    "json": "json_values.JsonScanner",
    "json_value": "json_item.JsonValue",
    "json_string": "json_strings.JsonStringScanner",
    "envelope": "json_envelope.Envelope",
    "python": "python_literals.PythonScanner",
    "repaired_python": "python_repairs.RepairingPythonScanner",
    "literal": "literal_repairs.LiteralScanner",
    "tagged": "tagged_values.TaggedValue",
    "escaped": "escaped_values.EscapedValue",
    "notated": "notated_values.NotatedScanner",
    "elements": "nested_elements.ElementsScanner",
    "recovery": "error_recovery.ErrorRecovery",
}
_NAMES = {path.partition(".")[2]: name for name, path in _ISLANDS.items()}


@cache
def island_class(name: str) -> Any:
    """Return the class of an island. Raise KeyError for an unknown name."""
    module, _, name = _ISLANDS[name].partition(".")
    return getattr(import_module(f"toolgram.islands.{module}"), name)


def value_kind(typed: str, alone: bool) -> str:
    """Return the name of the island for the tag of a state. `alone`: the value ends without a marker."""
    kind = value_type(typed)
    return kind.alone or "json_value" if alone else kind.to_marker or "tagged"


def value_island(
    kind: str, typed: str, types: Types, notation: tuple[str, ...], key: str = "", place: Place | None = None
) -> Value:
    """Make the island for a value. `typed` is its state's tag, `types` are those that its parameter may have (None:
    undeclared), `key` is its parameter, `place` the declaration of that, and `notation` the format's."""
    island = island_class(kind)
    if kind == "tagged":
        value: Value = island(_declared_types(typed, types), typed == "json", typed == "trimmed")
    elif kind == "escaped":
        value = island(types, typed)
    elif kind == "elements":
        value = island(notation, key, place) if place is not None else island(notation, key)
    else:
        value = island(notation, types) if kind == "notated" else island()
    return value


def plain_value(kind: str, typed: str, types: Types, raw: str) -> str | None:
    """Return the JSON of a whole value between markers, or None if only its island can decide it."""
    if kind != "tagged" or typed == "json":
        return None
    found: str | None = island_class(kind).plain(raw, _declared_types(typed, types), typed == "trimmed")
    return found


def read_whole(value: Value, text: str, pos: int) -> tuple[int, str]:
    """Read a value to its end or that of `text`. Return the new position and the JSON."""
    written = []
    while pos < len(text) and not (value.done or value.broken):
        end = value.read(text, pos, True)
        written.append(value.out)
        if end == pos:
            break
        pos = end
    return pos, "".join(written)


def _declared_types(typed: str, types: Types) -> Types:
    """Return the types of a value whose markers may say that it is text; a declaration takes precedence."""
    if typed == "text":
        return types if types and "string" not in types else frozenset({"string"})
    return types if types or typed != "json" else frozenset()


def dump_island(island: Island | None) -> list[Any] | None:
    """Return an island as JSON-able data, beginning with its name."""
    return None if island is None else [_NAMES[type(island).__name__], island.dump()]


def load_island(data: Any) -> Island | None:
    """Load what `dump_island` returned."""
    if data is None:
        return None
    name, dumped = data
    return cast(Island, island_class(name).load(dumped))
