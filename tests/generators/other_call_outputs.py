"""Outputs with Python calls and with tagged arguments, and the messages they mean: written by hand."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import strategies as st

from tests.generators.meant_outputs import BLANKS, LEAST_ONE_BLANK, Call, Output, Page, opening, prose, say, think
from tests.generators.values import PYTHON_STYLES, Json, keyword_arguments, values

PYTHON_NAMES = st.sampled_from(["f", "get_weather", "search", "a.b.c", "_private", "Say2"])


@st.composite
def _python_call(draw: st.DrawFn, small: bool) -> tuple[str, str, dict[str, Json]]:
    style = draw(PYTHON_STYLES)
    name = draw(PYTHON_NAMES)
    arguments = draw(keyword_arguments(small))
    equals = draw(st.sampled_from(["=", "=", " = "]))
    edge = draw(st.sampled_from(["", "", " ", "\n"]))
    inner = style.comma.join(f"{key}{equals}{style.write(value)}" for key, value in arguments.items())
    return f"{name}({edge}{inner}{edge})", name, arguments


def _until_certain(text: str, call: Call) -> Call:
    """A call in a list is certain at the comma or bracket after it; after a string, at the next call's parenthesis."""
    at = min(at for at in (text.find(c, call.end) for c in ",]") if at >= 0)
    if text[at] == "," and text[: call.end - 1].rstrip().endswith(("'", '"')):
        at = text.find("(", at)
    return replace(call, certain=1 + at)


@st.composite
def llama4_pythonic(draw: st.DrawFn, small: bool) -> Output:
    page = Page()
    lists = draw(st.integers(0, 1 if small else 2))
    if lists == 0 or draw(st.booleans()):
        page.prose(draw(opening("llama4_pythonic")))
    for number in range(lists):
        if number and draw(st.booleans()):
            page.write(draw(LEAST_ONE_BLANK))
            page.prose(draw(prose("llama4_pythonic")))
        page.write(draw(LEAST_ONE_BLANK))
        tagged = draw(st.booleans())
        page.write("<|python_start|>" if tagged else "")
        edge = draw(st.sampled_from(["", "", " ", "\n"]))
        page.write("[" + edge)
        for item in range(draw(st.integers(1, 1 if small else 3))):
            page.write(draw(st.sampled_from([", ", ",", ",\n"])) if item else "")
            page.call(*draw(_python_call(small)))
        page.write(edge + "]")
        page.calls = [_until_certain(page.text, call) for call in page.calls]
        page.write("<|python_end|>" if tagged else "")
    if lists and draw(st.booleans()):
        page.write(draw(LEAST_ONE_BLANK))
        page.prose(draw(prose("llama4_pythonic")))
    if lists == 0:
        page.segments[-1] += (tail := draw(BLANKS))
        page.write(tail)
    return page.output()


_RAW = (
    "Paris",
    "a </parameter> b",
    "{not json}",
    "007",
    "+49",
    "x\n\ny",
    '"q"',
    "<b>",
    "Truely",
    "é\u2028",
    "[1, 2",
    "-",
)


@st.composite
def _tagged_call(draw: st.DrawFn, small: bool) -> tuple[str, str, dict[str, Json]]:
    """A call in Qwen3-Coder's markers: literals as JSON, and text that is no literal as it stands."""
    name = draw(st.sampled_from(["f", "get_weather", "a.b-c"]))
    keys = draw(st.lists(st.sampled_from(["a", "b", "city", "long key"]), unique=True, max_size=1 if small else 3))
    made: dict[str, Json] = {}
    text = f"<function={name}>" + draw(st.sampled_from(["\n", "", " "]))
    for key in keys:
        value = draw(st.one_of(st.sampled_from(_RAW), values(3).filter(lambda value: not isinstance(value, str))))
        edge = draw(st.sampled_from(["\n", "\n", ""]))
        written = value if isinstance(value, str) else json.dumps(value)
        made[key] = value
        text += f"<parameter={key}>{edge}{written}{edge}</parameter>" + draw(st.sampled_from(["\n", "", "\r\n"]))
    return f"{text}</function>", name, made


@st.composite
def qwen3_coder(draw: st.DrawFn, small: bool) -> Output:
    page = Page()
    count = draw(st.integers(0, 1 if small else 3))
    edges = st.sampled_from(["\n", "\n", "", " "])
    think(draw, page, "qwen3_coder", "<think>", "</think>")
    if count == 0 or draw(st.booleans()):
        say(draw, page, "qwen3_coder")
    for number in range(count):
        if number and draw(st.booleans()):
            say(draw, page, "qwen3_coder")
        page.write(draw(BLANKS) + "<tool_call>" + draw(edges))
        page.call(*draw(_tagged_call(small)))
        page.write(draw(edges) + "</tool_call>")
    if count and draw(st.booleans()):
        say(draw, page, "qwen3_coder")
    page.write(draw(st.sampled_from(["", "", "<|im_end|>"])))
    return page.output()


@st.composite
def lfm2(draw: st.DrawFn, small: bool) -> Output:
    page = Page()
    lists = draw(st.integers(0, 1 if small else 2))
    think(draw, page, "lfm2", "<think>", "</think>")
    if lists == 0 or draw(st.booleans()):
        say(draw, page, "lfm2")
    for number in range(lists):
        if number and draw(st.booleans()):
            say(draw, page, "lfm2")
        edge = draw(st.sampled_from(["", "", " ", "\n"]))
        page.write(draw(BLANKS) + "<|tool_call_start|>" + draw(st.sampled_from(["", "", " "])) + "[" + edge)
        for item in range(draw(st.integers(1, 1 if small else 3))):
            page.write(draw(st.sampled_from([", ", ",", ",\n"])) if item else "")
            page.call(*draw(_python_call(small)))
        page.write(edge + "]" + draw(st.sampled_from(["<|tool_call_end|>", "<|tool_call_end|>", " "])))
        page.calls = [_until_certain(page.text, call) for call in page.calls]
    if lists and draw(st.booleans()):
        say(draw, page, "lfm2")
    page.write(draw(st.sampled_from(["", "", "<|im_end|>"])))
    return page.output()
