"""EBNF for xgrammar, and GBNF for llama.cpp: the same rules in almost the same notation.

Strategy: neither notation has JSON Schemas.  So xgrammar prints the rules of a schema, and they are added under new
names.  Where xgrammar is not installed, arguments are any JSON object, and the notes say so.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from toolgram.errors import ToolgramError
from toolgram.export.engines import fitted, note_escapes, text_lengths
from toolgram.export.expressions import Json, Token
from toolgram.export.schemas import text_of
from toolgram.export.writing import Note, RuleWriter, ranges

_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[A-Za-z_][A-Za-z0-9_]*')
_LOOKAHEAD = re.compile(r'\s*\(=\((?:"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[^()"\[]|\([^()]*\))*\)\)')
_JSON = r"""
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (string ws ":" ws value (ws "," ws string ws ":" ws value)*)? ws "}"
array ::= "[" ws (value (ws "," ws value)*)? ws "]"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
number ::= "-"? ("0" | [1-9] [0-9]{0,15}) ("." [0-9]{1,15})? ([eE] [-+]? [0-9]{1,2})?
ws ::= [ \t\r\n]{0,20}
""".strip()


_CHARACTER = r'[^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4})'
_PATTERN = re.compile(r'Regex\("((?:[^"\\]|\\.)*)", json_string=true\)').fullmatch
_UNESCAPED = r'^"\\\x00-\x1f'  # the characters of a JSON string that need no escape
_NEGATED = re.compile(r"\[\^((?:[^\]\\]|\\.)*)\]").sub
_INTEGER = '"-"? ("0" | [1-9] [0-9]{0,15})'
_CODE = '"x" [0-9a-f]{2} | "u" ([0-9a-ce-f] [0-9a-f] | "d" [0-7]) [0-9a-f]{2}'  # no surrogates
_PYTHON = {
    "py_string": " | ".join(
        rf'{quote} ([^{char}\\\x00-\x1f] | "\\" ([^0-7xuUN\x00-\x1f] | {_CODE}))* {quote}'
        for char, quote in (('"', r'"\""'), ("'", '"\'"'))
    ),
    "py_integer": _INTEGER,
    "py_number": _INTEGER + ' ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,2})?',
}


class EbnfWriter(RuleWriter):
    """EBNF for xgrammar."""

    def __init__(self, note: Note) -> None:
        super().__init__(note)
        self.common: dict[str, str] = {}  # printed rules that are the same for every schema

    def literal(self, text: str) -> str:
        """A string in double quotes."""
        return '"' + "".join(_escaped(char, '"\\') for char in text) + '"'

    def char_class(self, characters: str, negated: bool = False) -> str:
        """A class in brackets."""
        if not characters:
            return "[^\\x00]" if negated else '""'
        return f"[{'^' if negated else ''}{_class(characters)}]"

    def token(self, expr: Token) -> str:
        """A token by its id."""
        return f"Token({expr.id})"

    def spell(self, name: str) -> str:
        """Names have underscores, as in xgrammar."""
        return name.replace("-", "_")

    def python_leaf(self, name: str) -> str:
        """Strings with either kind of quotes; numbers as JSON has them."""
        return _PYTHON[name]

    def json_value(self, expr: Json) -> str:
        """The rules that xgrammar prints for a schema."""
        schema = fitted(json.loads(expr.schema), "xgrammar", self.note)
        text = text_of(schema)
        key = ("json", text, expr.any_order)
        if key in self.names:
            return self.names[key]
        written = self.in_any_order(schema) if expr.any_order else None
        if written is not None:
            return written
        lengths = text_lengths(schema)
        if lengths is not None:
            return self.rule(key, "text", lambda: self._counted(*lengths))
        note_escapes(schema, self.note)
        name = self.names[key] = self.new("json")
        printed = printed_rules(text)
        if printed is None:
            self.note("xgrammar is not installed, so values are any JSON (pip install 'toolgram[export]')")
            wanted = "object" if schema_type(schema) == "object" else "value"
            rules = [tuple(line.split(" ::= ", 1)) for line in _JSON.splitlines()]
            renamed = {rule: self.spell(f"json_any_{rule}") for rule, _ in rules}
            self.rules.append((name, renamed[wanted]))
            if "json_any" not in self.names:
                self.names["json_any"] = "json_any"
                self.rules += [(renamed[rule], self.translated(_renamed(body, renamed))) for rule, body in rules]
            return name
        common = {rule: self.spell(f"json_{rule}") for rule, body in printed if self._is_common(rule, body)}
        renamed = {rule: name if rule == "root" else self.spell(f"{name}_{rule}") for rule, _ in printed} | common
        for rule, body in printed:
            if rule not in common:
                for inner, text in self.pattern_rules(renamed[rule], body) or [
                    (renamed[rule], _renamed(body, renamed))
                ]:
                    self.rules.append((inner, self.translated(text)))
            elif ("common", rule) not in self.names:
                self.names["common", rule] = common[rule]
                self.rules.append((common[rule], self.translated(_renamed(body, renamed))))
        return name

    def _counted(self, low: int, high: int | None) -> str:
        """A text with a bounded number of characters; an escape counts as one."""
        character = self.rule("character", "character", lambda: _CHARACTER)
        return f'"\\"" {character}{{{low},{"" if high is None else high}}} "\\""'

    def _is_common(self, rule: str, body: str) -> bool:
        """Whether this rule is printed for every schema and is the same as before."""
        return rule.startswith("basic_") and self.common.setdefault(rule, body) == body

    def translated(self, body: str) -> str:
        """The body of a printed rule in the notation of this target."""
        return _ESCAPE.sub(_portable, body) if "Regex(" not in body else body

    def pattern_rules(self, name: str, body: str) -> list[tuple[str, str]]:
        """The rules for a body that is a pattern, where the target has no patterns; otherwise none."""
        return []


class GbnfWriter(EbnfWriter):
    """GBNF for llama.cpp."""

    def token(self, expr: Token) -> str:
        """A token by its id or its name."""
        return expr.text if expr.id is None else f"<[{expr.id}]>"

    def spell(self, name: str) -> str:
        """Names have hyphens only."""
        return name.replace("_", "-")

    def translated(self, body: str) -> str:
        """Without lookahead, which is redundant here, and with the counts and escapes that llama.cpp knows."""
        body = _LOOKAHEAD.sub("", body)
        body = re.sub(r"\{(\d+), ?-1\}", r"{\1,}", body).replace(", ", ",") if "{" in body else body
        body = super().translated(body)
        return _NAME.sub(lambda match: match[0] if match[0][0] in '"[' else match[0].replace("_", "-"), body)

    def pattern_rules(self, name: str, body: str) -> list[tuple[str, str]]:
        """A pattern as rules that xgrammar prints, over characters that JSON does not escape."""
        found = _PATTERN(body)
        if found is None:
            return []
        pattern = _read(found[1])
        printed = pattern_as_rules(pattern)
        if any(_holds_escaped(_NEGATED("", text)) for _, text in printed):
            self.note(f"the pattern {pattern!r} allows characters that JSON escapes, so GBNF does not enforce it")
            return [(name, f"[{_UNESCAPED}]*")]
        renamed = {rule: name if rule == "root" else self.spell(f"{name}_{rule}") for rule, _ in printed}
        return [(renamed[rule], _NEGATED(_unescaped_too, _renamed(text, renamed))) for rule, text in printed]


@lru_cache(maxsize=512)
def _class(characters: str) -> str:
    # `\^` and `\-` are xgrammar's alone, and its `\x` takes as many digits as follow
    return ranges(characters, lambda char: f"\\u{ord(char):04x}" if char in "^-" else _escaped(char, "\\]["))


def schema_type(schema: Any) -> Any:
    """The type that a schema names."""
    return schema.get("type") if isinstance(schema, dict) else None


def _escaped(char: str, special: str) -> str:
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(char)
    if short:
        return short
    if char in special:
        return "\\" + char
    code = ord(char)
    return char if char.isprintable() else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _renamed(body: str, names: dict[str, str]) -> str:
    return _NAME.sub(lambda match: match[0] if match[0][0] in '"[' else names.get(match[0], match[0]), body)


def _unescaped_too(found: re.Match[str]) -> str:
    return f"[{_UNESCAPED}{found[1]}]"


def _holds_escaped(body: str) -> bool:
    """Whether a printed rule can write a character that a JSON string escapes."""
    for part in _NAME.findall(body):
        if part[0] == '"':
            codes = [(ord(char), ord(char)) for char in _read(part[1:-1])]
        elif part[0] == "[":
            codes = [(ord(pair[0]), ord(pair[-1])) for pair in _RANGE(_read(part[1:-1]))]
        else:
            continue
        if any(low < 32 or low <= 34 <= high or low <= 92 <= high for low, high in codes):
            return True
    return False


_RANGE = re.compile(r".-.|.", re.DOTALL).findall
_ESCAPE = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))", re.DOTALL)
_SINGLE = {"0": "\0", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def _read(text: str) -> str:
    """The text behind xgrammar's escapes."""
    return _ESCAPE.sub(lambda found: _character(found), text)


def _character(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    return chr(int(code, 16)) if code else _SINGLE.get(found[4], found[4])


def _portable(found: re.Match[str]) -> str:
    """An escape as all engines read it."""
    char = _character(found)
    if found[4] and (char in '\n\r\t"\\[]'):
        return found[0]
    if found[3]:
        return found[0]
    return f"\\u{ord(char):04x}" if not char.isalnum() or ord(char) > 127 else char


@lru_cache(maxsize=512)
def pattern_as_rules(pattern: str) -> tuple[tuple[str, str], ...]:
    """The rules that xgrammar makes of a pattern."""
    from xgrammar import Grammar

    return _rules_of(str(Grammar.from_regex(pattern)).replace(r"[\0-\U0010ffff]", r"[^\0]"))


def rules_are_printed() -> bool:
    """Whether xgrammar is installed, to print the rules of a schema."""
    return printed_rules('{"type":"null"}') is not None


@lru_cache(maxsize=512)
def printed_rules(schema: str) -> tuple[tuple[str, str], ...] | None:
    """The rules that xgrammar makes of a schema; None where it is not installed."""
    try:
        from xgrammar import Grammar
    except ImportError:
        return None
    try:
        return _rules_of(str(Grammar.from_json_schema(schema, strict_mode=False)))
    except RuntimeError as error:
        words = str(error).strip().rpartition(": ")[2]
        raise ToolgramError(f"xgrammar makes no rules of the schema {schema[:200]}: {words}") from None


def _rules_of(printed: str) -> tuple[tuple[str, str], ...]:
    lines = [line.partition(" ::= ") for line in printed.splitlines()]
    return tuple((name, body) for name, arrow, body in lines if arrow)
