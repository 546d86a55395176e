"""EBNF as xgrammar reads it, and GBNF as llama.cpp does: the same rules, spelled almost the same.

Strategy: neither has a word for a JSON Schema, so xgrammar is asked to print the rules of one, and they are taken in
under names of their own.  Where xgrammar is not installed, arguments are any JSON object, and the notes say so.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from toolgram.export.engines import fitted
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


_INTEGER = '"-"? ("0" | [1-9] [0-9]{0,15})'
_PYTHON = {
    "py_string": " | ".join(
        rf'{quote} ([^{char}\\\x00-\x1f] | "\\" [^0-7xuUN\x00-\x1f])* {quote}'
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
        """Names have underscores, in the manner of xgrammar."""
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
        name = self.names[key] = self.new("json")
        printed = printed_rules(text)
        if printed is None:
            self.note("xgrammar is not installed, so that values are any JSON (pip install 'toolgram[export]')")
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
                self.rules.append((renamed[rule], self.translated(_renamed(body, renamed))))
            elif ("common", rule) not in self.names:
                self.names["common", rule] = common[rule]
                self.rules.append((common[rule], self.translated(_renamed(body, renamed))))
        return name

    def _is_common(self, rule: str, body: str) -> bool:
        """Whether this is one of the rules that are printed for every schema, and as it was printed before."""
        return rule.startswith("basic_") and self.common.setdefault(rule, body) == body

    def translated(self, body: str) -> str:
        """The body of a printed rule, as this target has it."""
        return body


class GbnfWriter(EbnfWriter):
    """GBNF for llama.cpp."""

    def token(self, expr: Token) -> str:
        """A token by its id or its name."""
        return expr.text if expr.id is None else f"<[{expr.id}]>"

    def spell(self, name: str) -> str:
        """Names have hyphens only."""
        return name.replace("_", "-")

    def translated(self, body: str) -> str:
        """Without lookahead, which says nothing new, and with the counts and escapes that llama.cpp knows."""
        body = _LOOKAHEAD.sub("", body)
        body = re.sub(r"\{(\d+), ?-1\}", r"{\1,}", body).replace(", ", ",") if "{" in body else body
        body = re.sub(r"\\0(?![0-9])", r"\\x00", body)
        return _NAME.sub(lambda match: match[0] if match[0][0] in '"[' else match[0].replace("_", "-"), body)


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


@lru_cache(maxsize=512)
def printed_rules(schema: str) -> tuple[tuple[str, str], ...] | None:
    """The rules that xgrammar makes of a schema; None where it is not installed."""
    try:
        from xgrammar import Grammar
    except ImportError:
        return None
    grammar = str(Grammar.from_json_schema(schema, strict_mode=False))
    found = []
    for line in grammar.splitlines():
        name, arrow, body = line.partition(" ::= ")
        if arrow:
            found.append((name, body))
    return tuple(found)
