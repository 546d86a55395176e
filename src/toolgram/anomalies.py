"""What a clean output would not have: the kinds of anomalies, one closed list, and what each says.

Strategy: a kind says what the model did and what was made of it; the anomaly says where.  Readers note them as events
without characters, in the order of the text, so that a place is never computed twice (see `runtime.anomaly_log`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

KINDS: Mapping[str, str] = {
    # repaired, or read all the same
    "unclosed_value": "the closing marker of a value is missing; what closes it comes behind it",
    "unclosed_envelope": "the arguments are whole; brackets or closing markers around them are missing",
    "unclosed_arguments": "brackets inside the arguments are missing; the call's closing marker closes them",
    "surplus_closer": "a bracket or marker closes what is closed already, or not open; it is dropped",
    "unfinished_marker": "a closing marker is cut off at the end of the output; it is dropped",
    "repaired_json": "JSON that is wrong in one place; the only reading that it has is taken",
    "repaired_python": "Python that is wrong in one place: a set, quotes inside a string, no comma, a bare key",
    "unopened_reasoning": "a marker closes reasoning that nothing opened; it is dropped",
    "assumed_reasoning": "the prompt opened reasoning, and nothing closed it",
    "unusual_form": "a call in a form that models write by mistake; a member too many or a marker twice is dropped",
    # kept as written
    "after_turn": "text after the end of the turn, where the model goes on as somebody else, is dropped",
    "quoted_call": "a call that the model only mentions, in code or in a thought, is text; `calls` has it",
    "stray_marker": "a marker that opens or closes nothing there is text of a value or a name",
    "repeated_argument": "an argument of this name came before; both are passed on",
    "undeclared_argument": "no parameter of this name was declared; its value is read as text",
    "missing_argument": "a required argument was not given",
    "unexpected_type": "the value of this argument is not of a declared type",
    "ambiguous_ids": "not every such text is a token, so none counts; `feed` takes pieces `(text, id)` to say which",
    "unproven_types": "how this format spells the types of values is not known; the value is text",
    "unknown_tool": "no tool of this name was declared",
    # not a whole call
    "truncated": "the output ended before the call did",
    "malformed": "what was to be a call could not be read",
}

REPAIRED = frozenset(list(KINDS)[: list(KINDS).index("repeated_argument")])  # kinds of what was mended


@dataclass(slots=True)
class Anomaly:
    """Something that a clean output would not have.

    `kind` is one of `KINDS`; `start` is the offset in characters at which it was noticed, or at which dropped `text`
    begins. `text` is what it is about:
    the name of a call or of an argument, or at most 1 000 characters of the output. `call` is the index of the call
    that it belongs to, or None. `why` says it in plain words. Only `quoted_call` has `calls`: the name and the
    arguments of each call that the text would be.
    """

    kind: str
    start: int
    text: str
    call: int | None = None
    why: str = ""
    calls: list[dict[str, str]] | None = None
