"""Does a format read what its template writes?  Messages of every kind, written from the analysis and parsed again.

Strategy: none of the values here was used in the analysis.  Each message is written as the model would go on after the
generation prompt, cut where the server stops, parsed whole and in small pieces, and compared.  What the template cannot
print is no probe.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolgram.derive.budget import look
from toolgram.derive.comparing import markers_of
from toolgram.derive.rebuilding import NotExpressible, continuation
from toolgram.derive.report import Probe
from toolgram.derive.result import DiffAnalysisResult, ReasoningMode, ValueEncoding
from toolgram.formats import Format
from toolgram.message import Message
from toolgram.observing.probes import CITY, CODE, DOCS, NESTED, PING, TOOLS, Call, json_type

_CUT = 3  # characters per delta, besides the whole text at once


@dataclass(frozen=True, slots=True)
class Case:
    """A message to be written and read again."""

    name: str
    content: str | None = None
    reasoning: str | None = None
    calls: tuple[Call, ...] = ()


_TEXT = "Good morning!\nIs 3 < 4, or {not}? `<tag>` [x] \u00fcber."
_THOUGHT = "They greet me.\n\nLet me think it over."
_SIGNS = "see a.b/c?d=1&e=[2]#f | g: h; i=j, (k) ~l~\n- m: n\n# o\n* p > q"
_MARKED = Call("run", {"code": _SIGNS, "language": "-"}, "pQ7rStU2v")
_LOOKALIKE = Call("run", {"code": '{"a": [1, 2]}', "language": "true"}, "nO2pQrS3t")

CASES = (
    Case("content", _TEXT),
    Case("one call", calls=(CITY,)),
    Case("two calls", calls=(CITY, DOCS)),
    Case("three calls", calls=(DOCS, PING, CITY)),
    Case("reasoning and content", _TEXT, _THOUGHT),
    Case("reasoning and a call", None, _THOUGHT, (CITY,)),
    Case("content and a call", _TEXT, None, (CITY,)),
    Case("reasoning, content and a call", _TEXT, _THOUGHT, (DOCS,)),
    Case("nested arguments", calls=(NESTED,)),
    Case("code", calls=(CODE,)),
    Case("text of signs", calls=(_MARKED,)),
    Case("text that looks like JSON", calls=(_LOOKALIKE,)),
    Case("no arguments", calls=(PING,)),
)
_OTHER_PROMPTS = ("content", "one call", "reasoning and content")


def probe(fmt: Format, result: DiffAnalysisResult) -> list[Probe]:
    """Write and read all messages that the template can print. Costs a few milliseconds."""
    return list(probes(fmt, result))


def probes(fmt: Format, result: DiffAnalysisResult, more: Sequence[Case] = ()) -> Iterator[Probe]:
    """The same one by one, with `more` messages behind."""
    for case, prompt in (*_cases(result), *((case, "unset") for case in more)):
        look(f"probing the format ({case.name})")
        case = _as_written(result, case)
        try:
            output = _cut(result, continuation(result, case.content, case.reasoning, case.calls, prompt), case)
        except NotExpressible:
            continue
        yield Probe(case.name, prompt, output, _problem(fmt, result.prompts[prompt].tail, output, case))


_SHOWN = ("reasoning, content and a call", "content and a call", "two calls", "one call", "reasoning and content")


def shown_outputs(result: DiffAnalysisResult, most: int = 3) -> list[str]:
    """Some outputs behind the usual prompt, for the files of the format: those with most in them, calls first."""
    cases = {case.name: case for case, prompt in _cases(result) if prompt == "unset"}
    found: list[str] = []
    for name in _SHOWN:
        case = cases.get(name, Case(""))
        if len(found) == most or (found and not case.calls) or not (case.content or case.calls):
            continue
        try:
            written = continuation(result, case.content, case.reasoning, _as_written(result, case).calls, "unset")
        except NotExpressible:
            continue
        found.append(_cut(result, written, case))
    return found


def _as_written(result: DiffAnalysisResult, case: Case) -> Case:
    """The case without arguments that the template does not write, and with ids that carry the name where they must."""
    form = result.calls
    if form is None or not case.calls:
        return case
    omitted = {kind for kind, style in form.arguments.values.items() if style.encoding is ValueEncoding.OMITTED}
    calls = []
    for at, call in enumerate(case.calls):
        arguments = {key: value for key, value in call.arguments.items() if json_type(value) not in omitted}
        number = f"functions.{call.name}:{at}" if form.name_in_id else call.id
        calls.append(Call(call.name, arguments, number))
    return replace(case, calls=tuple(calls))


def _cases(result: DiffAnalysisResult) -> Iterator[tuple[Case, str]]:
    first = "on" if "on" in result.prompts else "unset"
    end = result.markers.reasoning_end.strip()
    opened = result.prompts[first].opened
    thinks = result.reasoning_mode is not ReasoningMode.NONE
    for case in (*CASES, *_endings(result)):
        if not case.reasoning or (thinks and not (end and end in opened)):
            yield case, first
    for prompt in result.prompts:
        closed = bool(end) and end in result.prompts[prompt].opened  # the thought is over, whatever it was
        if prompt != first:
            others = (case for case in CASES if case.name in _OTHER_PROMPTS)
            yield from ((case, prompt) for case in others if not (closed and case.reasoning))


def _endings(result: DiffAnalysisResult) -> Iterator[Case]:
    """Content that ends where a marker might begin."""
    seen: set[str] = set()
    for _, marker in result.markers.items():
        begun = marker.strip()[:1]
        if begun and not begun.isalnum() and begun not in seen:
            seen.add(begun)
            yield Case(f"content that ends in {begun!r}", f"The smaller one is a {begun}")


def _cut(result: DiffAnalysisResult, output: str, case: Case) -> str:
    """The output as far as a server passes it on: up to the token that ends the turn."""
    for end in (result.turn_end_after_calls if case.calls else result.turn_end, result.turn_end):
        if end and output.endswith(end):
            stop = markers_of(end)[:1]
            return output[: len(output) - len(end)] + (end[: end.index(stop[0])] if stop else end)
    return output


def _problem(fmt: Format, prefix: str, output: str, case: Case) -> str:
    whole = fmt.parse(output, TOOLS, prefix, "stop")
    problem = difference(whole, case)
    if problem:
        return problem
    parser = fmt.parser(TOOLS, prefix)
    sources = []
    for at in range(0, len(output), _CUT):
        sources += [event.source for event in parser.feed(output[at : at + _CUT])]
    sources += [event.source for event in parser.close("stop")]
    if "".join(sources) != output:
        return "the events do not give the text back"
    if _gist(parser.message) != _gist(whole):
        return "cut into small pieces, it is read differently"
    return ""


def _gist(message: Message) -> tuple[str | None, str | None, list[tuple[str, str]]]:
    return message.content, message.reasoning, [(call.name, call.arguments) for call in message.tool_calls]


def difference(message: Message, case: Case) -> str:
    """What a message is read as that the case is not; "" where they are the same."""
    wanted = [(call.name, dict(call.arguments)) for call in case.calls]
    found = [(call.name, _loaded(call.arguments)) for call in message.tool_calls]
    if found != wanted:
        return f"calls {_short(found)} instead of {_short(wanted)}"
    if any(call.status != "complete" for call in message.tool_calls):
        return "a call is not complete"
    for part, text, expected in (
        ("content", message.content, case.content),
        ("reasoning", message.reasoning, case.reasoning),
    ):
        if (text or "") != (expected or ""):
            return f"{part} {_short(text)} instead of {_short(expected)}"
    return ""


def _loaded(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def passed(probes: Sequence[Probe]) -> int:
    """How many came back."""
    return sum(not each.problem for each in probes)
