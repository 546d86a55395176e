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
from typing import Any

from toolgram.export.ecmascript import ALL
from toolgram.export.expressions import (
    EMPTY,
    NOTHING,
    Blanks,
    Choice,
    Class,
    Expr,
    Lit,
    Quoted,
    Ref,
    Repeat,
    Star,
    choice,
    class_of,
    complement,
    optional,
    rebuilt,
    seq,
    without_characters,
)
from toolgram.export.markers import NO_TOKENS, Tokens

_HEX = Class(((48, 57), (65, 70), (97, 102)))
MOST_IN_NAME = 64  # characters of a name without quotes
KINDS = ("string", "number", "boolean", "null", "array", "object")


@dataclass(frozen=True, slots=True)
class Notation:
    """How a language writes values."""

    name: str  # the prefix of the names of its rules
    true: str
    false: str
    null: str
    separator: Expr  # between two items or members
    colon: Expr
    edge: Expr  # directly inside the brackets
    constant: Callable[[Any], Expr]
    quote: Callable[[Expr], Expr]  # the expression of a text, as a value
    bare_name: Callable[[str], Expr] | None = None  # the name of a member, if it needs no quotes
    bare: Class | None = None  # the characters of a name without quotes
    kinds: Mapping[str, Expr] = field(default_factory=dict)  # its rules, if they are not among those of all formats

    def ref(self, kind: str) -> Ref:
        """Return the rule for all values of a kind."""
        found = self.kinds.get(f"{self.name}_{kind}")
        return found if isinstance(found, Ref) else Ref(f"{self.name}_{kind}")

    def member_name(self, name: str) -> Expr:
        """Return the name of a member."""
        return (self.bare_name or self.constant)(name)

    def any_name(self) -> Expr:
        """Return the name of any member."""
        string = self.ref("string")
        return choice(Repeat(self.bare, 1, MOST_IN_NAME, is_length=True), string) if self.bare else string

    def member(self, name: Expr, value: Expr) -> Expr:
        """Return a member of an object. The colon follows each form of a name, so that a lexer reads both as one."""
        names = name.options if isinstance(name, Choice) else (name,)
        return seq(choice(*(seq(each, self.colon) for each in names)), value)


# --- texts --------------------------------------------------------------------------------------------------------

# How the characters that cannot be between quotes are written there, by their codes.
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in range(32)}
_JSON_ESCAPES |= {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
_PYTHON_CONTROL = {code: f"\\x{code:02x}" for code in range(32)} | {9: "\\t", 10: "\\n", 13: "\\r"}
_PYTHON_ESCAPES = {quote: _PYTHON_CONTROL | {ord(quote): "\\" + quote, 92: "\\\\"} for quote in "\"'"}


def _escaped(expr: Expr, escapes: Mapping[int, str], known: dict[Expr, Expr]) -> Expr:
    """Return a text as it is written between quotes."""
    if expr in known:
        return known[expr]
    match expr:
        case Lit():
            found: Expr = Lit(expr.text.translate(escapes))
        case Class():
            inside = [code for code in escapes if any(low <= code <= high for low, high in expr.ranges)]
            plain = without_characters(expr.ranges, [*escapes, *range(0xD800, 0xE000)] if inside else escapes)
            last: dict[str, str] = {}  # escapes that differ only in their last character are one set of characters
            for each in map(escapes.__getitem__, inside):
                last[each[:-1]] = last.get(each[:-1], "") + each[-1]
            written = (seq(Lit(rest), class_of(each)) for rest, each in last.items())
            found = choice(*([Class(plain)] if plain else []), *written)
        case _:
            found = rebuilt(expr, lambda each: _escaped(each, escapes, known))
    known[expr] = found
    return found


def _plain(escapes: Iterable[int]) -> Class:
    return Class(complement((code, code) for code in escapes))


def _in_quotes(text: Expr, quote: str, escapes: Mapping[int, str], any_escape: Expr) -> Expr:
    """Return a text in quotes: with any escape if it has no pattern, else with those that its characters need."""
    if isinstance(text, Repeat) and text.body == ALL:
        inner: Expr = Repeat(choice(_plain(escapes), any_escape), text.low, text.high, text.is_length)
    else:
        inner = _escaped(text, escapes, {})
    return seq(Lit(quote), inner, Lit(quote))


def _as_json(text: Expr) -> Expr:
    return _in_quotes(text, '"', _JSON_ESCAPES, Ref("json_escape"))


def _as_python(text: Expr, quote: str) -> Expr:
    return _in_quotes(text, quote, _PYTHON_ESCAPES[quote], seq(Lit("\\"), Ref("python_escaped")))


def _json_quoted(text: Expr) -> Expr:
    return Quoted(_as_json(text))


def _python_quoted(text: Expr) -> Expr:
    return Quoted(choice(_as_python(text, '"'), _as_python(text, "'")))


def _mixed_quoted(text: Expr) -> Expr:
    return Quoted(choice(_as_json(text), _as_python(text, "'")))


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


def composed(value: Any, notation: Notation, leaf: Callable[[Any], Expr]) -> Expr:
    """Return one value, with the blanks of its notation; `leaf` writes what is no list and no object."""
    if isinstance(value, list | tuple):
        return seq(Lit("["), _listed([composed(each, notation, leaf) for each in value], notation), Lit("]"))
    if isinstance(value, Mapping):
        named = [(notation.member_name(key), composed(each, notation, leaf)) for key, each in value.items()]
        return seq(Lit("{"), _listed([seq(key, notation.colon, each) for key, each in named], notation), Lit("}"))
    return leaf(value)


def _listed(parts: Sequence[Expr], notation: Notation) -> Expr:
    if not parts:
        return EMPTY
    found = [parts[0], *(each for part in parts[1:] for each in (notation.separator, part))]
    return seq(notation.edge, *found, notation.edge)


def _python_constant(value: Any) -> Expr:
    """Return one value, in either kind of quotes."""
    return choice(Lit(python_text(value)), Lit(repr(value)))


def _json_constant(value: Any) -> Expr:
    return composed(value, JSON, _words_constant)


def _words_constant(value: Any) -> Expr:
    return Lit(json.dumps(value, ensure_ascii=False))


JSON = Notation(
    "json", "true", "false", "null", seq(Lit(","), Blanks()), seq(Lit(":"), Blanks()), Blanks(), _json_constant,
    _json_quoted,
)  # fmt: skip
BLANK = optional(Lit(" "))  # in Python, before a value or a key
_COMMA, _COLON = seq(Lit(","), BLANK), seq(Lit(":"), BLANK)
PYTHON = Notation("python", "True", "False", "None", _COMMA, _COLON, EMPTY, _python_constant, _python_quoted)
WORDS = Notation(  # Python with JSON's words, for templates that print values as JSON
    "words", "true", "false", "null", _COMMA, _COLON, EMPTY, _words_constant,
    _python_quoted,
)  # fmt: skip
# Python together with JSON: text in double quotes is JSON, so that an engine reads one string and not two.
MIXED = Notation("mixed", "True", "False", "None", _COMMA, _COLON, EMPTY, _python_constant, _mixed_quoted)
_DIGITS = Class(((48, 57),))
_WHOLE = seq(optional(Lit("-")), choice(Lit("0"), seq(Class(((49, 57),)), Star(_DIGITS))))


def kinds_of(notation: Notation) -> dict[str, Expr]:
    """Return the rules for values of every kind."""
    ref = notation.ref
    items = seq(ref("any"), Star(seq(notation.separator, ref("any"))))
    members = seq(ref("pair"), Star(seq(notation.separator, ref("pair"))))
    edge = notation.edge
    return {
        "integer": _WHOLE,
        "number": seq(
            _WHOLE,
            optional(seq(Lit("."), _DIGITS, Star(_DIGITS))),
            optional(seq(Class(((69, 69), (101, 101))), optional(Class(((43, 43), (45, 45)))), Repeat(_DIGITS, 1, 3))),
        ),
        "boolean": Choice((Lit(notation.true), Lit(notation.false))),
        "null": Lit(notation.null),
        "array": seq(Lit("["), edge, optional(seq(items, edge)), Lit("]")),
        "object": seq(Lit("{"), edge, optional(seq(members, edge)), Lit("}")),
        "pair": notation.member(notation.any_name(), ref("any")),
        "any": Choice(tuple(ref(kind) for kind in KINDS)),
    }


_HIGH = Class(((48, 57), (65, 67), (69, 70), (97, 99), (101, 102)))  # with D, half a character might follow
_LOW = seq(Class(((68, 68), (100, 100))), Class(((48, 55),)))
BASE: dict[str, Expr] = {
    f"{notation.name}_{kind}": body
    for notation in (JSON, PYTHON, WORDS, MIXED)
    for kind, body in kinds_of(notation).items()
}
_JSON_ESCAPED = (class_of('"/\\bfnrt'), seq(Lit("u"), _HEX, _HEX, _HEX, _HEX))
# The escapes of Python, and those of regular expressions, which keep their backslash. It is also kept before any other
# character, but each token that may follow costs an engine time; `\\\\` writes it there. Octals and \N are not written.
_PYTHON_ESCAPED = (
    class_of("abfnrtv\\\"'dswDSWB.*+?()[]{}|^$/-"),
    seq(Lit("x"), _HEX, _HEX),
    seq(Lit("u"), choice(seq(_HIGH, _HEX), _LOW), _HEX, _HEX),
)


def _right_recursive(name: str, quote: str, plain: Expr, escaped: Iterable[Expr]) -> Expr:
    """Return the rule for the text after an opening quote, with its escapes.

    Escapes have no rule of their own, because that is slow, above all if several strings share it: an engine does not
    know how it continues.
    """
    steps = (plain, *(seq(Lit("\\"), each) for each in escaped))
    return Choice((Lit(quote), *(seq(each, Ref(name)) for each in steps)))


# Strings by right recursion, which engines read fastest; `_rest` is the text after the opening quote.
BASE |= {
    "json_string": seq(Lit('"'), Ref("json_rest")),
    "json_rest": _right_recursive("json_rest", '"', _plain(_JSON_ESCAPES), _JSON_ESCAPED),
    "json_escape": seq(Lit("\\"), Ref("json_escaped")),
    "json_escaped": choice(*_JSON_ESCAPED),
    "python_string": choice(seq(Lit('"'), Ref("python_double")), seq(Lit("'"), Ref("python_single"))),
    "words_string": Ref("python_string"),
    "mixed_string": choice(Ref("mixed_double"), Ref("mixed_single")),
    "mixed_double": Ref("json_string"),
    "mixed_single": seq(Lit("'"), Ref("python_single")),
    "python_escaped": choice(*_PYTHON_ESCAPED),
}  # fmt: skip
for _name, _quote in (("python_double", '"'), ("python_single", "'")):
    BASE[_name] = _right_recursive(_name, _quote, _plain(_PYTHON_ESCAPES[_quote]), _PYTHON_ESCAPED)


# --- a format's own notation -----------------------------------------------------------------------------------------

_BARE = Class(((45, 46), (48, 57), (65, 90), (95, 95), (97, 122)))  # characters of names without quotes
_fits_bare = re.compile(r"[^:,{}\[\]\"'\s<]+").fullmatch


@lru_cache(maxsize=64)
def notated(opening: str, closing: str, markers: tuple[str, ...] = (), tokens: Tokens = NO_TOKENS) -> Notation:
    """Return the notation of a format with its own quotes, in which texts have no escapes and names have no quotes.

    `markers` close a call in which the quote of a text is missing, so no text contains one.
    """
    marks = (opening, closing, *markers)
    words = tuple(dict.fromkeys(filter(tokens.is_text, marks)))

    def text(within: Expr | None) -> Expr:
        return seq(tokens.written(opening), tokens.text_until(closing, words, within))

    def quoted(value: str) -> Expr:
        if any(mark in value for mark in marks):
            return NOTHING
        return seq(tokens.written(opening), Lit(value), tokens.written(closing))

    def name(value: str) -> Expr:
        return Lit(value) if _fits_bare(value) else quoted(value)

    def leaf(value: Any) -> Expr:
        return quoted(value) if isinstance(value, str) else null if value is None else Lit(json.dumps(value))

    def constant(value: Any) -> Expr:
        return composed(value, made, leaf)

    null = choice(Lit("null"), Lit("None"))  # a template that prints a value writes it as Python does
    kinds: dict[str, Expr] = {}
    made = Notation("notated", "true", "false", "null", Lit(","), Lit(":"), EMPTY, constant, text, name, _BARE, kinds)
    kinds |= {f"notated_{kind}": Ref(f"json_{kind}") for kind in ("integer", "number", "boolean")}
    kinds |= {f"notated_{kind}": body for kind, body in kinds_of(made).items() if f"notated_{kind}" not in kinds}
    kinds["notated_string"], kinds["notated_null"] = text(None), null
    return made
