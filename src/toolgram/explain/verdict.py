"""The verdict of an explanation: a few sentences that say what came of the calls of an output, and why.

Strategy: what is wrong comes first, a shipped format that reads more comes last. The sentences use the evidence that
the explanation has collected, and no text is read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from toolgram.explain.explanation import Candidate, Explanation, Held, Step
from toolgram.formats import Format, get_format
from toolgram.message import ToolCall
from toolgram.spec.data import END

LONGEST_QUOTE = 40


def verdict(fmt: Format, text: str, told: Explanation) -> list[str]:
    calls = told.message.tool_calls
    better = told.alternatives[0] if told.alternatives and told.alternatives[0].better else None
    if not calls and not told.message.malformed:
        if not text.strip():
            return ["The output is empty." if not text else "The output is nothing but blanks."]
        return ["No call was found.", _elsewhere(fmt, better, told) if better else _no_call(fmt, told)]
    sentences = [*_broken_calls(fmt, text, told), *_unknown_tools(told)]
    if not sentences or better:
        sentences += _lost_held_calls(told)
    if better:
        sentences.append(_elsewhere(fmt, better, told))
    if not sentences:
        found = f"Everything was parsed: {_count(len(calls), 'call')} ({_names(calls)})"
        oddities = len(told.anomalies)
        return [
            f"{found}, {'one deviation' if oddities == 1 else f'{oddities} deviations'} repaired."
            if oddities
            else f"{found}; nothing to explain."
        ]
    complete = sum(call.status == "complete" for call in calls)
    count = len(calls) + len(told.message.malformed)
    if complete == count:
        sentences.insert(
            0, f"{_count(complete, 'call')} {'was' if complete == 1 else 'were'} parsed ({_names(calls)})."
        )
    elif count > 1:
        sentences.insert(0, f"{complete} of {count} calls {'is' if complete == 1 else 'are'} complete.")
    return sentences


def _elsewhere(fmt: Format, better: Candidate, told: Explanation) -> str:
    """Return where to look instead, and by which marker one could have seen it."""
    found = (
        f"finds {_count(better.calls, 'call')} in it"
        if better.calls
        else f"finds the beginning of {_count(better.unfinished, 'call')} in it"
    )
    command = f"`toolgram parse --format {better.name}` {found}"
    mine = set(fmt.program.literals.values())
    foreign = [marker for marker in get_format(better.name).program.special.values() if marker not in mine]
    for piece in told.pieces:
        if piece.owner in ("content", "malformed", "reasoning"):
            for marker in foreign:
                if marker in piece.text:
                    return f"The text holds a marker of {better.name} ({marker}), and {command}."
    if better.calls and any(call.status == "complete" for call in told.message.tool_calls):
        return f"It may be another format: {command} and leaves {_count(better.text_left, 'character')} as text."
    return f"It reads like another format: {command}."


def _no_call(fmt: Format, told: Explanation) -> str:
    """Return what came nearest to being a call, and what spoke against it."""
    candidates = [region for region in told.held if region.outcome != "committed"]
    if candidates:
        near = max(candidates, key=lambda region: (region.named, region.end - region.start))
        return f"{_what(near)} could have been one, but {near.why}."
    for anomaly in told.anomalies:
        return f"At offset {anomaly.offset}, {anomaly.words}."
    for region in told.held:
        return f"{_what(region)} is of the right form and holds none."
    for marker in fmt.program.special.values():
        for piece in told.pieces:
            if piece.owner == "content" and marker in piece.text:
                at = piece.start + piece.text.index(marker)
                return (
                    f"{marker} at offset {at} has no meaning there; "
                    "if the prompt had written what goes before it, pass that as the prefix."
                )
    tail = next((piece.text for piece in reversed(told.pieces) if piece.text), "")
    for marker in fmt.program.special.values():
        if any(tail.endswith(marker[:length]) for length in range(2, len(marker))):
            return f"The output ended inside a marker ({marker})."
    if told.message.content is None and told.message.reasoning is not None:
        return "All of the text is reasoning, and nothing in it begins like a call."
    return f"Nothing in the text begins like a call of {fmt.name}."


def _broken_calls(fmt: Format, text: str, told: Explanation) -> Iterator[str]:
    truncated = [call for call in told.message.tool_calls if call.status == "truncated"]
    if truncated:
        last = next((step.source for step in reversed(told.path) if step.trigger == END), "")
        state = fmt.program.states.get(last)
        if state is not None and state.meaning in ("arguments", "argument_key", "value"):
            where = "inside its arguments"
        elif state is not None and state.held:
            where = "right after its name"
        else:
            where = "before the call was closed"
        yield f"1 call ({_names(truncated)}) is truncated: the output ended {where}."
    breaks = [step for step in told.path if step.trigger == "malformed" and step.offset is not None]
    breaks = [step for step in breaks if "fail_call" in fmt.program.states[step.source].row["malformed"].actions]
    broken = told.message.malformed
    for call, step in zip(broken, breaks, strict=False):
        yield f"1 call ({name_in_words(call.name)}) is malformed: {_unexpected(fmt, text, step)}."


def _unexpected(fmt: Format, text: str, step: Step) -> str:
    """Return what did not fit at a step at which something certain broke."""
    state, at = fmt.program.states[step.source], step.offset or 0
    if at >= len(text):
        return f"the output ended, {state.why}"
    if state.meaning == "value":
        return f"the value of an argument stops being what it began as at offset {at} ({text[at]!r})"
    if state.meaning == "arguments":
        language = "Python literals" if state.python else "JSON"
        return f"its arguments stop being {language} at offset {at} ({text[at]!r})"
    return f"{text[at]!r} at offset {at} does not fit: {state.why}"


def _unknown_tools(told: Explanation) -> Iterator[str]:
    names = [anomaly.text for anomaly in told.anomalies if anomaly.kind == "unknown_tool"]
    if names:
        yield f"No tool was declared by the name of {', '.join(map(name_in_words, dict.fromkeys(names)))}."


def _lost_held_calls(told: Explanation) -> Iterator[str]:
    """Yield what was lost beside calls: one that got as far as its name, and structure that could not be read."""
    for region in told.held:
        if region.outcome != "committed" and region.named:
            yield f"{_what(region)} was taken for text: {region.why}."
            return
    for anomaly in told.anomalies:
        if anomaly.kind == "malformed":
            yield f"At offset {anomaly.offset}, {anomaly.words}."
            return


# --- words --------------------------------------------------------------------------------------------------------


def quote(text: str) -> str:
    return repr(text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1] + "…")


def _what(region: Held) -> str:
    if not region.text:
        return "What the prompt had begun"
    return f"What begins at offset {region.start} ({quote(region.text)})"


def name_in_words(name: str) -> str:
    """Return a name as a sentence can have it: a model may put anything into it."""
    return name if name.isprintable() and len(name) <= LONGEST_QUOTE else quote(name)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _names(calls: Sequence[ToolCall]) -> str:
    names = [name_in_words(call.name) for call in calls]
    return ", ".join(names) if len(names) <= 5 else f"{', '.join(names[:4])} and {len(names) - 4} more"
