"""Outputs with JSON calls, and the messages they mean: one writer per format, written by hand.

They add what walks through a grammar do not have: the expected message. A format needs no writer here.
"""

from __future__ import annotations

import json

from hypothesis import strategies as st

from tests.generators.meant_outputs import BLANKS, Output, Page, opening, prose, say, think
from tests.generators.values import Json, json_arguments, json_texts

JSON_NAMES = st.sampled_from(
    ["f", "get_weather", "search", "a.b.c", "get-time", "ns:tool", "天气", "say_hello", "name"]
)
PLAIN_NAMES = st.sampled_from(["f", "get_weather", "search", "a.b", "get-time", "say_hello2"])
IDS = st.text("abcXYZ0189", min_size=9, max_size=9)


@st.composite
def envelope(
    draw: st.DrawFn, arguments_keys: tuple[str, ...], with_type: bool, small: bool
) -> tuple[str, str, dict[str, Json], str | None]:
    """A JSON object that is a call: text, name, arguments, and the id that the message must show."""
    name = draw(JSON_NAMES)
    arguments = draw(json_arguments(small))
    id = draw(st.none() | IDS)
    written = draw(json_texts(arguments))
    if draw(st.integers(0, 9)) == 0:  # the arguments as a JSON string
        written = json.dumps(written, ensure_ascii=draw(st.booleans()))
    key = draw(st.sampled_from(arguments_keys))
    members = [("name", draw(json_texts(name))), (key, written)]
    if id is not None:
        members.append(("id", json.dumps(id)))
    if with_type and draw(st.booleans()):
        members.append(("type", '"function"'))
    members = list(draw(st.permutations(members))) if draw(st.booleans()) else members
    order = [member[0] for member in members]
    shown = id if id is not None and order.index("id") < order.index(key) else None
    comma, colon, edge = draw(st.sampled_from([(", ", ": ", ""), (",", ":", ""), (" ,\n", " : ", "\n")]))
    text = "{" + edge + comma.join(f'"{k}"{colon}{v}' for k, v in members) + edge + "}"
    return text, name, arguments, shown


# -------------------------------------------------------------------------------------- well-formed outputs per format


@st.composite
def llama3_json(draw: st.DrawFn, small: bool) -> Output:
    page = Page()
    count = draw(st.integers(0, 1 if small else 3))
    blanks = st.sampled_from(["", " "]) if small else BLANKS
    if count == 0 or draw(st.booleans()):
        page.prose(draw(opening("llama3_json")))
    for number in range(count):
        if number == 0:
            page.write(draw(blanks))
            if draw(st.booleans()):
                page.write("<|python_tag|>" + draw(st.sampled_from(["", "", " "])))
        elif draw(st.booleans()):
            page.write(draw(blanks))
            page.prose(draw(prose("llama3_json")))
            page.write(draw(blanks))
        else:
            page.write(draw(st.sampled_from(["", " ", "\n", ";", "; ", " ; ", ",", ", ", ";\n"])))
        page.call(*draw(envelope(("parameters", "parameters", "arguments"), True, small)))
    if count and draw(st.booleans()):
        page.write(draw(blanks))
        page.prose(draw(prose("llama3_json")))
    if draw(st.booleans()):
        page.write(draw(blanks) + draw(st.sampled_from(["<|eom_id|>", "<|eot_id|>"])))
    elif count == 0:
        page.segments[-1] += (tail := draw(BLANKS))
        page.write(tail)
    return page.output()


@st.composite
def mistral_v3(draw: st.DrawFn, small: bool) -> Output:
    page = Page()
    blocks = draw(st.integers(0, 1 if small else 2))
    if blocks == 0 or draw(st.booleans()):
        page.prose(draw(opening("mistral_v3")))
    for number in range(blocks):
        if number and draw(st.booleans()):
            page.write(draw(BLANKS))
            page.prose(draw(prose("mistral_v3")))
        page.write(draw(BLANKS) + "[TOOL_CALLS]" + draw(st.sampled_from(["", " ", "  "])))
        if draw(st.integers(0, 3)):
            edge = draw(st.sampled_from(["", "", " ", "\n"]))
            page.write("[" + edge)
            for item in range(draw(st.integers(1, 1 if small else 3))):
                page.write(draw(st.sampled_from([", ", ",", " ,\n"])) if item else "")
                page.call(*draw(envelope(("arguments",), False, small)))
            page.write(edge + "]")
        else:
            page.call(*draw(envelope(("arguments",), False, small)))
        page.write(draw(st.sampled_from(["", "", "[/TOOL_CALLS]", " [/TOOL_CALLS]"])))
    if blocks and draw(st.booleans()):
        page.write(draw(BLANKS))
        page.prose(draw(prose("mistral_v3")))
    if blocks == 0:
        page.segments[-1] += (tail := draw(BLANKS))
        page.write(tail)
    return page.output()


@st.composite
def mistral_v11(draw: st.DrawFn, small: bool) -> Output:
    page = Page()
    count = draw(st.integers(0, 1 if small else 3))
    gaps = st.sampled_from(["", "", "", " ", "\n", "        "])
    thinking = draw(st.booleans())
    if thinking:
        page.write("[THINK]" + draw(BLANKS))
        page.think(draw(prose("mistral_v11")))
        page.write(draw(BLANKS) + "[/THINK]")
    if count == 0 or draw(st.booleans()):
        page.write(draw(BLANKS) if thinking else "")
        page.prose(draw(prose("mistral_v11") if thinking else opening("mistral_v11")))
    for number in range(count):
        if number and draw(st.booleans()):
            page.write(draw(BLANKS))
            page.prose(draw(prose("mistral_v11")))
        page.write(draw(BLANKS))
        name, arguments = draw(PLAIN_NAMES), draw(json_arguments(small))
        id = draw(st.none() | IDS)
        text = "[TOOL_CALLS]" + draw(gaps) + name + draw(gaps)
        if id is not None:
            text += "[CALL_ID]" + draw(gaps) + id + draw(gaps) + "[ARGS]" + draw(gaps)
        elif draw(st.booleans()):
            text += "[ARGS]" + draw(gaps)
        text += draw(json_texts(arguments))
        page.call(text, name, arguments, id)
    if count and draw(st.booleans()):
        page.write(draw(BLANKS))
        page.prose(draw(prose("mistral_v11")))
    if count == 0:
        page.segments[-1] += (tail := draw(BLANKS))
        page.write(tail)
    return page.output()


def call_list(draw: st.DrawFn, page: Page, small: bool, keys: tuple[str, ...] = ("arguments",)) -> None:
    edge = draw(st.sampled_from(["", "", " ", "\n"]))
    page.write("[" + edge)
    for item in range(draw(st.integers(1, 1 if small else 3))):
        page.write(draw(st.sampled_from([", ", ",", " ,\n"])) if item else "")
        page.call(*draw(envelope(keys, False, small)))
    page.write(edge + "]")


@st.composite
def functionary_v3_2(draw: st.DrawFn, small: bool) -> Output:
    page = Page()
    for _ in range(draw(st.integers(1, 1 if small else 3))):
        match draw(st.sampled_from(["all", "call", "call", "bare"])):
            case "all":
                page.write(">>>all\n" + draw(BLANKS))
                page.prose(draw(prose("functionary_v3_2")))
            case "call":
                name, arguments = draw(PLAIN_NAMES), draw(json_arguments(small))
                text = ">>>" + name + draw(st.sampled_from(["\n", "\n", "", " ", "\r\n"])) + draw(json_texts(arguments))
                page.call(text, name, arguments)
            case _ if not page.text or (page.calls and page.calls[-1].end == len(page.text)):
                page.write("\n" if page.text else "")  # a quote directly after an object is damage
                say(draw, page, "functionary_v3_2")
        page.write(draw(st.sampled_from(["", "", "<|eot_id|>"])))
    return page.output()


@st.composite
def gpt_oss(draw: st.DrawFn, small: bool) -> Output:
    page = Page()
    if draw(st.integers(0, 5)) == 0:
        page.prose(draw(opening("gpt_oss")))
    ends = st.sampled_from(["<|end|>", "<|end|>", "<|return|>", "<|call|>"])
    starts = st.sampled_from(["<|start|>assistant", "<|start|>assistant", ""])
    for number in range(draw(st.integers(0 if page.text else 1, 1 if small else 3))):
        if number or page.text:
            page.write(draw(BLANKS) + draw(ends) + draw(BLANKS) + draw(starts))
        match draw(st.sampled_from(["analysis", "final", "commentary", "call", "call"])):
            case "analysis":
                page.write("<|channel|>analysis<|message|>" + draw(BLANKS))
                page.think(draw(prose("gpt_oss")))
            case "call":
                name, arguments = draw(PLAIN_NAMES), draw(json_arguments(small))
                page.call(draw(_harmony_header(name)) + draw(json_texts(arguments)), name, arguments)
            case channel:
                kind = draw(st.sampled_from(["", "", " <|constrain|>json", " json", "<|constrain|>json"]))
                page.write(f"<|channel|>{channel}{kind}<|message|>" + draw(BLANKS))
                page.prose(draw(prose("gpt_oss")))
    if draw(st.booleans()):
        page.write(draw(BLANKS) + draw(ends))
    return page.output()


def _harmony_header(name: str) -> st.SearchStrategy[str]:
    channels = st.sampled_from(["commentary", "commentary", "analysis", "final"]).map("<|channel|>{}".format)
    prefixes = st.just(f"to=functions.{name}") | st.just(f"to={name}")
    kinds = st.sampled_from(["", " json", " <|constrain|>json", "<|constrain|>json", " code", " "])
    first = st.tuples(st.sampled_from(["", " "]), prefixes, st.sampled_from(["", " "]), channels, kinds)
    second = st.tuples(channels, st.just(" "), prefixes, kinds)
    alone = st.tuples(st.sampled_from(["", " "]), prefixes, kinds)
    rows = st.one_of(first, second, alone).map("".join)
    return st.tuples(rows, st.just("<|message|>"), st.sampled_from(["", "", " ", "\n"])).map("".join)


@st.composite
def granite_3(draw: st.DrawFn, small: bool) -> Output:
    page = Page()
    blocks = draw(st.integers(0, 1 if small else 2))
    thinking = think(draw, page, "granite_3", "<think>", "</think>")
    if thinking and draw(st.booleans()):
        page.write(draw(BLANKS) + "<response>")
        say(draw, page, "granite_3")
        page.write(draw(BLANKS) + "</response>")
    elif blocks == 0 or draw(st.booleans()):
        say(draw, page, "granite_3")
    for number in range(blocks):
        if number and draw(st.booleans()):
            say(draw, page, "granite_3")
        page.write(draw(BLANKS) + draw(st.sampled_from(["<|tool_call|>", "<|tool_call|>", "<tool_call>"])))
        page.write(draw(st.sampled_from(["", "", " ", "\n"])))
        if draw(st.integers(0, 3)):
            call_list(draw, page, small)
        else:
            page.call(*draw(envelope(("arguments",), False, small)))
    if blocks and draw(st.booleans()):
        say(draw, page, "granite_3")
    page.write(draw(st.sampled_from(["", "", "<|end_of_text|>"])))
    return page.output()


@st.composite
def hermes(draw: st.DrawFn, small: bool) -> Output:
    page = Page()
    count = draw(st.integers(0, 1 if small else 3))
    edges = st.sampled_from(["\n", "\n", "", " ", "\r\n"])
    think(draw, page, "hermes", "<think>", "</think>")
    if count == 0 or draw(st.booleans()):
        say(draw, page, "hermes")
    closed = True
    for number in range(count):
        if number and closed and draw(st.booleans()):
            say(draw, page, "hermes")
        page.write(draw(BLANKS) + "<tool_call>" + draw(edges))
        if draw(st.integers(0, 4)):
            page.call(*draw(envelope(("arguments", "arguments", "parameters"), False, small)))
        else:
            call_list(draw, page, small, ("arguments", "parameters"))
        closed = draw(st.integers(0, 4)) > 0
        page.write(draw(edges) + ("</tool_call>" if closed else ""))
    if count and closed and draw(st.booleans()):
        say(draw, page, "hermes")
    page.write(draw(st.sampled_from(["", "", "<|im_end|>"])))
    return page.output()
