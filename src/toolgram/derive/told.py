"""The example of a call that a template tells the model to follow, where it prints none itself.

Strategy: what the prompt has more with tools than without is searched for a text that reads as a call with
placeholders: a JSON object with a key for the name and one for the arguments, tags around a name and a key, a Python
call with keywords, or a name and JSON between markers.  The lists of tools are taken out first, which are known by the
names of the probes.  What is found becomes the same pattern that printed calls give, and with it calls are written in
the place of those that the template does not print: the phases then read them like any others.  The texts come from a
template, so that they are bounded, and so is what every expression may match.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from toolgram.derive.budget import look
from toolgram.derive.comparing import markers_of, mirrors
from toolgram.derive.conversation import CALLS, TYPED
from toolgram.derive.result import (
    ArgumentPattern,
    ArgumentsFormat,
    ArgumentSlot,
    ArgumentsStyle,
    CallsFormat,
    JsonStyle,
    Pattern,
    Slot,
    ValueEncoding,
    ValueStyle,
)
from toolgram.limits import LONGEST_EXAMPLE, MAX_INSTRUCTIONS, MOST_JSON_TRIES

_PROBES = tuple(call.name for call in (*CALLS, TYPED))
_decode = json.JSONDecoder(strict=False).raw_decode

_NAME_KEYS = ("name", "function_name", "function", "tool_name", "tool", "action", "func", "api_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "params", "input", "tool_input", "action_input", "kwargs")
_ID_KEYS = ("id", "call_id", "tool_call_id")
_TAG = r"[^\s<>=\"'/]{1,60}"  # the first word of a tag
# Words that stand for a name, for a key, and for all arguments.
_A_NAME = r"[\"'$<{\[]{0,3}(?:[\w.-]{0,30}[ _-])?(?:function|tool|func|api|name)[\w .\d-]{0,30}[\"'>}\]]{0,3}"
_A_WORD = r"(?:\w{0,30}_)?(?:function|tool|func|api|name)\w{0,30}"
_A_KEY = r"[\"'$<{\[]{0,3}(?:[\w.-]{0,30}[ _-])?(?:param|arg|key|k\d)[\w .-]{0,30}[\"'>}\]]{0,3}"
_ALL_ARGUMENTS = r"(?:[\w<{$\[ -]{0,20}(?:arg|param|json|input)[\w ,.>}\]-]{0,40}|\{[^{}]{0,200}\})"

_NAMED_TAG = re.compile(rf"<({_TAG})(=|[ ]\w{{1,20}}=)([\"']?)({_A_NAME}?)\3>", re.IGNORECASE)
_IS_TEXT = r"(?P<is_text>[ ]\w{1,20}=[\"']?)true\|false(?P<end>[\"']?)"
_KEYED_TAG = re.compile(rf"<({_TAG})(=|[ ]\w{{1,20}}=)([\"']?)[^<>\"'|]{{1,60}}?\3(?:{_IS_TEXT})?>")
_KEY_AND_VALUE = re.compile(
    rf"(<({_TAG})>)\s*{_A_KEY}\s*(</\2>)(\s*)(<({_TAG})>)(\s*)[^<>]{{1,80}}?(\s*)(</\6>)", re.IGNORECASE
)
_PYTHON = re.compile(rf"(\[?)(\b{_A_WORD})\(\s*{_A_KEY}\s*=[^()\n]{{1,200}}\)", re.IGNORECASE)
_NAME_LINE = re.compile(rf"\s*({_A_NAME})(\s*)\Z", re.IGNORECASE)
_MARKER_BEFORE = re.compile(r"(<[^<>\s/=][^<>\n]{0,60}>|\[[A-Z_]{2,40}\]|`{3}\w{0,10})\s*\Z")
_MARKER_BEHIND = re.compile(r"\s*(<[^<>\s][^<>\n]{0,60}>|\[/[A-Z_]{2,40}\]|`{3})")
_FOLLOWED_BY_LIST = re.compile(
    r"(<[^<>\s/][^<>\n]{0,40}>|\[[A-Z_]{2,40}\])[\"'`]?(?:[ ,]+[\w-]+){0,6} "
    r"(?:JSON (?:list|array)|(?:list|array) of JSON)",
    re.IGNORECASE,
)
_MARKER = r"(<[^<>\s/][^<>\n]{0,60}>|\[[A-Z_]{2,40}\])"
_NAME_AND_JSON = re.compile(
    rf"((?:{_MARKER}\s*){{1,2}})({_A_NAME})(\s*{_MARKER}\s*){_ALL_ARGUMENTS}(\s*(?:<[^<>\s=][^<>\n]{{0,60}}>))?",
    re.IGNORECASE,
)
_END_OF_LIST = re.compile(r"[\s,.]{0,10}(?:(?:\{[^\]]{0,300}|\.\.\.|…|\([^()\n]{0,60}\))[\s,.]{0,10}){0,2}\]")
_CALLING = re.compile(r"call|invoke|action|use", re.IGNORECASE)
_SCHEMA = re.compile(r"[\"']?(?:description|properties|required|enum)[\"']?\s*:")


@dataclass(frozen=True, slots=True)
class Around:
    """The markers on both sides of an example, and outside of them those around several, with their blanks."""

    before: str = ""
    after: str = ""
    section_start: str = ""
    section_end: str = ""


def find_told(text: str) -> CallsFormat | None:
    """How calls are written, as these instructions tell it; None where they have no example that is understood."""
    text = without_tools(text[:MAX_INSTRUCTIONS])
    readers: tuple[Callable[[str], CallsFormat | None], ...] = (
        _tagged,
        _keys_and_values,
        _name_and_json,
        _json,
        _python,
        _list_behind_marker,
    )
    for reader in readers:
        look("reading what the template tells of calls")
        found = reader(text)
        if found is not None:
            return found
    return None


def without_tools(text: str) -> str:
    """Instructions without the tools that are listed in them as JSON."""
    kept: list[str] = []
    at = tries = 0
    names = [match.start() for match in re.finditer("|".join(_PROBES), text)]
    for match in re.finditer(r"[{\[]", text):
        names = [name for name in names if name > match.start()] if names and names[0] < match.start() else names
        if match.start() < at or not names or names[0] - match.start() > LONGEST_EXAMPLE or tries >= MOST_JSON_TRIES:
            continue
        try:
            _, end = _decode(text, match.start())
        except (ValueError, RecursionError):
            tries += 1
            continue
        if any(name in text[match.start() : end] for name in _PROBES):
            kept.append(text[at : match.start()])
            at = end
    return "\n".join([*kept, text[at:]])


# --- markers around an example --------------------------------------------------------------------------------------


def _around(text: str, start: int, end: int) -> Around:
    """The markers directly around a stretch: openers as far as closers mirror them, or one that nothing closes.

    Where there are two pairs, or the closer stands behind more, the outer pair is around all calls.
    """
    pairs: list[tuple[str, str]] = []
    while len(pairs) < 2:
        opener = _MARKER_BEFORE.search(text, max(0, start - 200), start)
        if opener is None:
            break
        closer = _MARKER_BEHIND.match(text, end)
        before = text[opener.start() : start]
        if closer is None or not _closes(opener.group(1), closer.group(1)):
            return _with_outer(text, end, opener.group(1), before, pairs)
        pairs.append((before, text[end : closer.end()]))
        start, end = opener.start(), closer.end()
    return Around(*pairs[0], *(pairs[1] if len(pairs) > 1 else ())) if pairs else Around()


def _closes(opening: str, closing: str) -> bool:
    return mirrors(opening, closing) or opening[:3] == closing[:3] == "```"


def _with_outer(text: str, end: int, opening: str, before: str, pairs: list[tuple[str, str]]) -> Around:
    """The same with an opener whose closer stands further on, or nowhere."""
    for closer in re.compile(r"<[^<>\s][^<>\n]{0,60}>").finditer(text, end, end + LONGEST_EXAMPLE):
        if mirrors(opening, closer.group()):
            return Around(*(pairs[0] if pairs else ("", "")), before, f"\n{closer.group()}")
    return Around(*pairs[0]) if pairs else Around(before, "")


def _pair_in_prose(text: str) -> Around:
    """An opening marker with its counterpart beside it, as in "within <call></call> tags"."""
    markers = markers_of(text)
    for opening, closing in pairwise(markers):
        if mirrors(opening, closing) and _CALLING.search(opening):
            return Around(f"{opening}\n", f"\n{closing}")
    return Around()


# --- JSON -----------------------------------------------------------------------------------------------------------


def _json(text: str) -> CallsFormat | None:
    """An object that has a key for the name and one for the arguments."""
    for start, end in _objects(text):
        written = text[start:end]
        found = None if _SCHEMA.search(written) else _object_pattern(written)
        if found is None:
            continue
        pattern, listed = found, False
        begin, stop = start, end
        opened = re.search(r"\[\s*\Z", text[max(0, start - 20) : start])
        if opened is not None:
            listed, begin = True, start - len(opened.group())
            closed = re.compile(
                r"[\s,.]{0,10}(?:(?:\{[^\]]{0,300}|\.\.\.|…|\([^()\n]{0,60}\))[\s,.]{0,10}){0,2}\]"
            ).match(text, end)
            stop = closed.end() if closed else end
        word = re.search(r"\b[A-Za-z_]{3,30}\Z", text[max(0, begin - 31) : begin]) if listed else None
        around = Around(word.group()) if word is not None else _around(text, begin, stop)
        if not around.before and not around.section_start:
            around = _pair_in_prose(text)
        return _json_calls(pattern, around, listed)
    return None


def _objects(text: str) -> Iterator[tuple[int, int]]:
    """The stretches between braces that belong together."""
    opened: list[int] = []
    found: list[tuple[int, int]] = []
    for match in re.finditer(r"[{}]", text):
        if match.group() == "{":
            opened.append(match.start())
        elif opened:
            start = opened.pop()
            if match.end() - start <= LONGEST_EXAMPLE:
                found.append((start, match.end()))
    return iter(sorted(found))


def _object_pattern(written: str) -> Pattern | None:
    """The pattern of an object with its keys, the one of its function within OpenAI's wrapper."""
    keys = _keys(written)
    wrapper = ""
    if "function" in keys and not set(keys) & set(_ARGUMENT_KEYS):
        inner = re.search(r"[\"']function[\"']\s*:\s*(\{)", written)
        if inner is not None:
            wrapper, keys = "function", _keys(written[inner.start(1) : -1])
    name = next((key for key in _NAME_KEYS if key in keys), "")
    arguments = next((key for key in _ARGUMENT_KEYS if key in keys), "")
    if not name or not arguments or name == arguments:
        return None
    given: dict[str, tuple[str, Slot, str]] = {name: ('"', Slot.NAME, '"'), arguments: ("", Slot.ARGUMENTS, "")}
    given |= {key: ('"', Slot.ID, '"') for key in keys if key in _ID_KEYS}
    parts: list[str | Slot] = ['{"type": "function", "function": {' if wrapper else "{"]
    for key in keys:
        if key in given:
            before, slot, after = given[key]
            parts += [f'{", " if len(parts) > 1 else ""}"{key}": {before}', slot, after]
    parts.append("}}" if wrapper else "}")
    return _joined(parts)


def _keys(written: str) -> list[str]:
    """The keys of an object, the inner ones left out."""
    depth, flat = 0, []
    for character in written:
        depth -= character in "}]"
        if depth <= 1 and not (character in "}]" and depth == 1):
            flat.append(character)
        depth += character in "{["
    return list(dict.fromkeys(re.findall(r"[\"']?(\b[A-Za-z_]\w{0,40})[\"']?\s{0,4}:", "".join(flat))))


def _joined(parts: Sequence[str | Slot]) -> Pattern:
    """The parts, adjacent texts as one."""
    joined: list[str | Slot] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return tuple(joined)


def _json_calls(pattern: Pattern, around: Around, listed: bool) -> CallsFormat:
    arguments = ArgumentsFormat(ArgumentsStyle.JSON)
    if listed:
        section = f"{around.section_start}{around.before}[", f"]{around.after}{around.section_end}"
        return CallsFormat(pattern, arguments, *section, separator=", ")
    parts = _joined([around.before, *pattern, around.after])
    return CallsFormat(parts, arguments, around.section_start, around.section_end, separator="\n")


def _list_behind_marker(text: str) -> CallsFormat | None:
    """A marker that is said to be followed by a list of JSON, whose keys are the usual ones."""
    match = _FOLLOWED_BY_LIST.search(text)
    if match is None:
        return None
    pattern: Pattern = ('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}")
    return _json_calls(pattern, Around(match.group(1)), True)


# --- tags -----------------------------------------------------------------------------------------------------------


def _tagged(text: str) -> CallsFormat | None:
    """A tag that has the name, and in it tags that have a key each, or all arguments as JSON."""
    for match in _NAMED_TAG.finditer(text):
        tag, equals, quote, _ = match.groups()
        closing = f"</{tag}>"
        end = text.find(closing, match.end(), match.end() + LONGEST_EXAMPLE)
        if end < 0 or not re.search("func|tool|invoke|call", tag, re.IGNORECASE):
            continue
        around = _around(text, match.start(), end + len(closing))
        opening, name_end = f"{around.before}<{tag}{equals}{quote}", f"{quote}>"
        inner = text[match.end() : end]
        found = _keyed(inner)
        if found is not None:
            lead, arguments, tail = found
            pattern = (opening, Slot.NAME, name_end + lead, Slot.ARGUMENTS, f"{tail}{closing}{around.after}")
            return CallsFormat(pattern, arguments, around.section_start, around.section_end, separator="\n")
        if re.match(rf"\s*{_ALL_ARGUMENTS}\s*\Z", inner, re.IGNORECASE):
            pattern = (opening, Slot.NAME, name_end, Slot.ARGUMENTS, f"{closing}{around.after}")
            section = around.section_start, around.section_end
            return CallsFormat(pattern, ArgumentsFormat(ArgumentsStyle.JSON), *section, separator="\n")
    return None


def _keyed(inner: str) -> tuple[str, ArgumentsFormat, str] | None:
    """The arguments inside of such a tag, with the blanks before and behind them."""
    match = _KEYED_TAG.search(inner)
    if match is None or inner[: match.start()].strip():
        return None
    tag, equals, quote = match.groups()[:3]
    closing = f"</{tag}>"
    end = inner.find(closing, match.end())
    if end < 0:
        return None
    value = inner[match.end() : end]
    kind = f"{match['is_text']}{{}}{match['end']}" if match["is_text"] else ""  # says whether the value is text
    before = f"{quote}{kind}>{value[: len(value) - len(value.lstrip())]}"
    after = f"{value[len(value.rstrip()) :]}{closing}"
    rest = inner[end + len(closing) :]
    separator = rest[: len(rest) - len(rest.lstrip())]
    tail = inner[len(inner.rstrip()) :]
    pattern = (f"<{tag}{equals}{quote}", ArgumentSlot.KEY, before, ArgumentSlot.VALUE, after)
    return inner[: match.start()], _tagged_arguments(pattern, separator), tail


def _tagged_arguments(pattern: ArgumentPattern, separator: str) -> ArgumentsFormat:
    """Text as it is, everything else as JSON."""
    before, after = pattern[2], pattern[4]
    assert isinstance(before, str)
    assert isinstance(after, str)
    values = {
        kind: ValueStyle(
            ValueEncoding.RAW if kind == "string" else ValueEncoding.JSON,
            before.replace("{}", "true" if kind == "string" else "false"),
            after,
        )
        for kind in ("string", "integer", "number", "boolean", "null", "array", "object")
    }
    pattern = (*pattern[:2], before.replace("{}", "true"), *pattern[3:])
    return ArgumentsFormat(ArgumentsStyle.TAGGED, JsonStyle(), pattern=pattern, separator=separator, values=values)


def _keys_and_values(text: str) -> CallsFormat | None:
    """A name in a tag, and behind it a tag for each key and one for each value."""
    for match in _KEY_AND_VALUE.finditer(text):
        lead = text[max(0, match.start() - 200) : match.start()]
        named = _NAME_LINE.search(lead)
        opener = _MARKER_BEFORE.search(lead, 0, named.start(1)) if named is not None else None
        if named is None or opener is None:
            continue
        closing = re.compile(r"[^<>]{0,20}(</[^<>\s]{1,60}>)").search(text, match.end())
        while closing is not None and not mirrors(opener.group(1), closing.group(1)):
            closing = re.compile(r"(</[^<>\s]{1,60}>)").search(text, closing.end(), match.end() + LONGEST_EXAMPLE)
        if closing is None:
            continue
        key_open, _, key_close, middle, value_open, _, pad, unpad, value_close = match.groups()
        arguments = _tagged_arguments(
            (
                key_open,
                ArgumentSlot.KEY,
                f"{key_close}{middle}{value_open}{pad}",
                ArgumentSlot.VALUE,
                unpad + value_close,
            ),
            middle,
        )
        before = lead[opener.start() : named.start(1)]
        behind = text[match.end() : closing.start(1)]
        blanks = behind[: len(behind) - len(behind.lstrip())]
        pattern = (before, Slot.NAME, named.group(2), Slot.ARGUMENTS, blanks + closing.group(1))
        return CallsFormat(_joined(pattern), arguments, separator="\n")
    return None


def _name_and_json(text: str) -> CallsFormat | None:
    """A name between markers, and all arguments behind it, as in `<call>name<sep>arguments</call>`."""
    marker = r"(<[^<>\s/][^<>\n]{0,60}>|\[[A-Z_]{2,40}\])"
    found = re.compile(
        rf"((?:{marker}\s*){{1,2}})({_A_NAME})(\s*{marker}\s*){_ALL_ARGUMENTS}(\s*(?:<[^<>\s=][^<>\n]{{0,60}}>))?",
        re.IGNORECASE,
    )
    for match in found.finditer(text):
        first, second = match.group(2), match.group(5)
        if first == second or mirrors(first, second) or "</" in match.group(1):
            continue
        closing = (match.group(6) or "").strip()
        openers = markers_of(match.group(1))
        start = match.group(1).strip()
        section_end = ""
        if len(openers) > 1:
            behind = _MARKER_BEHIND.search(text, match.end(), match.end() + 200)
            section_end = behind.group(1) if behind is not None and mirrors(openers[0], behind.group(1)) else ""
        section = openers[0] if section_end else ""
        pattern = (start.removeprefix(section), Slot.NAME, match.group(4).strip(), Slot.ARGUMENTS, closing)
        return CallsFormat(_joined(pattern), ArgumentsFormat(ArgumentsStyle.JSON), section, section_end)
    return None


# --- Python ---------------------------------------------------------------------------------------------------------


def _python(text: str) -> CallsFormat | None:
    """A function with keywords, in a list or in markers."""
    for match in _PYTHON.finditer(text):
        listed = bool(match.group(1))
        start = match.start()
        end = text.find("]", match.end(), match.end() + LONGEST_EXAMPLE) + 1 if listed else match.end()
        if not end:
            continue
        around = _around(text, start, end)
        if not around.before and not around.section_start:
            around = _pair_in_prose(text)
        if not listed and not around.before and not around.section_start:
            continue
        values = {
            kind: ValueStyle(ValueEncoding.PYTHON_REPR, "=", "")
            for kind in ("string", "integer", "number", "boolean", "null", "array", "object")
        }
        arguments = ArgumentsFormat(
            ArgumentsStyle.TAGGED, pattern=(ArgumentSlot.KEY, "=", ArgumentSlot.VALUE), separator=", ", values=values
        )
        brackets = ("[", "]") if listed else ("", "")
        section = around.section_start + around.before + brackets[0], brackets[1] + around.after + around.section_end
        return CallsFormat(
            (Slot.NAME, "(", Slot.ARGUMENTS, ")"), arguments, *section, separator=", " if listed else "\n"
        )
    return None
