"""Chat templates made of independent pieces, and messages of which the truth is known, to look for silent errors.

Strategy: each axis of a template (turns, thoughts, content, calls, the values of arguments, blanks) has a table of
ways that it may be written; a template is one of each, chosen by a number. What it renders for a message, behind its
own generation prompt and up to what ends the turn, is what a model writes. Nothing of derivation is used for that but
the rendering environment. A row that is read wrongly although the report is `ok` is *silent*, and there may be none.
A row that is lost and has no certain reading by the clauses of `suite/README.md` (`unreadable`) is counted apart.
"""

import ast
import html
import json
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import quote

import toolgram
from tests.json_prefix import value_of
from tests.tables import table
from toolgram.derive.rendering import ChatTemplate

# What opens and closes a turn (R: its role), the end token that a server cuts off, and what answers are called.
TURNS = table(__file__, "turns")
# A thought (@), what an answer without one has in its place, and what the generation prompt opens.
THOUGHTS = table(__file__, "thoughts")
CONTENTS = table(__file__, "contents")
# How calls begin, what stands between two, how they end; what of it only several have; and one call: N its name, A its
# arguments, I its id, X its number from 0.
CALLS = table(__file__, "calls")
VALUES = table(__file__, "values")
ARGUMENTS = {
    "object": "{{ c.function.arguments|tojson }}",
    "indented": "{{ c.function.arguments|tojson(indent=2) }}",
    "compact": "{{ c.function.arguments|tojson(separators=(',', ':')) }}",
}
# Between content and calls, behind the calls, before the calls where nothing stands there.
BETWEEN = ("", "\n", "\n\n", " ", "<|tools|>", "\n<tools>\n")
BEHIND = ("", "\n", "</s>")
ORDERS = ("thought content calls", "thought content calls", "thought content calls", "thought calls content")
# What is escaped, values or thoughts and content, and the filter that does it.
ESCAPED = (*[""] * 12, "values e", "values urlencode", "text e", "text tojson")


@dataclass(frozen=True, slots=True)
class Made:
    """A template, by what it was made of."""

    number: int
    parts: dict[str, str]
    source: str
    end: str


# What a message has: content, a thought, calls.
Meant: TypeAlias = tuple[str, str, Sequence[dict[str, Any]]]


def made(number: int) -> Made:
    """The template of that number."""
    draw = random.Random(number)
    pick = {
        "turns": draw.choice(list(TURNS)), "thoughts": draw.choice([*THOUGHTS, "none", "none"]),
        "contents": draw.choice([*CONTENTS, "plain", "plain", "plain", "plain"]), "calls": draw.choice(list(CALLS)),
        "values": draw.choice([*VALUES, "mixed", "mixed", "mixed"]), "arguments": draw.choice([*ARGUMENTS, "object"]),
        "between": draw.choice([*BETWEEN, "", "\n"]), "behind": draw.choice([*BEHIND, "", ""]),
        "order": draw.choice(ORDERS), "header": draw.choice(["once", "once", "once", "each part", "each call"]),
        "strip": draw.choice(["", "", "", " | trim"]), "system": draw.choice(["tools", "tools", "nothing"]),
        "prompt": draw.choice(["asked", "asked", "asked", "always"]), "escaped": draw.choice(ESCAPED),
    }  # fmt: skip
    if pick["order"].endswith("content") or pick["header"] == "each call":
        pick["behind"] = pick["behind"].replace("</s>", "")  # it ends the turn, and more of the turn follows
    return Made(number, pick, _source(pick), TURNS[pick["turns"]][2])


def _source(pick: dict[str, str]) -> str:
    opening, closing, _, called = TURNS[pick["turns"]]
    begin = opening.replace("R", called)
    thought, absent, opened = THOUGHTS[pick["thoughts"]]
    again = _said(closing + begin) if pick["header"] == "each part" else ""
    thinks = "{{ " + _filtered(pick, "text", "m.reasoning_content") + " }}"
    lines = ["{{ bos_token }}"]
    if pick["system"] == "tools":
        listed = _said(opening.replace("R", "system")) + "{{ 'Functions:\n' ~ (tools|tojson) }}" + _said(closing)
        lines.append("{% if tools %}" + listed + "{% endif %}")
    user = opening.replace("R", "user") or "[INST] "
    shut = "\n\n" if pick["turns"] == "words" else closing if opening else " [/INST]"
    other = _said(user).replace("user", "' ~ m.role ~ '") if "user" in user else _said(user)
    parts = {
        "thought": "{% if m.reasoning_content %}" + _said(thought).replace("@", "' }}" + thinks + "{{ '", 1)
        + (again if thought else "") + "{% else %}" + _said(absent) + "{% endif %}",
        "content": "{% if m.content %}" + _content(pick) + "{% endif %}",
        "calls": _calls(pick, begin, closing),
        "": "{% if m.content and m.tool_calls %}" + _said(pick["between"]) + again + "{% endif %}",
    }  # fmt: skip
    first, second, third = pick["order"].split()
    body = "".join(parts[each] for each in (first, second, "", third) if each != "thought" or thought)
    lines.append(
        "{% for m in messages %}{% if m.role == 'assistant' %}" + _said(begin) + body + _said(closing)
        + "{% else %}" + other + "{{ m.content }}" + _said(shut) + "{% endif %}{% endfor %}"
    )  # fmt: skip
    return "".join(lines) + "{% if add_generation_prompt %}" + _said(begin + opened) + "{% endif %}"


def _filtered(pick: dict[str, str], what: str, expression: str) -> str:
    """An expression, escaped if all such text is."""
    escaped, _, name = pick["escaped"].partition(" ")
    return f"({expression})|string|{name}" if escaped == what else expression


def _said(text: str) -> str:
    """A text as Jinja writes it."""
    return "{{ '" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "' }}" if text else ""


def _filled(text: str, values: Mapping[str, str]) -> str:
    """A text with expressions, or pieces of a template, for its $X."""
    named = [values[piece] if at % 2 else _said(piece) for at, piece in enumerate(re.split(r"\$([A-Z])", text))]
    return "".join("{{ " + each + " }}" if at % 2 and "{" not in each else each for at, each in enumerate(named))


def _content(pick: dict[str, str]) -> str:
    before, after = CONTENTS[pick["contents"]]
    if before == "trim":
        return "{{ " + _filtered(pick, "text", "m.content | trim") + " }}"
    return _said(before) + "{{ " + _filtered(pick, "text", "m.content" + pick["strip"]) + " }}" + _said(after)


def _calls(pick: dict[str, str], begin: str, closing: str) -> str:
    start, between, end, call, *tagged = CALLS[pick["calls"]]
    if not call:
        return ""
    if pick["header"] == "each call":
        between = end + closing + begin + start
    if tagged:
        argument, separator = tagged
        value = VALUES[pick["values"]].removeprefix("{{ ").removesuffix(" }}")
        value = "{{ " + _filtered(pick, "values", value) + " }}"
        pieces = _filled(argument, {"K": "k", "Y": "('true' if v is string else 'false')", "V": value})
        arguments = "{% for k, v in c.function.arguments.items() %}" + pieces
        arguments += ("{% if not loop.last %}" + _said(separator) + "{% endif %}" if separator else "") + "{% endfor %}"
    else:
        arguments = ARGUMENTS[pick["arguments"]]
    named = {"N": "c.function.name", "I": "c.id", "X": "loop.index0"}
    named |= {"A": arguments, "S": "c.function.arguments|tojson|tojson", "P": "c.function.arguments|string"}
    written = _filled(call, named)
    return (
        "{% if m.tool_calls %}" + _said(start) + "{% for c in m.tool_calls %}" + written + "{% if not loop.last %}"
        + _said(between) + "{% endif %}{% endfor %}" + _said(end) + _said(pick["behind"]) + "{% endif %}"
    )  # fmt: skip


MESSAGES: dict[str, Meant] = table(__file__, "messages")


def _tool(name: str, **types: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {key: {"type": kind} for key, kind in types.items()}}
    return {"type": "function", "function": {"name": name, "description": "d", "parameters": parameters}}


SEARCHED = {"query": "string", "limit": "integer", "filters": "object", "tags": "array", "exact": "boolean"}
TOOLS = [
    _tool("get_weather", city="string", days="integer"), _tool("search_docs", **SEARCHED, score="number"),
    _tool("get_time"), _tool("run_code", code="string", language="string"),
]  # fmt: skip
_USER = {"role": "user", "content": "Quelle heure?"}


def outputs(template: Made) -> Iterator[tuple[str, str, str]]:
    """For each message its name, the prompt, and what the model writes. What a template does not print is left out."""
    compiled = ChatTemplate(template.source, "<s>", "</s>")
    prompt = compiled.render([_USER], tools=TOOLS, add_generation_prompt=True)
    printed, _, opened = THOUGHTS[template.parts["thoughts"]]
    for name, (content, thought, calls) in MESSAGES.items():
        text = _rendered(compiled, (content, thought, calls))
        if thought and (not printed or thought.partition("\n")[0] not in text):
            continue
        if calls and not CALLS[template.parts["calls"]][3]:
            continue
        if not text.startswith(prompt):
            if not opened or printed:
                continue
            text = prompt + "Hm.\n</think>\n\n" + text[len(prompt.removesuffix("<think>\n")) :]
        output = text[len(prompt) :]
        at = output.rfind(template.end)
        yield name, prompt, output[:at] if at >= 0 else output


def _rendered(compiled: ChatTemplate, meant: Meant) -> str:
    content, thought, calls = meant
    message: dict[str, Any] = {"role": "assistant", "content": content}
    message |= {"reasoning_content": thought} if thought else {}
    made_calls = [{"id": f"a1b2c3d4{at}", "type": "function", "function": call} for at, call in enumerate(calls)]
    message |= {"tool_calls": made_calls} if calls else {}
    return compiled.render([_USER, message], tools=TOOLS)


def twin(template: Made, name: str) -> Meant | None:
    """Another message that the template renders as this one: then no parser can read either. None if there is none.

    Tried are the messages that a reader might take it for without any of the template's markers in a text: a value of
    another kind that its parameter may have, or without blanks at its edges; a thought that is an answer, or no part of
    the message; a call or an argument less.
    """
    compiled = ChatTemplate(template.source, "<s>", "</s>")
    text = _rendered(compiled, MESSAGES[name])
    return next((other for other in _others(*MESSAGES[name]) if _rendered(compiled, other) == text), None)


def _others(content: str, thought: str, calls: Sequence[dict[str, Any]]) -> Iterator[Meant]:
    if thought:
        yield content, "", calls
        yield (thought, "", calls) if not content else (content, content, calls)
    elif content and calls:
        yield "", content, calls
    for at, call in enumerate(calls):
        before, after, arguments = calls[:at], calls[at + 1 :], call["arguments"]
        if len(calls) > 1:
            yield content, thought, (*before, *after)
        for key, value in arguments.items():
            fewer = {other: each for other, each in arguments.items() if other != key}
            changed = [fewer, *({**arguments, key: each} for each in _alike(call["name"], key, value))]
            yield from ((content, thought, (*before, {**call, "arguments": each}, *after)) for each in changed)


def _alike(name: str, key: str, value: Any) -> Iterator[Any]:
    """Other values that the parameter may have and that may be written as this one."""
    functions = {tool["function"]["name"]: tool["function"]["parameters"]["properties"] for tool in TOOLS}
    kind = functions[name][key]["type"]
    if kind == "string":
        tries = [value.strip(), value.rstrip(), value.lstrip(), value.strip("\n"), f"{value} ", f"{value}\n"]
        yield from (each for each in dict.fromkeys(tries) if each != value)
    elif kind in ("object", "array"):
        yield from ([None] if value else [])


_WRITTEN: dict[str, Callable[[Any], str]] = {
    "mixed": lambda value: value if isinstance(value, str) else json.dumps(value),
    "json": json.dumps,
    "str": str,
    "quoted": lambda value: f'"{value}"' if isinstance(value, str) else json.dumps(value),
    "single": lambda value: f"'{value}'" if isinstance(value, str) else str(value),
    "spaced": lambda value: f" {value if isinstance(value, str) else json.dumps(value)} ",
}
_ENCODED: dict[str, Callable[[str], str]] = {"values e": html.escape, "values urlencode": quote}


def unreadable(template: Made, name: str) -> str:
    """Say why this row may have no certain reading, by the row alone; "" if it has one.

    Either another message is rendered as this one, or the contract (`suite/README.md`) has no reading for it in
    general: what follows a marker in a text, or what is around calls, may still decide it.
    """
    return "another message is rendered alike" if twin(template, name) is not None else _without_reading(template, name)


def _without_reading(template: Made, name: str) -> str:
    _, thought, calls = MESSAGES[name]
    parts = template.parts
    opening = THOUGHTS[parts["thoughts"]][0].partition("@")[0]
    if thought and THOUGHTS[parts["thoughts"]][0] and not (opening or any(THOUGHTS[parts["thoughts"]][1:])):
        return "no marker opens the thought, and an answer has none either"
    values = [value for call in calls for value in call["arguments"].values()]
    shape = CALLS[parts["calls"]]
    if len(shape) < 6 or not values:
        return ""
    encode = _ENCODED.get(parts["escaped"], str)
    written = [encode(_WRITTEN[parts["values"]](value)) for value in values]
    if parts["calls"].startswith("python"):
        return "" if all(map(_is_literal, written, values)) else "Python cannot read the text"
    _, _, _, call, argument, separator = shape
    ends = {argument.partition("$V")[2].partition("$")[0] + separator, call.partition("$A")[2]} - {""}
    texts = [text for text, value in zip(written, values, strict=True) if isinstance(value, str)]
    inside = any(end.strip(" ") in text for end in ends for text in texts if end.strip(" "))
    quote = {"quoted": '"', "single": "'"}.get(parts["values"], "")
    inside = inside or (bool(quote) and any(quote in text[1:-1] for text in texts))
    return "a text has in it what ends it" if inside else ""


def _is_literal(text: str, value: Any) -> bool:
    try:
        return bool(ast.literal_eval(text.strip()) == value)
    except (ValueError, SyntaxError):
        return value_of(text) == value and not isinstance(value, str)


def wrong_rows(template: Made, fmt: toolgram.Format) -> list[tuple[str, str, str]]:
    """The rows that are not read as they were meant: name, output, what is wrong."""
    found = []
    for name, prompt, output in outputs(template):
        content, thought, calls = MESSAGES[name]
        message = fmt.parse(output, tools=TOOLS, prefix=prompt[-300:], finish_reason="stop")
        printed, _, opened = THOUGHTS[template.parts["thoughts"]]
        meant = {
            "content": content,
            "reasoning": "Hm." if opened and not printed else thought,
            "calls": [(call["name"], call["arguments"]) for call in calls],
        }
        read = {
            "content": message.content or "",
            "reasoning": message.reasoning or "",
            "calls": [(call.name, value_of(call.arguments)) for call in message.tool_calls],
        }
        wrong = [f"{part}: {read[part]!r} for {meant[part]!r}" for part in meant if read[part] != meant[part]]
        wrong += [call.status for call in message.tool_calls if call.status != "complete"]
        if wrong:
            found.append((name, output, "; ".join(wrong)))
    return found
