"""Values with elements inside: each member of an object and each item of a list is an element with a name.

Strategy: the tag that closes an element has its name, so a value is written together with its closing tag. A text must
not contain a tag of an open element. Elements of a schema that refers to itself are written a few levels deep.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolgram.export.arguments import schema_text
from toolgram.export.expressions import EMPTY, NOTHING, Expr, Forbidden, Json, Lit, Note, Text, choice, optional, seq
from toolgram.export.markers import Tokens
from toolgram.export.values import alternatives, text_of_schema, times
from toolgram.limits import MAX_EXPORTED_ELEMENTS

_is_name = re.compile(r"[^<>/\s]+").fullmatch
_ENFORCED = {"object": {"properties", "required", "additionalProperties"}, "array": {"items", "minItems", "maxItems"}}


class Elements:
    """Writes values in the tags of one format. `definitions` are the targets of references."""

    def __init__(self, notation: Sequence[str], definitions: Mapping[str, Any], note: Note, tokens: Tokens) -> None:
        self._tokens = tokens
        self._opening, self._closing, self._item = notation[:3]
        self._own = notation[3] if len(notation) > 3 else ""
        self._definitions = definitions
        self._note = note

    def argument(self, key: str, schema: Any) -> Expr:
        """Return the value of an argument, and the tag that closes it."""
        return self._value((self._own or key,), schema)

    def _value(self, names: tuple[str, ...], schema: Any) -> Expr:
        """Return a value of this schema in elements of these names, nested, and the tag that closes it."""
        return choice(*(self._one(names, each) for each in alternatives(schema, self._definitions)))

    def _one(self, names: tuple[str, ...], schema: Mapping[str, Any]) -> Expr:
        closer = self._tokens.written(f"{self._closing}{names[-1]}>")
        if "enum" in schema:
            return seq(choice(*(self._constant(each) for each in schema["enum"])), closer)
        kind = schema.get("type")
        if kind in (None, "string"):
            return self._text(names, schema)
        if kind not in _ENFORCED:
            return seq(Json(schema_text(schema, self._definitions)), closer)
        if len(names) > MAX_EXPORTED_ELEMENTS:
            self._note(f"objects and lists are written {MAX_EXPORTED_ELEMENTS} deep at most")
            return NOTHING
        extra = sorted(set(schema) - {"type", *_ENFORCED[kind]})
        if extra:
            self._note(f"{', '.join(extra)} is not enforced on elements")
        self._note("elements follow each other directly: no line end is written between them")
        inside = self._members(names, schema) if kind == "object" else self._items(names, schema)
        return seq(inside, closer)

    def _text(self, names: tuple[str, ...], schema: Mapping[str, Any]) -> Expr:
        """Return text up to the closing tag. It holds no tag of an open element if tags are plain, else no tag."""
        closer = f"{self._closing}{names[-1]}>"
        within = text_of_schema(schema, self._note) if schema.get("type") == "string" else None
        if self._opening == "<":
            tags = [f"{begin}{name}>" for name in dict.fromkeys(names) for begin in (self._opening, self._closing)]
            return self._tokens.text_until(closer, dict.fromkeys((closer, *tags)), within)
        if not isinstance(self._tokens.written(closer), Lit):
            return self._tokens.text_until(closer, (self._opening,), within)
        rest = closer.removeprefix(self._opening)  # a closing tag begins as an opening one does
        return seq(Text(Forbidden((self._opening,)), self._opening, within), Lit(rest))

    def _constant(self, value: Any) -> Expr:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return NOTHING if self._opening in text else Lit(text)

    def _element(self, names: tuple[str, ...], name: str, schema: Any) -> Expr:
        return seq(self._tokens.written(f"{self._opening}{name}>"), self._value((*names, name), schema))

    def _items(self, names: tuple[str, ...], schema: Mapping[str, Any]) -> Expr:
        item = self._element(names, self._item, schema.get("items", {}))
        return times(item, schema.get("minItems", 0), schema.get("maxItems"))

    def _members(self, names: tuple[str, ...], schema: Mapping[str, Any]) -> Expr:
        """Return the declared members in the order of the schema."""
        required = set(schema.get("required", ()))
        found: list[Expr] = []
        for name, declared in schema.get("properties", {}).items():
            member = NOTHING if declared is False or not _is_name(name) else self._element(names, name, declared)
            if name in required and member == NOTHING:
                return NOTHING
            found.append(member if name in required else optional(member) if member != NOTHING else EMPTY)
        if schema.get("additionalProperties", True) is not False:
            self._note("members of objects that no schema declares are not written")
        return seq(*found)
