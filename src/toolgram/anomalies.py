"""The kinds of anomalies: one closed list, and what each of them reports.

Strategy: a kind says what the model did and how it was read; the anomaly says where.  Readers note them as events
without characters, in the order of the text, so that no place is computed twice (see `runtime.anomaly_log`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

KINDS: Mapping[str, str] = {
    # repaired, or read anyway
    "unclosed_value": "the closing marker of a value is missing; a later marker closes the value",
    "unclosed_envelope": "the arguments are complete, but brackets or closing markers around them are missing",
    "unclosed_arguments": "closing brackets are missing inside the arguments; the call's closing marker closes them",
    "surplus_closer": "a bracket or marker closes something that is not open; it is dropped",
    "unfinished_marker": "the output ends inside a closing marker; what there is of it is dropped",
    "repaired_json": "JSON with one mistake that can be read in one way only; it is read that way",
    "repaired_python": "Python with one mistake (a set, quotes inside a string, no comma, a bare key) is repaired",
    "unopened_reasoning": "a marker closes reasoning that was never opened; it is dropped",
    "assumed_reasoning": "the prompt opened reasoning and nothing closed it; the text is reasoning",
    "unusual_form": "a call in a form that models write by mistake, or a member or marker too many, which is dropped",
    # kept as written
    "after_turn": "text after the end of the turn is dropped; the model continues as somebody else",
    "quoted_call": "a call that the model only quotes, in code or in reasoning, is text; `calls` lists it",
    "stray_marker": "a marker inside a value or a name opens or closes nothing; it is kept as text",
    "repeated_argument": "an argument with this name was given before; both are passed on",
    "undeclared_argument": "the function declares no parameter with this name; the value is read as text",
    "missing_argument": "a required argument is missing",
    "unexpected_type": "the value does not have a declared type",
    "ambiguous_ids": "the ids do not say which of these texts are tokens, so none is; feed pieces `(text, id)`",
    "unproven_types": "it is not known how this format writes the types of values; the value is text",
    "unknown_tool": "no tool with this name was declared",
    # not a whole call
    "truncated": "the output ended before the call did",
    "malformed": "the call could not be read",
}

REPAIRED = frozenset(list(KINDS)[: list(KINDS).index("repeated_argument")])  # kinds of repairs


@dataclass(slots=True)
class Anomaly:
    """Something that a clean output would not have.

    `kind` is one of `KINDS`. `start` is the offset in characters at which it was noticed, or at which the dropped
    `text` begins. `text` is the name of the call or argument, or at most 1,000 characters of the output. `call` is the
    index of the call, or None. `why` explains it in plain words. Only `quoted_call` sets `calls`: the name and the
    arguments of each call that was quoted.
    """

    kind: str
    start: int
    text: str
    call: int | None = None
    why: str = ""
    calls: list[dict[str, str]] | None = None

    @property
    def page(self) -> str:
        """The address of the page of its kind within the documentation."""
        return page_of(self.kind)

    @property
    def said(self) -> str:
        """What it is, with the address of its page, as people read it."""
        return f"{self.why} (see {self.page})"


def page_of(kind: str) -> str:
    """Return the address of the page of a kind within the documentation."""
    return f"reference/anomalies/{kind}/"
