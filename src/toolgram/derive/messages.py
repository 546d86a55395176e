"""The messages with which a format is proved, as the template writes them.

Strategy: the template renders each message itself, and nothing that the analysis believes is in the text, so that a
misunderstanding cannot hide.  The values are generated: long texts, blanks at the edges, control characters, quotes,
escapes, markers of the template.  A part of a message counts as printed if the rendering changes with it; then it must
come back, whatever the analysis says.  A part that changes nothing is no part of the proof, and values that a template
prints alike (a text with and without blanks at its edges) are the same value.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from toolgram.derive.budget import look
from toolgram.derive.comparing import markers_of
from toolgram.derive.conversation import CONTENT_AGAIN, REASONING, Conversation
from toolgram.derive.errors import NotExpressible
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import ArgumentsStyle, Case, DiffAnalysisResult, Part, ReasoningMode, Report, Written
from toolgram.observing.probes import CALLS, CITY, CODE, DOCS, LOOKALIKE, NESTED, PING, SIGNS, Call

_TEXT = "Good morning!\nIs 3 < 4, or {not}? `<tag>` [x] \u00fcber."
_THOUGHT = "They greet me.\n\nLet me think it over."
_ASKED = 'Is "a < b'  # the end of what the user said: no marker of the model's, though it looks like one
_SEED, _GENERATED = 20, 4
_PIECES = (
    "plain", "two words", "\n", "\n\n", "  ", "\t", "\rx", "\x01", "\x1b[0m", '"', "'", "\\", "\\n", "&lt;",
    "%20", "{", "}", "[x]", "<b>", "caf\u00e9", "\U0001f389", ", ", ": ", "a=1", "`", "#",
)  # fmt: skip

CASES = (
    Case("content", _TEXT),
    Case("one call", calls=(CITY,)),
    Case("two calls", calls=(CITY, DOCS)),
    Case("three calls", calls=(DOCS, PING, CITY)),
    Case("reasoning and content", _TEXT, _THOUGHT),
    Case("reasoning and a call", None, _THOUGHT, (CITY,)),
    Case("content and a call", _TEXT, None, (CITY,)),
    Case("reasoning, content and a call", _TEXT, _THOUGHT, (DOCS,)),
    Case("content and two calls", _TEXT, None, (DOCS, CITY)),
    Case("nested arguments", calls=(NESTED,)),
    Case("code", calls=(CODE,)),
    Case("text of signs", calls=(SIGNS,)),
    Case("text that looks like JSON", calls=(LOOKALIKE,)),
    Case("no arguments", calls=(PING,)),
    Case("long text", calls=(Call("run", {"code": "lorem ipsum dolor " * 9, "language": "x" * 90}, "cM5oLtF6e"),)),
    Case("numbers", calls=(replace(NESTED, arguments={"query": "1.0", "limit": 10**15, "tags": [1e-7, -0.5, 1e22]}),)),
    Case("one argument", calls=(replace(DOCS, arguments={"query": "owls"}),)),
    Case("many calls", calls=tuple(replace(call, id=f"fP8rOwI{at:02}") for at, call in enumerate((CITY, DOCS) * 6))),
)
_OTHER_PROMPTS = ("content", "one call", "reasoning and content")


def write_messages(template: ChatTemplate, result: DiffAnalysisResult) -> tuple[Written, ...]:
    """Render every message, after every generation prompt. What the template refuses or does not print is left out."""
    writer, found = Writer(template, result), []
    for case, prompt in _cases(result):
        look(f"rendering the messages of the proof ({case.name})")
        try:
            found.append(writer.write(case, prompt))
        except NotExpressible:
            continue
    return tuple(found)


def _cases(result: DiffAnalysisResult) -> Iterator[tuple[Case, str]]:
    first = "on" if "on" in result.prompts else "unset"
    end = result.markers.reasoning_end.strip()
    thinks = result.reasoning_mode is not ReasoningMode.NONE or not end
    for case in (*CASES, *_generated(result), *_endings(result)):
        if not case.reasoning or (thinks and not (end and end in result.prompts[first].opened)):
            yield case, first
    for prompt in result.prompts:
        closed = bool(end) and end in result.prompts[prompt].opened  # the thought is over, whatever it was
        if prompt != first:
            others = (case for case in CASES if case.name in _OTHER_PROMPTS)
            yield from ((case, prompt) for case in others if not (closed and case.reasoning))


def _generated(result: DiffAnalysisResult) -> Iterator[Case]:
    """Yield calls with texts that are made of everything that has a meaning somewhere."""
    draw = random.Random(_SEED)
    pieces = [*_PIECES]
    whole = result.calls is not None and result.calls.arguments.style is not ArgumentsStyle.TAGGED
    if whole:  # JSON tells a marker from a text; a text between markers cannot have them
        pieces += [
            text.strip() for name, text in result.markers.items() if not name.startswith(("reasoning", "content"))
        ]
    for number in range(_GENERATED):
        code = "".join(draw.choice(pieces) for _ in range(4 + 12 * number))
        language = "".join(draw.choice(_PIECES) for _ in range(number % 3))
        yield Case(
            f"generated text {number + 1}", calls=(Call("run", {"code": code, "language": language}, "bL4nKsE5d"),)
        )


def _endings(result: DiffAnalysisResult) -> Iterator[Case]:
    """Yield messages of content that ends where a marker might begin."""
    seen: set[str] = set()
    for _, marker in result.markers.items():
        begun = marker.strip()[:1]
        if begun and not begun.isalnum() and begun not in seen:
            seen.add(begun)
            yield Case(f"content that ends in {begun!r}", f"The smaller one is a {begun}")


class Writer:
    """Renders the messages of the proof. What is printed of a message is asked once for all that have these parts."""

    def __init__(self, template: ChatTemplate, result: DiffAnalysisResult) -> None:
        self.conversation, self.result = Conversation(template, Report()), result
        self.conversation.form, self.conversation.header = result.form, result.header
        self._printed: dict[tuple[str, bool, bool, int], tuple[bool, bool]] = {}

    def write(self, case: Case, prompt: str) -> Written:
        """Write a message after a prompt. Raises NotExpressible if the template does not print all of it."""
        text = self.render(case, prompt)
        if text is None:
            raise NotExpressible("the template refuses it")
        key = prompt, bool(case.content), bool(case.reasoning), len(case.calls)
        if key not in self._printed:
            self._printed[key] = self._prints(case, text, prompt)
        whole, thinks = self._printed[key]
        if not whole:
            raise NotExpressible("the template does not print all of it")
        output = self._cut(self._continued(text, thinks, case, prompt), case, prompt)
        tail = _ASKED + self.result.prompts[prompt].before + self.result.prompts[prompt].text
        return Written(case, prompt, tail, output, self._alike(case, text, prompt))

    def render(self, case: Case, prompt: str) -> str | None:
        """Render a message with the variables of a prompt; None if the template refuses it."""
        variables = self.result.prompts[prompt].variables
        return self.conversation.turn(case.content, case.reasoning, case.calls, variables)

    def _prints(self, case: Case, text: str, prompt: str) -> tuple[bool, bool]:
        """Return whether the rendering changes with every part but a thought, and whether it changes with that."""
        calls = case.calls
        places = {0, 1, len(calls) - 1} & set(range(len(calls)))
        others = [replace(case, calls=(*calls[:at], CALLS[0], *calls[at + 1 :])) for at in places]
        others += [replace(case, content=CONTENT_AGAIN)] if case.content else []
        thinks = bool(case.reasoning) and self.render(replace(case, reasoning=REASONING), prompt) != text
        return all(self.render(other, prompt) != text for other in others), thinks

    def _alike(self, case: Case, text: str, prompt: str) -> Case | None:
        """Return another message that is rendered as this one is: without what is null, without blanks at edges, or
        with its content as a thought."""
        others = [replace(case, content=None, reasoning=case.content)] if case.calls and not case.reasoning else []
        for changed in zip(*(_changed(call.arguments) for call in case.calls), strict=True):
            calls = (replace(call, arguments=each) for call, each in zip(case.calls, changed, strict=True))
            others.append(replace(case, calls=tuple(calls)))
        return next((other for other in others if other != case and self.render(other, prompt) == text), None)

    def _continued(self, text: str, thinks: bool, case: Case, prompt: str) -> str:
        """Return what a model writes after a prompt. A thought that no turn prints is written as the findings say."""
        written, opened = self.result.prompts[prompt].text, self.result.prompts[prompt].opened
        end, answer = self.result.markers.reasoning_end, self.result.markers.content_start.strip()
        if case.reasoning and not thinks and not (opened.strip() and end.strip()):
            return self._dropped(case.reasoning, replace(case, reasoning=None), prompt)
        rest = text[len(written) :]
        begins = text.startswith(written) and (thinks or not case.reasoning)
        if answer and opened.strip().endswith(answer):
            if not begins and (case.reasoning or answer not in text):
                raise NotExpressible("the prompt opens content, and no thought comes before it")
            return rest if begins else text.partition(answer)[2]
        closed = not opened.strip() or end.strip() in opened  # no thought is open
        if begins and (closed or self.result.markers.content_lead or end.strip() in rest):
            return rest
        shown = text if thinks and closed else None
        body = self.conversation.body(shown or self.render(replace(case, reasoning=None), prompt) or "")
        if closed:
            return body
        rest = body.removeprefix(opened).removeprefix(opened.strip())
        return (case.reasoning or "") + end + rest.removeprefix(end)

    def _dropped(self, thought: str, case: Case, prompt: str) -> str:
        """Return a thought as the findings say, as no turn prints one, and the turn without it."""
        markers, text = self.result.markers, self.conversation.body(self.render(case, prompt) or "")
        if not markers.reasoning_end or any(Part.REASONING in shape.parts for shape in self.result.shapes.values()):
            raise NotExpressible("the template prints no thought")
        return markers.reasoning_start + thought + markers.reasoning_end + text

    def _cut(self, output: str, case: Case, prompt: str) -> str:
        """Return the output as far as a server passes it on: up to the token that ends the turn."""
        result = self.result
        ends = (result.turn_end_after_calls if case.calls else result.turn_end, result.turn_end)
        for end in (*ends, result.prompts[prompt].before):  # which may come after any message
            if end and output.endswith(end):
                stop = markers_of(end)[:1]
                return output[: len(output) - len(end)] + (end[: end.index(stop[0])] if stop else end)
        token = self.conversation.template.tokens["eos_token"]
        before, _, after = output.rpartition(token) if token else ("", "", output)
        return output if after.strip() else before or output


def _changed(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the arguments without what is null, and without blanks at edges."""
    some = {key: each for key, each in arguments.items() if each is not None}
    found = [some]
    for given in (arguments, some):
        found.append({key: each.strip() if isinstance(each, str) else each for key, each in given.items()})
    return found


_SHOWN = ("reasoning, content and a call", "content and a call", "two calls", "one call", "reasoning and content")


def shown_outputs(result: DiffAnalysisResult, most: int = 3) -> list[str]:
    """Return some outputs after the usual prompt, for the files of the format: those with most in them, calls first."""
    written = {each.case.name: each for each in result.written if each.prompt == "unset"}
    found: list[str] = []
    for each in (written[name] for name in _SHOWN if name in written):
        if len(found) < most and not (found and not each.case.calls):
            found.append(each.output)
    return found
