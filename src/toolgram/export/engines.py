"""What llguidance enforces of a normal form with its own `%json`, and the schema that it is given.

Strategy: a keyword that the engine refuses or ignores is removed, and a note says so.  The list comes from experiments
with the pinned version.  The tests sample from the engine and check against the schema, so they find a keyword that is
listed and not enforced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolgram.export.ecmascript import pattern_text, shortened
from toolgram.export.patterns import FORMS_ONLY
from toolgram.export.regexes import regular

Note = Callable[[str], object]

_FORMATS = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"}
_MOST = 2**53  # above this, bounds are kept by the number of digits alone


def for_llguidance(pattern: str) -> str | None:
    """A pattern as llguidance reads it; None if it has no expression."""
    expr = pattern_text(pattern)
    written = None if expr is None else regular(expr)
    return None if written is None else f"^({written})$"


def fitted(schema: Any, note: Note) -> Any:
    """The part of a normal form that llguidance enforces; notes name the rest."""
    if isinstance(schema, list):
        return [fitted(each, note) for each in schema]
    if not isinstance(schema, Mapping) or "enum" in schema:
        return schema
    made: dict[str, Any] = {}
    for key, value in schema.items():
        kept = _FITTED.get(key, _as_it_is)(value, note)
        if kept is not None:
            made[key] = kept
    if "propertyNames" in schema:
        _fit_names(schema, made, note)
    if made.get("type") == "object" and len(made.get("properties", ())) > 1:
        note("objects inside arguments are written in the order of their schema")
    return made


def _as_it_is(value: Any, note: Note) -> Any:
    return value


def _each(value: Mapping[str, Any], note: Note) -> Any:
    return {name: fitted(each, note) for name, each in value.items()}


def _pattern(value: str, note: Note) -> Any:
    found = for_llguidance(value)
    if found is None:
        note(f"llguidance does not enforce the pattern {shortened(value)}")
    return found


def _format(value: str, note: Note) -> Any:
    if value not in _FORMATS:
        note(f"the format {value} is not enforced")
        return None
    if value in FORMS_ONLY:
        note(f"the format {value} is enforced in its form, but not {FORMS_ONLY[value]}")
    return value


def _bound(value: Any, note: Note) -> Any:
    if abs(value) <= _MOST:
        return value
    note(f"llguidance does not enforce the bound {value}")
    return None


def _by_pattern(declared: Mapping[str, Any], note: Note) -> Any:
    made: dict[str, Any] = {}
    for pattern, each in declared.items():
        found = for_llguidance(pattern)
        if found is None:
            note(f"llguidance does not enforce the pattern {shortened(pattern)} of names")
        made[found or ""] = fitted(each, note)
    return made


def _dropped(value: Any, note: Note) -> Any:
    return None


_FITTED: dict[str, Callable[[Any, Note], Any]] = {
    **dict.fromkeys(("properties", "$defs"), _each),
    **dict.fromkeys(("items", "prefixItems", "anyOf", "additionalProperties"), fitted),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _bound),
    "patternProperties": _by_pattern,
    "pattern": _pattern,
    "format": _format,
    "propertyNames": _dropped,
}


def _fit_names(schema: Mapping[str, Any], made: dict[str, Any], note: Note) -> None:
    """What is said of the names of an object; the engine knows one pattern as a kind of names."""
    if _are_by_pattern(schema):
        pattern = for_llguidance(schema["propertyNames"]["pattern"]) or ""
        made["patternProperties"] = {pattern: made.get("additionalProperties", {})}
        made["additionalProperties"] = False
    else:
        note("llguidance does not enforce propertyNames")


def _are_by_pattern(schema: Mapping[str, Any]) -> bool:
    """Whether all that is said of the names of an object is one pattern, which the engine knows as a kind of names."""
    said = schema.get("propertyNames")
    if not isinstance(said, Mapping) or "pattern" not in said or not set(said) <= {"type", "pattern"}:
        return False
    if schema.get("properties") or schema.get("patternProperties") or schema.get("additionalProperties") is False:
        return False
    return pattern_text(said["pattern"]) is not None
