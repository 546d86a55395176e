"""What llguidance enforces of a normal form with its own `%json`, and the schema that it is given.

Strategy: a keyword that the engine refuses or ignores is removed, and a note says so.  The list comes from experiments
with the pinned version.  The tests sample from the engine and check against the schema, so they find a keyword that is
listed and not enforced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolgram.export.patterns import FORMS_ONLY, pattern_text

Note = Callable[[str], object]

_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"}
_MOST = 2**53  # above this, bounds are kept by the number of digits alone


def fitted(schema: Any, note: Note) -> Any:
    """The part of a normal form that llguidance enforces; notes name the rest."""
    if isinstance(schema, list):
        return [fitted(each, note) for each in schema]
    if not isinstance(schema, Mapping) or "enum" in schema:
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            made[key] = {name: fitted(each, note) for name, each in value.items()}
        elif key == "patternProperties":
            made[key] = _by_pattern(value, note)
        elif key in ("items", "prefixItems", "anyOf", "additionalProperties"):
            made[key] = fitted(value, note)
        elif key == "propertyNames":
            if not _are_by_pattern(schema):
                note("llguidance does not enforce propertyNames")
        elif key == "pattern" and pattern_text(value) is None:
            note(f"llguidance does not enforce the pattern {value!r}")
        elif key == "format" and value not in _FORMATS:
            note(f"the format {value} is not enforced")
        elif key == "format" and value in FORMS_ONLY:
            note(f"the format {value} is enforced in its form, but not {FORMS_ONLY[value]}")
            made[key] = value
        elif key in _BOUNDS and abs(value) > _MOST and isinstance(value, int):
            note(f"llguidance does not enforce the bound {value}")
        else:
            made[key] = value
    if _are_by_pattern(schema):
        made["patternProperties"] = {schema["propertyNames"]["pattern"]: made.get("additionalProperties", {})}
        made["additionalProperties"] = False
    if made.get("type") == "object" and len(made.get("properties", ())) > 1:
        note("objects inside arguments are written in the order of their schema")
    return made


def _are_by_pattern(schema: Mapping[str, Any]) -> bool:
    """Whether all that is said of the names of an object is one pattern, which the engine knows as a kind of names."""
    said = schema.get("propertyNames")
    if not isinstance(said, Mapping) or "pattern" not in said or not set(said) <= {"type", "pattern"}:
        return False
    if schema.get("properties") or schema.get("patternProperties") or schema.get("additionalProperties") is False:
        return False
    return pattern_text(said["pattern"]) is not None


_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def _by_pattern(declared: Mapping[str, Any], note: Note) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for pattern, each in declared.items():
        if pattern_text(pattern) is None:
            note(f"llguidance does not enforce the pattern {pattern!r} of names")
            pattern = ""
        made[pattern] = fitted(each, note)
    return made
