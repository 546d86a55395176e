"""How values are written: the words, the separators, and the texts between their quotes.

Strategy: the notations differ little, so each is one row of a table: a `Notation`. The kinds of values without a limit
are rules (`BASE`) that all values of a grammar share. The text of a schema has no quotes and no escapes; this module
adds those of its notation. A format's own notation has no escapes, so a text that contains a quote cannot be written;
its rules are written with each value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from json.encoder import encode_basestring
from typing import Any

from toolgram.export import expressions as ex
from toolgram.export.ecmascript import ALL
from toolgram.export.markers import NO_TOKENS, Tokens

_HEX = ex.Class(((48, 57), (65, 70), (97, 102)))
MOST_IN_NAME = 64  # characters of a name without quotes
KINDS = ("string", "number", "boolean", "null", "array", "object")


@dataclass(frozen=True, slots=True)
class Notation:
    """How a language writes values."""

    name: str  # the prefix of the names of its rules
    true: str
    false: str
    null: str
    separator: ex.Expr  # between two items or members
    colon: ex.Expr
    edge: ex.Expr  # directly inside the brackets
    constant: Callable[[Any], ex.Expr]
    quote: Callable[[ex.Expr], ex.Expr]  # the expression of a text, as a value
    bare_name: Callable[[str], ex.Expr] | None = None  # the name of a member, if it needs no quotes
    bare: ex.Class | None = None  # the characters of a name without quotes
    kinds: Mapping[str, ex.Expr] = field(default_factory=dict)  # its rules, if they are not among those of all formats

    def ref(self, kind: str) -> ex.Ref:
        """Return the rule for all values of a kind."""
        name = f"{self.name}_{kind}"
        found = self.kinds.get(name)
        return found if isinstance(found, ex.Ref) else ex.Ref(name, "")

    def member_name(self, name: str) -> ex.Expr:
        """Return the name of a member."""
        return (self.bare_name or self.constant)(name)

    def any_name(self) -> ex.Expr:
        """Return the name of any member."""
        string = self.ref("string")
        return ex.choice(ex.Repeat(self.bare, 1, MOST_IN_NAME, is_length=True), string) if self.bare else string

    def member(self, name: ex.Expr, value: ex.Expr) -> ex.Expr:
        """Return a member of an object. The colon follows each form of a name, so that a lexer reads both as one."""
        if not isinstance(name, ex.Choice):
            return ex.seq(name, self.colon, value)
        return ex.seq(ex.choice(*(ex.seq(each, self.colon) for each in name.options)), value)


# --- texts --------------------------------------------------------------------------------------------------------

# How the characters that cannot be between quotes are written there, by their codes.
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)}
_JSON_ESCAPES |= {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_PYTHON_CONTROL = {code: f"\\x{code:02x}" for code in range(32)} | {9: "\\t", 10: "\\n", 13: "\\r"}
_PYTHON_ESCAPES = {quote: _PYTHON_CONTROL | {ord(quote): "\\" + quote, 92: "\\\\"} for quote in "\"'"}


def _escaped(expr: ex.Expr, escapes: Mapping[int, str], known: dict[ex.Expr, ex.Expr]) -> ex.Expr:
    """Return a text as it is written between quotes."""
    if expr in known:
        return known[expr]
    match expr:
        case ex.Lit():
            found: ex.Expr = ex.Lit(expr.text.translate(escapes))
        case ex.Class():
            inside = [code for code in escapes if any(low <= code <= high for low, high in expr.ranges)]
            plain = ex.without_characters(expr.ranges, [*escapes, *range(0xD800, 0xE000)] if inside else escapes)
            last: dict[str, str] = {}  # escapes that differ only in their last character are one set of characters
            for each in map(escapes.__getitem__, inside):
                last[each[:-1]] = last.get(each[:-1], "") + each[-1]
            written = (ex.seq(ex.Lit(rest), ex.class_of(each)) for rest, each in last.items())
            found = ex.choice(*([ex.Class(plain)] if plain else []), *written)
        case _:
            found = ex.rebuilt(expr, lambda each: _escaped(each, escapes, known))
    known[expr] = found
    return found


def _plain(escapes: Iterable[int]) -> ex.Class:
    return ex.Class(ex.complement((code, code) for code in escapes))


def _in_quotes(text: ex.Expr, quote: str, escapes: Mapping[int, str], any_escape: ex.Expr) -> ex.Expr:
    """Return a text in quotes: with any escape if it has no pattern, else with those that its characters need."""
    if isinstance(text, ex.Repeat) and text.body == ALL:
        inner: ex.Expr = ex.Repeat(ex.choice(_plain(escapes), any_escape), text.low, text.high, text.is_length)
    else:
        inner = _escaped(text, escapes, {})
    return ex.seq(ex.Lit(quote), inner, ex.Lit(quote))


_PYTHON_ESCAPE = ex.seq(ex.Lit("\\"), ex.Ref("python_escaped"))
_IN_JSON = ('"', _JSON_ESCAPES, ex.Ref("json_escape"))
_IN_DOUBLE, _IN_SINGLE = ((quote, escapes, _PYTHON_ESCAPE) for quote, escapes in _PYTHON_ESCAPES.items())


def _quoted(*ways: tuple[str, Mapping[int, str], ex.Expr]) -> Callable[[ex.Expr], ex.Expr]:
    """Return the function that writes a text as a value, in any of these quotes."""
    return lru_cache(maxsize=256)(lambda text: ex.Quoted(ex.choice(*(_in_quotes(text, *way) for way in ways))))


_json_quoted = _quoted(_IN_JSON)
_python_quoted = _quoted(_IN_DOUBLE, _IN_SINGLE)
_mixed_quoted = _quoted(_IN_JSON, _IN_SINGLE)


def python_text(value: Any) -> str:
    """Return a JSON value as Python writes it, with double quotes."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        parts = (char if char.isprintable() else char.encode("unicode_escape").decode() for char in escaped)
        return f'"{"".join(parts)}"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(python_text(each) for each in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{python_text(key)}: {python_text(each)}' for key, each in value.items())}}}"
    return repr(value)


def composed(value: Any, notation: Notation, leaf: Callable[[Any], ex.Expr]) -> ex.Expr:
    """Return one value, with the blanks of its notation; `leaf` writes what is neither a list nor an object."""
    if isinstance(value, str):
        return leaf(value)
    if isinstance(value, list | tuple):
        return ex.seq(ex.Lit("["), _listed([composed(each, notation, leaf) for each in value], notation), ex.Lit("]"))
    if isinstance(value, Mapping):
        named = [(notation.member_name(key), composed(each, notation, leaf)) for key, each in value.items()]
        return ex.seq(
            ex.Lit("{"), _listed([ex.seq(key, notation.colon, each) for key, each in named], notation), ex.Lit("}")
        )
    return leaf(value)


def _listed(parts: Sequence[ex.Expr], notation: Notation) -> ex.Expr:
    if not parts:
        return ex.EMPTY
    found = [parts[0], *(each for part in parts[1:] for each in (notation.separator, part))]
    return ex.seq(notation.edge, *found, notation.edge)


def _python_constant(value: Any) -> ex.Expr:
    """Return one value, in either kind of quotes."""
    return ex.choice(ex.Lit(python_text(value)), ex.Lit(repr(value)))


def _json_constant(value: Any) -> ex.Expr:
    return composed(value, JSON, _words_constant)


def _words_constant(value: Any) -> ex.Expr:
    return ex.Lit(encode_basestring(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


_SPACED_COMMA, _SPACED_COLON = ex.seq(ex.Lit(","), ex.Blanks()), ex.seq(ex.Lit(":"), ex.Blanks())
JSON = Notation(
    "json", "true", "false", "null", _SPACED_COMMA, _SPACED_COLON, ex.Blanks(), _json_constant, _json_quoted
)  # fmt: skip
BLANK = ex.optional(ex.Lit(" "))  # in Python, before a value or a key
_COMMA, _COLON = ex.seq(ex.Lit(","), BLANK), ex.seq(ex.Lit(":"), BLANK)
PYTHON = Notation("python", "True", "False", "None", _COMMA, _COLON, ex.EMPTY, _python_constant, _python_quoted)
# Python with JSON's words, for templates that print values as JSON.
WORDS = Notation("words", "true", "false", "null", _COMMA, _COLON, ex.EMPTY, _words_constant, _python_quoted)
# Python together with JSON: text in double quotes is JSON, so that an engine reads one string and not two.
MIXED = Notation("mixed", "True", "False", "None", _COMMA, _COLON, ex.EMPTY, _python_constant, _mixed_quoted)
_DIGITS = ex.Class(((48, 57),))
_WHOLE = ex.seq(ex.optional(ex.Lit("-")), ex.choice(ex.Lit("0"), ex.seq(ex.Class(((49, 57),)), ex.Star(_DIGITS))))


def kinds_of(notation: Notation) -> dict[str, ex.Expr]:
    """Return the rules for values of every kind."""
    ref = notation.ref
    items = ex.seq(ref("any"), ex.Star(ex.seq(notation.separator, ref("any"))))
    members = ex.seq(ref("pair"), ex.Star(ex.seq(notation.separator, ref("pair"))))
    edge = notation.edge
    return {
        "integer": _WHOLE,
        "number": ex.seq(
            _WHOLE,
            ex.optional(ex.seq(ex.Lit("."), _DIGITS, ex.Star(_DIGITS))),
            ex.optional(ex.seq(ex.class_of("Ee"), ex.optional(ex.class_of("+-")), ex.Repeat(_DIGITS, 1, 3))),
        ),
        "boolean": ex.Choice((ex.Lit(notation.true), ex.Lit(notation.false))),
        "null": ex.Lit(notation.null),
        "array": ex.seq(ex.Lit("["), edge, ex.optional(ex.seq(items, edge)), ex.Lit("]")),
        "object": ex.seq(ex.Lit("{"), edge, ex.optional(ex.seq(members, edge)), ex.Lit("}")),
        "pair": notation.member(notation.any_name(), ref("any")),
        "any": ex.Choice(tuple(ref(kind) for kind in KINDS)),
    }


_HIGH = ex.Class(((48, 57), (65, 67), (69, 70), (97, 99), (101, 102)))  # with D, half a character might follow
_LOW = ex.seq(ex.Class(((68, 68), (100, 100))), ex.Class(((48, 55),)))
BASE: dict[str, ex.Expr] = {
    f"{notation.name}_{kind}": body
    for notation in (JSON, PYTHON, WORDS, MIXED)
    for kind, body in kinds_of(notation).items()
}
_JSON_ESCAPED = (ex.class_of('"/\\bfnrt'), ex.seq(ex.Lit("u"), _HEX, _HEX, _HEX, _HEX))
# The escapes of Python, and those of regular expressions, which keep their backslash. It is also kept before any other
# character, but each token that may follow costs an engine time; `\\\\` writes it there. Octals and \N are not written.
_PYTHON_ESCAPED = (
    ex.class_of("abfnrtv\\\"'dswDSWB.*+?()[]{}|^$/-"),
    ex.seq(ex.Lit("x"), _HEX, _HEX),
    ex.seq(ex.Lit("u"), ex.choice(ex.seq(_HIGH, _HEX), _LOW), _HEX, _HEX),
)


def _right_recursive(name: str, quote: str, plain: ex.Expr, escaped: Iterable[ex.Expr]) -> ex.Expr:
    """Return the rule for the text after an opening quote, with its escapes.

    Escapes have no rule of their own, because that is slow, above all if several strings share it: an engine does not
    know how it continues.
    """
    steps = (plain, *(ex.seq(ex.Lit("\\"), each) for each in escaped))
    return ex.Choice((ex.Lit(quote), *(ex.seq(each, ex.Ref(name)) for each in steps)))


_DOUBLE, _SINGLE = ex.seq(ex.Lit('"'), ex.Ref("python_double")), ex.seq(ex.Lit("'"), ex.Ref("python_single"))
# Strings by right recursion, which engines read fastest; `_rest` is the text after the opening quote.
BASE |= {
    "json_string": ex.seq(ex.Lit('"'), ex.Ref("json_rest")),
    "json_rest": _right_recursive("json_rest", '"', _plain(_JSON_ESCAPES), _JSON_ESCAPED),
    "json_escape": ex.seq(ex.Lit("\\"), ex.Ref("json_escaped")),
    "json_escaped": ex.choice(*_JSON_ESCAPED),
    "python_string": ex.choice(_DOUBLE, _SINGLE),
    "words_string": ex.Ref("python_string"),
    "mixed_string": ex.choice(ex.Ref("mixed_double"), ex.Ref("mixed_single")),
    "mixed_double": ex.Ref("json_string"),
    "mixed_single": _SINGLE,
    "python_escaped": ex.choice(*_PYTHON_ESCAPED),
}  # fmt: skip
for _name, _quote in (("python_double", '"'), ("python_single", "'")):
    BASE[_name] = _right_recursive(_name, _quote, _plain(_PYTHON_ESCAPES[_quote]), _PYTHON_ESCAPED)


# --- a format's own notation -----------------------------------------------------------------------------------------

_BARE = ex.Class(((45, 46), (48, 57), (65, 90), (95, 95), (97, 122)))  # characters of names without quotes
_fits_bare = re.compile(r"[^:,{}\[\]\"'\s<]+").fullmatch


@lru_cache(maxsize=64)
def notated(opening: str, closing: str, markers: tuple[str, ...] = (), tokens: Tokens = NO_TOKENS) -> Notation:
    """Return the notation of a format with its own quotes, in which texts have no escapes and names have no quotes.

    `markers` close a call in which the quote of a text is missing, so no text contains one.
    """
    marks = (opening, closing, *markers)
    words = tuple(dict.fromkeys(filter(tokens.is_text, marks)))

    def text(within: ex.Expr | None) -> ex.Expr:
        return ex.seq(tokens.written(opening), tokens.text_until(closing, words, within))

    def quoted(value: str) -> ex.Expr:
        if any(mark in value for mark in marks):
            return ex.NOTHING
        return ex.seq(tokens.written(opening), ex.Lit(value), tokens.written(closing))

    def name(value: str) -> ex.Expr:
        return ex.Lit(value) if _fits_bare(value) else quoted(value)

    def leaf(value: Any) -> ex.Expr:
        return quoted(value) if isinstance(value, str) else null if value is None else ex.Lit(json.dumps(value))

    def constant(value: Any) -> ex.Expr:
        return composed(value, made, leaf)

    null = ex.choice(ex.Lit("null"), ex.Lit("None"))  # a template that prints a value writes it as Python does
    kinds: dict[str, ex.Expr] = {}
    made = Notation(
        "notated", "true", "false", "null", ex.Lit(","), ex.Lit(":"), ex.EMPTY, constant, text, name, _BARE, kinds
    )
    kinds |= {f"notated_{kind}": ex.Ref(f"json_{kind}") for kind in ("integer", "number", "boolean")}
    kinds |= {f"notated_{kind}": body for kind, body in kinds_of(made).items() if f"notated_{kind}" not in kinds}
    kinds["notated_string"], kinds["notated_null"] = text(None), null
    return made
