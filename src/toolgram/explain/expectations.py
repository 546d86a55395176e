"""What could have followed at the place of a rejection, by the state or the open island."""

from __future__ import annotations

from toolgram.islands.json_envelope import Envelope
from toolgram.islands.json_values import COLON
from toolgram.program.state import StateProgram
from toolgram.runtime.position import Position


def expected(at: Position | None) -> str:
    """Return what could have followed."""
    assert at is not None, "a rejection has a place"
    envelope = at.island if isinstance(at.island, Envelope) else None
    if at.source.object_is_held:  # an open bracket, which may still be text
        return _expected_after_bracket(at.reader, envelope)
    return _expected_keys(at.state, envelope) or at.state.why


def _expected_after_bracket(reader: str, envelope: Envelope | None) -> str:
    if reader == "python":
        return "expected arguments as name=value, each value a Python literal"
    in_string = reader == "string" or (envelope is not None and envelope.string is not None)
    return "expected an object in the string" if in_string else "expected a key in double quotes, or '}'"


def _expected_keys(state: StateProgram, envelope: Envelope | None) -> str:
    """Return the keys that a call may have in this place, or "" if something else is expected."""
    if envelope is None or state.any_key or not envelope.parents:
        return ""
    if not (envelope.scanner.in_key or envelope.scanner.state == COLON):
        return ""
    paths = [path.rpartition(".") for path in state.key_paths]
    keys = [key for parent, _, key in paths if parent == envelope.parents[-1]]
    return f"a call has only these keys here: {', '.join(dict.fromkeys(keys))}" if keys else ""
