"""Values in JSON's or Python's notation, from the normal form of a schema, as expressions that every target can write.

Strategy: a definition of the schema becomes a rule, every other part an expression.  The kinds of values without a
limit are rules of the notation, which all values share.  Both notations differ only in words, separators and how a text
is quoted, so there is one converter, and a table for each notation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import Any

from toolgram.export.digits import MOST_DIGITS, integers, numbers
from toolgram.export.expressions import (
    EMPTY,
    NOTHING,
    Blanks,
    Choice,
    Class,
    Expr,
    Json,
    Lit,
    Member,
    Members,
    OtherName,
    Ref,
    Repeat,
    Rules,
    Seq,
    Star,
    choice,
    complement,
    members_in_turn,
    optional,
    seq,
    star,
    without_characters,
)
from toolgram.export.patterns import ALL, FORMATS, format_text, pattern_text

Note = Callable[[str], object]
_CONTROL = tuple(range(32))
_HEX = Class(((48, 57), (65, 70), (97, 102)))
_DEEPEST = 8  # references to alternatives
_MOST_LISTED = 256  # multiples of a number
_MOST_IN_NAME = 64  # characters of a name without quotes
KINDS = ("string", "number", "boolean", "null", "array", "object")


@dataclass(frozen=True, slots=True)
class Notation:
    """How a language writes values."""

    name: str  # with which the names of its rules begin
    true: str
    false: str
    null: str
    separator: Expr  # between two items or members
    colon: Expr
    edge: Expr  # inside of brackets, beside them
    constant: Callable[[Any], Expr]
    quote: Callable[[Expr], Expr]  # the expression of a text, as a value
    bare_name: Callable[[str], Expr] | None = None  # the name of a member, where it needs no quotes
    bare: Class | None = None  # the characters of a name without quotes
    kinds: Mapping[str, Expr] = field(default_factory=dict)  # its rules, where they are not among those of all formats

    def ref(self, kind: str) -> Ref:
        """The rule for all values of a kind."""
        found = self.kinds.get(f"{self.name}_{kind}")
        return found if isinstance(found, Ref) else Ref(f"{self.name}_{kind}")

    def member_name(self, name: str) -> Expr:
        """The name of a member."""
        return (self.bare_name or self.constant)(name)

    def any_name(self) -> Expr:
        """The name of any member."""
        return choice(Repeat(self.bare, 1, _MOST_IN_NAME), self.ref("string")) if self.bare else self.ref("string")


# --- texts --------------------------------------------------------------------------------------------------------

_SHORT = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}


def _json_character(code: int) -> str:
    return _SHORT.get(code) or (f"\\u{code:04x}" if code < 32 else chr(code))


def _python_character(quote: str) -> Callable[[int], str]:
    def written(code: int) -> str:
        if chr(code) in (quote, "\\"):
            return "\\" + chr(code)
        return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code) or (f"\\x{code:02x}" if code < 32 else chr(code))

    return written


def _escaped(expr: Expr, special: Sequence[int], written: Callable[[int], str], known: dict[Expr, Expr]) -> Expr:
    """A text as it stands between quotes: the special characters are written as their escapes."""
    if expr in known:
        return known[expr]
    found: Expr = expr
    match expr:
        case Lit():
            found = Lit("".join(written(ord(char)) if ord(char) in special else char for char in expr.text))
        case Class():
            inside = [code for code in special if any(low <= code <= high for low, high in expr.ranges)]
            plain = without_characters(expr.ranges, [*special, *range(0xD800, 0xE000)] if inside else special)
            escapes = [Lit(written(code)) for code in inside]
            found = choice(*([Class(plain)] if plain else []), *escapes)
        case Seq():
            found = seq(*(_escaped(each, special, written, known) for each in expr.parts))
        case Choice():
            found = choice(*(_escaped(each, special, written, known) for each in expr.options))
        case Star():
            found = star(_escaped(expr.body, special, written, known))
        case Repeat():
            body = _escaped(expr.body, special, written, known)
            found = Repeat(body, expr.low, expr.high, expr.is_length)
    known[expr] = found
    return found


_JSON_SPECIAL = (*_CONTROL, 34, 92)
_JSON_ANY = choice(Class(complement((code, code) for code in _JSON_SPECIAL)), Ref("json_escape"))
_PYTHON_ANY = {
    quote: choice(Class(complement((code, code) for code in (*_CONTROL, ord(quote), 92))), Ref("python_escape"))
    for quote in "\"'"
}


def _json_quoted(text: Expr) -> Expr:
    inner = _with_any(text, _JSON_ANY, lambda rest: _escaped(rest, _JSON_SPECIAL, _json_character, {}))
    return seq(Lit('"'), inner, Lit('"'))


def _python_quoted(text: Expr) -> Expr:
    options = []
    for quote in "\"'":
        special = (*_CONTROL, ord(quote), 92)

        def written(rest: Expr, quote: str = quote, special: tuple[int, ...] = special) -> Expr:
            return _escaped(rest, special, _python_character(quote), {})

        options.append(seq(Lit(quote), _with_any(text, _PYTHON_ANY[quote], written), Lit(quote)))
    return choice(*options)


def _with_any(text: Expr, character: Expr, written: Callable[[Expr], Expr]) -> Expr:
    """A text without a pattern may have any escape; one with a pattern only those that its characters need."""
    if isinstance(text, Repeat) and text.body == ALL:
        return Repeat(character, text.low, text.high, text.is_length)
    return written(text)


def python_text(value: Any) -> str:
    """A JSON value as Python writes it, with double quotes."""
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return '"' + "".join(char if char.isprintable() else _escape(char) for char in escaped) + '"'
    if isinstance(value, list | tuple):
        return f"[{', '.join(python_text(each) for each in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{python_text(key)}: {python_text(each)}' for key, each in value.items())}}}"
    return repr(value)


def _escape(char: str) -> str:
    code = ord(char)
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    return short or (f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}")


def _json_constant(value: Any) -> Expr:
    """One value. Lists and objects with the blanks that JSON allows."""
    if isinstance(value, list | tuple):
        return seq(Lit("["), listed([_json_constant(each) for each in value], JSON), Lit("]"))
    if isinstance(value, Mapping):
        members = [seq(_json_constant(key), JSON.colon, _json_constant(each)) for key, each in value.items()]
        return seq(Lit("{"), listed(members, JSON), Lit("}"))
    return Lit(encode_basestring(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def listed(parts: Sequence[Expr], notation: Notation) -> Expr:
    if not parts:
        return EMPTY
    found = [parts[0], *(each for part in parts[1:] for each in (notation.separator, part))]
    return seq(notation.edge, *found, notation.edge)


def _python_constant(value: Any) -> Expr:
    """One value, in either kind of quotes."""
    return choice(Lit(python_text(value)), Lit(repr(value)))


def _as_json(value: Any) -> Expr:
    return Lit(json.dumps(value, ensure_ascii=False))


JSON = Notation(
    "json", "true", "false", "null", seq(Lit(","), Blanks()), seq(Lit(":"), Blanks()), Blanks(), _json_constant,
    _json_quoted,
)  # fmt: skip
PYTHON = Notation("python", "True", "False", "None", Lit(", "), Lit(": "), EMPTY, _python_constant, _python_quoted)
WORDS = Notation(  # Python with JSON's words, of templates that print values as JSON
    "words", "true", "false", "null", Lit(", "), Lit(": "), EMPTY, _as_json,
    _python_quoted,
)  # fmt: skip
_DIGITS = Class(((48, 57),))
_WHOLE = seq(optional(Lit("-")), choice(Lit("0"), seq(Class(((49, 57),)), Star(_DIGITS))))


def kinds_of(notation: Notation) -> dict[str, Expr]:
    """The rules for values of every kind."""
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
        "pair": seq(notation.any_name(), notation.colon, ref("any")),
        "any": Choice(tuple(ref(kind) for kind in KINDS)),
    }


_HIGH = Class(((48, 57), (65, 67), (69, 70), (97, 99), (101, 102)))  # with D, half a character might follow
_LOW = seq(Class(((68, 68), (100, 100))), Class(((48, 55),)))
_NO_SURROGATE = seq(Lit("u"), choice(seq(_HIGH, _HEX), _LOW), _HEX, _HEX)
BASE: dict[str, Expr] = {
    f"{notation.name}_{kind}": body for notation in (JSON, PYTHON, WORDS) for kind, body in kinds_of(notation).items()
}
# Strings by right recursion, which engines read fastest; `_rest` is what follows the opening quote.
BASE |= {
    "json_string": seq(Lit('"'), Ref("json_rest")),
    "json_rest": choice(
        Lit('"'),
        seq(Class(complement((code, code) for code in _JSON_SPECIAL)), Ref("json_rest")),
        seq(Lit("\\"), Ref("json_escaped"), Ref("json_rest")),
    ),
    "json_escape": seq(Lit("\\"), Ref("json_escaped")),
    "json_escaped": choice(
        Class(tuple((ord(char), ord(char)) for char in '"/\\bfnrt')), seq(Lit("u"), _HEX, _HEX, _HEX, _HEX)
    ),
    # a string that is not inside of an object or a list, so that anything may follow it
    "json_alone": seq(Lit('"'), Ref("json_last")),
    "json_last": choice(
        Lit('"'),
        seq(Class(complement((code, code) for code in _JSON_SPECIAL)), Ref("json_last")),
        seq(Lit("\\"), Ref("json_escaped"), Ref("json_last")),
    ),
    "python_string": choice(seq(Lit('"'), Ref("python_double")), seq(Lit("'"), Ref("python_single"))),
    "words_string": Ref("python_string"),
    # a backslash before any other character is itself; \x, \u, \N and octals would have to be complete
    "python_escape": seq(
        Lit("\\"),
        choice(
            Class(complement([*((code, code) for code in _CONTROL), (48, 55), *((ord(c), ord(c)) for c in "xuUN")])),
            seq(Lit("x"), Repeat(_HEX, 2, 2)),
            _NO_SURROGATE,
        ),
    ),
}  # fmt: skip
for _name, _quote in (("double", '"'), ("single", "'")):
    BASE[f"python_{_name}"] = choice(
        Lit(_quote),
        seq(_PYTHON_ANY[_quote].options[0], Ref(f"python_{_name}")),  # type: ignore[union-attr]
        seq(Ref("python_escape"), Ref(f"python_{_name}")),
    )


# --- schemas ------------------------------------------------------------------------------------------------------


class Values:
    """The values of one normal form. `value` gives an expression; `rules` is the language with what it refers to."""

    def __init__(self, root: Mapping[str, Any], note: Note, notation: Notation) -> None:
        self.definitions: Mapping[str, Any] = root.get("$defs", {})
        self.note, self.notation = note, notation
        self.made: dict[str, Expr] = dict(notation.kinds)

    def rules(self, start: Expr) -> Rules:
        """The language that begins with `start`."""
        used: dict[str, Expr] = {}
        pending = list(_refs(start))
        while pending:
            name = pending.pop()
            if name in self.made and name not in used:
                used[name] = self.made[name]
                pending += _refs(self.made[name])
        return Rules("start", (("start", start), *used.items()))

    def alone_or_rules(self, start: Expr) -> Expr:
        """The language that begins with `start`; the expression itself where it refers to nothing."""
        while isinstance(start, Ref) and start.name in self.notation.kinds:
            start = self.made[start.name]
        return self.rules(start) if next(_refs(start), None) else start

    def value(self, schema: Any) -> Expr:
        """How a value of this schema is written."""
        if schema is True or schema == {}:
            return self.notation.ref("any")
        if not isinstance(schema, Mapping):
            return NOTHING
        if "$ref" in schema:
            return self._reference(schema["$ref"].removeprefix("#/$defs/"))
        if "enum" in schema:
            return choice(*(self.notation.constant(each) for each in schema["enum"]))
        if "anyOf" in schema:
            return choice(*(self.value(each) for each in schema["anyOf"]))
        kind = schema.get("type", "any")
        if not set(schema) - {"type", "$defs"} or (kind == "object" and _is_any_object(schema)):
            return self.notation.ref(kind)
        return {
            "string": self._string,
            "integer": self._number,
            "number": self._number,
            "array": self._array,
            "object": self._object,
        }[kind](schema)

    def alone(self, expr: Expr, depth: int = 0) -> Expr:
        """A JSON value that stands by itself: what follows a string is no comma and no bracket."""
        if isinstance(expr, Choice):
            return choice(*(self.alone(each, depth) for each in expr.options))
        if not isinstance(expr, Ref) or depth > _DEEPEST:
            return expr
        if expr.name == "json_string":
            return Ref("json_alone")
        if expr.name == "json_any":
            return choice(*(self.alone(JSON.ref(kind)) for kind in KINDS))
        return self.alone(self.made[expr.name], depth + 1) if isinstance(self.made.get(expr.name), Choice) else expr

    def _reference(self, name: str) -> Expr:
        if name not in self.made:
            self.made[name] = NOTHING  # while it is made
            self.made[name] = self.value(self.definitions[name])
        return Ref(name)

    def _string(self, schema: Mapping[str, Any]) -> Expr:
        text = text_of_schema(schema, self.note)
        return self.notation.ref("string") if text is None else self.notation.quote(text)

    def _number(self, schema: Mapping[str, Any]) -> Expr:
        kind = schema["type"]
        low = schema.get("minimum", schema.get("exclusiveMinimum"))
        high = schema.get("maximum", schema.get("exclusiveMaximum"))
        step = schema.get("multipleOf")
        if step is not None:
            if isinstance(step, int) and isinstance(low, int) and isinstance(high, int) and kind == "integer":
                multiples = range(-(-low // step) * step, high + 1, step)
                if len(multiples) <= _MOST_LISTED:
                    return choice(*(Lit(str(each)) for each in multiples))
            self.note(f"multipleOf {step} is not enforced")
        for bound in (low, high):
            if bound is not None and abs(bound) > 10**MOST_DIGITS:
                self.note(f"bounds of more than {MOST_DIGITS} digits are not enforced")
                return self.notation.ref(kind)
        if low is None and high is None:
            return self.notation.ref(kind)
        if kind == "integer":
            return integers(low, high)
        return numbers(low, "exclusiveMinimum" in schema, high, "exclusiveMaximum" in schema)

    def _array(self, schema: Mapping[str, Any]) -> Expr:
        first = [self.value(each) for each in schema.get("prefixItems", ())]
        rest = self.value(schema["items"]) if "items" in schema else self.notation.ref("any")
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        separator, edge = self.notation.separator, self.notation.edge
        if most is not None:
            first = first[:most]
        more = None if most is None else most - max(len(first), 1)
        here = first or ([rest] if more is None or more >= 0 else [])
        if not here:
            return seq(Lit("["), edge, Lit("]"))
        following = times(seq(separator, rest), max(least - len(here), 0), more)
        for at in range(len(here) - 1, 0, -1):
            following = seq(separator, here[at], following)
            following = following if at < least else optional(following)
        body = seq(here[0], following, edge)
        return seq(Lit("["), edge, body if least else optional(body), Lit("]"))

    def whole_object(self, schema: Mapping[str, Any]) -> Expr:
        """The arguments of a call: its members may stand in any order."""
        forms = alternatives(schema, self.definitions)
        if any(set(each) <= {"type"} or "enum" in each or _is_any_object(each) for each in forms):
            return self.value(schema)
        return choice(*(self._object(each, any_order=True) for each in forms))

    def _object(self, schema: Mapping[str, Any], any_order: bool = False) -> Expr:
        found = self.members(schema, any_order)
        edge = self.notation.edge
        if not found.members:
            return seq(Lit("{"), edge, Lit("}"))
        body = seq(self._counted(schema, found) or (found if any_order else members_in_turn(found)), edge)
        may_be_empty = not schema.get("required") and not schema.get("minProperties")
        return seq(Lit("{"), edge, optional(body) if may_be_empty else body, Lit("}"))

    def _counted(self, schema: Mapping[str, Any], found: Members) -> Expr | None:
        """The members of a map with a limited number of them."""
        least, most = schema.get("minProperties", 0), schema.get("maxProperties")
        if least <= len(schema.get("required", ())) + (1 if not schema.get("required") else 0) and most is None:
            return None
        if any(each.name for each in found.members):
            self.note("minProperties and maxProperties are not enforced beside properties")
            return None
        first = choice(*(each.first for each in found.members))
        later = choice(*(each.later for each in found.members))
        self.note("the names of a map are not counted apart: a name may be repeated")
        return seq(first, times(later, max(least - 1, 0), None if most is None else max(most - 1, 0)))

    def members(self, schema: Mapping[str, Any], any_order: bool) -> Members:
        """The members of an object."""
        key = self.notation.member_name
        separator, colon = self.notation.separator, self.notation.colon
        required = set(schema.get("required", ()))
        properties = schema.get("properties", {})
        found: list[Member] = []

        def add(name: str, written: Expr, needed: bool) -> None:
            found.append(Member(name, written, seq(separator, written), needed))

        for name, declared in properties.items():
            value = self.value(declared)
            if value != NOTHING:
                add(name, seq(key(name), colon, value), name in required)
        for pattern, declared in schema.get("patternProperties", {}).items():
            text = pattern_text(pattern)
            if text is None:
                self.note(f"the pattern {pattern!r} of names is not enforced")
                text = Star(ALL)
            add("", seq(self.notation.quote(text), colon, self.value(declared)), False)
        further = schema.get("additionalProperties", True)
        if further is not False:
            add("", seq(self._other_name(schema, tuple(properties)), colon, self.value(further)), False)
        return Members(tuple(found), any_order)

    def _other_name(self, schema: Mapping[str, Any], declared: tuple[str, ...]) -> Expr:
        """A name that is not declared: one that begins with another character."""
        if schema.get("patternProperties"):
            self.note("a name that fits a pattern may have the value of one that fits none")
        names = schema.get("propertyNames", {})
        text = None
        if isinstance(names, Mapping) and names:
            forms = alternatives(names, self.definitions)
            if len(forms) == 1 and forms[0].get("type") == "string":
                text = text_of_schema(forms[0], self.note)
            if text is not None and declared:
                self.note("propertyNames is not enforced beside properties")
        if not declared:
            return self.notation.any_name() if text is None else self.notation.quote(text)
        if self.notation is JSON:
            return OtherName(declared)
        if bare := self.notation.bare:
            first = other_beginnings(declared, bare, self.note)
            return seq(first, Repeat(bare, 0, _MOST_IN_NAME - 1)) if first.ranges else NOTHING
        return self.notation.quote(other_names(declared, self.note))


def other_beginnings(declared: Sequence[str], among: Class, note: Note) -> Class:
    """The characters with which none of some names begins."""
    note("names that no schema declares begin with another character than those that are declared")
    return Class(without_characters(among.ranges, {ord(name[0]) for name in declared if name}))


def other_names(declared: Sequence[str], note: Note) -> Expr:
    """Texts that are none of some names: those that begin with another character."""
    return seq(other_beginnings(declared, ALL, note), Star(ALL))


def text_of_schema(schema: Mapping[str, Any], note: Note) -> Expr | None:
    """The texts that a schema of the type `string` allows; None for any text."""
    found: Expr | None = None
    if "pattern" in schema:
        found = pattern_text(schema["pattern"])
        if found is None:
            note(f"the pattern {schema['pattern']!r} is not enforced")
    if "format" in schema:
        if found is not None:
            note(f"the format {schema['format']} is not enforced beside a pattern")
        elif schema["format"] not in FORMATS:
            note(f"the format {schema['format']} is not enforced")
        else:
            found = format_text(schema["format"])
    low, high = schema.get("minLength", 0), schema.get("maxLength")
    if found is None:
        return Repeat(ALL, low, high, True) if low or high is not None else None
    if not low and high is None:
        return found
    if isinstance(found, Repeat) and isinstance(found.body, Class):  # one class of characters, so many times
        most = min((each for each in (found.high, high) if each is not None), default=None)
        return Repeat(found.body, max(low, found.low), most, True)
    if isinstance(found, Star) and isinstance(found.body, Class):
        return Repeat(found.body, low, high, True)
    note(f"{'minLength and maxLength' if low and high else 'maxLength' if high else 'minLength'} is not enforced "
         "beside a pattern or a format")  # fmt: skip
    return found


def times(body: Expr, low: int, high: int | None) -> Expr:
    """So many times."""
    if body == NOTHING:
        return EMPTY if not low else NOTHING
    if high == 0:
        return EMPTY
    if (low, high) == (0, None):
        return star(body)
    if (low, high) == (0, 1):
        return optional(body)
    return Repeat(body, low, high) if (low, high) != (1, 1) else body


def _is_any_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("additionalProperties") is True and not set(schema) - {"type", "additionalProperties", "$defs"}


def alternatives(schema: Any, definitions: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The schemas of which a value fits one, without references and `anyOf` at the top."""
    found: list[Mapping[str, Any]] = []
    pending, seen = [schema], set()
    while pending:
        here = pending.pop(0)
        if not isinstance(here, Mapping):
            if here is True:
                found.append({})
        elif "$ref" in here:
            name = here["$ref"].removeprefix("#/$defs/")
            if name not in seen:
                seen.add(name)
                pending.insert(0, definitions[name])
        elif "anyOf" in here:
            pending[:0] = here["anyOf"]
        else:
            found.append({key: value for key, value in here.items() if key != "$defs"})
    return found


def _refs(expr: Expr) -> Iterator[str]:
    pending, seen = [expr], set()
    while pending:
        here = pending.pop()
        if isinstance(here, Lit) or id(here) in seen:
            continue
        seen.add(id(here))
        if isinstance(here, Ref):
            yield here.name
        pending += children(here)


def children(expr: Expr) -> list[Expr]:
    """The expressions directly inside one."""
    match expr:
        case Seq():
            return list(expr.parts)
        case Choice():
            return list(expr.options)
        case Star() | Repeat():
            return [expr.body]
        case Members():
            return [each for member in expr.members for each in (member.first, member.later)]
        case Rules():
            return [body for _, body in expr.rules]
    return []


# --- arguments ----------------------------------------------------------------------------------------------------

_IDENTIFIER = ((65, 90), (95, 95), (97, 122))


def keyword_arguments(
    forms: Sequence[Mapping[str, Any]], root: Mapping[str, Any], note: Note, notation: Notation
) -> Expr:
    """The arguments between the parentheses of a call, for each alternative; NOTHING where none can be written."""
    values = Values(root, note, notation)
    options: list[Expr] = []
    for form in forms:
        found = keyword_members(values, form, note)
        for name in form.get("properties", {}):
            if not name.isidentifier():
                note(f"the parameter {name!r} is not a Python name and cannot be written")
        if set(form.get("required", ())) <= {each.name for each in found.members}:
            options.append(found if found.members else NOTHING)
    body = choice(*options)
    return values.rules(body) if body != NOTHING else body


def keyword_members(values: Values, form: Mapping[str, Any], note: Note) -> Members:
    """Keyword arguments, in any order."""
    found: list[Member] = []
    required = set(form.get("required", ()))
    properties = form.get("properties", {})
    for name, declared in properties.items():
        value = values.value(declared)
        if name.isidentifier() and value != NOTHING:
            written = seq(Lit(name + "="), value)
            found.append(Member(name, written, seq(Lit(", "), written), name in required))
    further = form.get("additionalProperties", True)
    if form.get("patternProperties"):
        note("patternProperties is not enforced on Python arguments")
        further = True
    if further is not False:
        begins = [ord(name[0]) for name in properties if name]
        if begins:
            note("names that no schema declares begin with another character than those that are declared")
        first = without_characters(_IDENTIFIER, begins)
        if first:
            name = seq(Class(first), Repeat(Class(((48, 57), *_IDENTIFIER)), 0, 31))
            written = seq(name, Lit("="), values.value(further))
            found.append(Member("", written, seq(Lit(", "), written), False))
    return Members(tuple(found), True)


def json_members(form: Mapping[str, Any], root: Mapping[str, Any]) -> Members | None:
    """The members of a JSON object, in any order, with their values as schemas; None where that loses a part of it."""
    plain = {"type", "properties", "required", "additionalProperties", "$defs"}
    if form.get("type") != "object" or set(form) - plain or len(form.get("properties", ())) < 2:
        return None
    required = set(form.get("required", ()))
    definitions = root.get("$defs", {})
    found: list[Member] = []

    def add(name: str, key: Expr, declared: Any) -> None:
        written = seq(key, JSON.colon, Json(schema_text(declared, definitions)))
        found.append(Member(name, written, seq(JSON.separator, written), name in required))

    for name, declared in form["properties"].items():
        if declared is not False:
            add(name, Lit(json.dumps(name, ensure_ascii=False)), declared)
    further = form.get("additionalProperties", True)
    if further is not False:
        add("", OtherName(tuple(form["properties"])), further)
    return Members(tuple(found), True) if len(found) > 1 else None


def in_braces(members: Members) -> Expr:
    """The members as a JSON object."""
    body = seq(members, Blanks())
    needed = any(each.required for each in members.members)
    return seq(Lit("{"), Blanks(), body if needed else optional(body), Lit("}"))


def schema_text(schema: Any, definitions: Mapping[str, Any]) -> str:
    """A part of a normal form as the text of a schema of its own, with the definitions that it needs."""
    text = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    if '"$ref"' not in text or not isinstance(schema, Mapping):
        return text
    needed: dict[str, Any] = {}
    pending = [schema]
    while pending:
        for name in _named(pending.pop()):
            if name not in needed and name in definitions:
                needed[name] = definitions[name]
                pending.append(definitions[name])
    return json.dumps({**schema, "$defs": needed}, ensure_ascii=False, separators=(",", ":"))


def _named(schema: Any) -> Iterator[str]:
    """The definitions to which a normal form refers."""
    pending = [schema]
    while pending:
        here = pending.pop()
        if not isinstance(here, Mapping):
            continue
        if "$ref" in here:
            yield here["$ref"].removeprefix("#/$defs/")
        for key in ("items", "additionalProperties", "propertyNames"):
            pending.append(here.get(key))
        for key in ("anyOf", "prefixItems"):
            pending += here.get(key, ())
        for key in ("properties", "patternProperties"):
            pending += here.get(key, {}).values()
