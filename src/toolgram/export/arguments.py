"""Write the arguments of a call as a whole: Python keyword arguments, and members of a JSON object in any order.

Strategy: each argument is written on its own, as a first and as a later one. The writer decides the order, because it
knows how many arguments its target can count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from toolgram.export import expressions as ex
from toolgram.export.notations import Notation
from toolgram.export.values import Values, other_beginnings

_references = re.compile(r'"\$ref":"#/\$defs/(\w+)"').findall  # in the text of a normal form
_encoded = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_IDENTIFIER = ((65, 90), (95, 95), (97, 122))


def keyword_arguments(
    forms: Sequence[Mapping[str, Any]], root: Mapping[str, Any], note: ex.Note, notation: Notation
) -> ex.Expr:
    """Return the arguments between the parentheses of a call, for each alternative; NOTHING if none can be written."""
    values = Values(root, note, notation)
    options: list[ex.Expr] = []
    for form in forms:
        found = keyword_members(values, form, note)
        if set(form.get("required", ())) <= {each.name for each in found.members}:
            options.append(found if found.members else ex.NOTHING)
    body = ex.choice(*options)
    return values.rules(body) if body != ex.NOTHING else body


def keyword_members(values: Values, form: Mapping[str, Any], note: ex.Note) -> ex.Members:
    """Return the keyword arguments, in any order."""
    found: list[ex.Member] = []
    required = set(form.get("required", ()))
    properties = form.get("properties", {})
    for name, declared in properties.items():
        value = values.value(declared)
        if not name.isidentifier():
            note(f"the parameter {name!r} is not a Python name and cannot be written")
        elif value != ex.NOTHING:
            written = ex.seq(ex.Lit(name + "="), value)
            found.append(ex.Member(name, written, name in required, None, ex.seq(ex.Lit(", "), written)))
    further = form.get("additionalProperties", True)
    if form.get("patternProperties"):
        note("patternProperties is not enforced on Python arguments")
        further = True
    if further is not False:
        first = other_beginnings(tuple(properties), ex.Class(_IDENTIFIER), note)
        if first.ranges:
            name = ex.seq(first, ex.Repeat(ex.Class(((48, 57), *_IDENTIFIER)), 0, 31))
            written = ex.seq(name, ex.Lit("="), values.value(further))
            found.append(ex.Member("", written, False, None, ex.seq(ex.Lit(", "), written)))
    return ex.Members(tuple(found), True)


def schema_text(schema: Any, definitions: Mapping[str, Any]) -> str:
    """Return a part of a normal form as the text of a complete schema, with the definitions that it needs."""
    text = _encoded(schema)
    if '"$ref"' not in text or not isinstance(schema, Mapping):
        return text
    needed: dict[str, Any] = {}
    pending = [text]
    while pending:
        for name in _references(pending.pop()):
            if name not in needed and name in definitions:
                needed[name] = definitions[name]
                pending.append(_encoded(definitions[name]))
    return _encoded({**schema, "$defs": needed})
