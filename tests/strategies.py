"""What models write, and what they write by mistake: Hypothesis strategies over every format.

Strategy: a well-formed output is built from segments whose meaning is known beforehand (prose, reasoning, calls,
seams), so the expected message is an answer of the construction and not of any parser. `mutated` breaks such an output
in a few places; `noise` is a random row of the fragments that a format's own lexer has to worry about. A format that
has no generator here is covered by its example and by the literals of its grammar.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st

import toolgram

Json = Any


@dataclass(frozen=True)
class Call:
    """A call as it was written: what it means, and where its text stands.

    `end` is where all its text has been written, `certain` where nothing but a call can have been meant.
    """

    name: str
    arguments: dict[str, Json]
    start: int
    end: int
    certain: int
    id: str | None = None  # the id the message must have; None where any will do


@dataclass(frozen=True)
class Output:
    """A well-formed output and the message it means. `known` is False where only the text is known to be good."""

    text: str
    content: str | None = None
    reasoning: str | None = None
    calls: tuple[Call, ...] = ()
    known: bool = True


@dataclass
class _Page:
    """An output being written: keeps the text and its meaning side by side."""

    text: str = ""
    segments: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.text += text

    def prose(self, text: str) -> None:
        self.segments.append(text)
        self.text += text

    def think(self, text: str) -> None:
        self.reasoning.append(text)
        self.text += text

    def call(self, text: str, name: str, arguments: dict[str, Json], id: str | None = None) -> None:
        start = len(self.text)
        self.text += text
        self.calls.append(Call(name, arguments, start, len(self.text), len(self.text), id))

    def output(self) -> Output:
        content = " ".join(self.segments)
        return Output(
            self.text,
            content if content.strip() else None,
            " ".join(self.reasoning) or None,
            tuple(self.calls),
        )


# ---------------------------------------------------------------------------------------------------- values and prose

NASTY_STRINGS = (
    "",
    " ",
    "}",
    "{",
    '"',
    "'",
    "\\",
    '\\"',
    "]",
    ")",
    "[",
    "[TOOL_CALLS]",
    "[/TOOL_CALLS]",
    "[ARGS]",
    "[/THINK]",
    "<|python_tag|>",
    "<|python_end|>",
    "<|eot_id|>",
    '{"name": "inner", "parameters": {}}',
    "[inner(a=1)]",
    "a\nb\tc",
    "é你👍",
    "\u2028\u0000\u007f",
    ", b=2",
    "/",
)


def strings() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(NASTY_STRINGS), st.text(st.characters(codec="utf-8"), max_size=8))


def values(max_leaves: int = 6) -> st.SearchStrategy[Json]:
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**12), 10**20),
        st.floats(allow_nan=False, allow_infinity=False),
        strings(),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(strings(), inner, max_size=3)),
        max_leaves=max_leaves,
    )


_IDENTIFIERS = st.sampled_from(["a", "b", "name", "query", "from", "arguments", "parameters", "id", "x1", "_y", "city"])


def json_arguments(small: bool) -> st.SearchStrategy[dict[str, Json]]:
    keys = st.one_of(_IDENTIFIERS, strings())
    return st.dictionaries(keys, values(1 if small else 6), max_size=1 if small else 4)


def keyword_arguments(small: bool) -> st.SearchStrategy[dict[str, Json]]:
    return st.dictionaries(_IDENTIFIERS, values(1 if small else 6), max_size=1 if small else 4)


_WORDS = (
    "Sure.",
    "Here is",
    "naïve",
    "你好",
    "👍",
    "a;b",
    "x, y",
    '"quoted"',
    "it's",
    "back\\slash",
    "50%",
    "<b>",
    "1 < 2",
    "\t-",
)
_PROSE: dict[str, tuple[str, ...]] = {
    "llama3_json": ("{searchTool}", '{"a": 1}', "{ return {}; }", "[1, 2]", "<|py", '{"name": "Bingo", "age": 30}'),
    "llama4_pythonic": ("[1, 2, 3]", "items[0]", "f(a=1)", "{}", "[link](there)", "<|py", "['f', {'a': 1}]"),
    "mistral_v3": ("v[1, 2]", "x{}", "[TOOL", 'as in {"name": "f", "arguments": {}}', "items[0]"),
    "mistral_v11": ("[1, 2]", "{}", "[TOOL", "[A", "f{}", '{"a": 1}', "[THIN"),
    "functionary_v3_2": (">> 1", "all", "a >> b", '{"a": 1}', "f\n{}", "<|eot", "python\nprint(1)"),
    "gpt_oss": ("<|chan", "functions.f", "analysis", "<|message", '{"a": 1}', "json", "for <|constrain|>"),
    "granite_3": ("[1, 2]", '[{"a": 1}]', "<|tool", "<thin", "an <response>", "{}", "</think"),
    "qwen3_coder": ("<tool", "</tool_call>", "<function=f>", "</parameter>", "<param", "</thin", "{}"),
    "hermes": ("<tool", "</tool_call", '{"a": 1}', "[1, 2]", "<interface>", "</thin", "{}"),
    "lfm2": ("[1, 2]", "[f(a=1)]", "<|tool_call", "items[0]", "<interface>", "</thin", "f()"),
}
_BLANKS = st.sampled_from(["", " ", "\n", "  ", "\n\n", " \t\r\n"])
_LEAST_ONE_BLANK = st.sampled_from([" ", "\n", "\n\n", " \t\r\n"])


def prose(name: str) -> st.SearchStrategy[str]:
    """Text that is content wherever it stands: no blank at its ends, no character that a seam could claim."""
    words = st.sampled_from(_WORDS + _PROSE[name])
    gaps = st.sampled_from([" ", " ", "  ", "\n", ". "])
    rows = st.lists(st.tuples(words, gaps), min_size=1, max_size=5)
    return rows.map(lambda row: "".join(word + gap for word, gap in row).strip())


def opening(name: str) -> st.SearchStrategy[str]:
    """Prose that may begin an output: the blanks before it touch no marker."""
    return st.tuples(_BLANKS, prose(name)).map("".join)


# ------------------------------------------------------------------------------------------------------------- writers


def json_texts(value: Json) -> st.SearchStrategy[str]:
    """`value` as models write JSON: tight or loose, on one line or several, escaped or not."""
    return st.tuples(
        st.booleans(), st.sampled_from([(", ", ": "), (",", ":"), (" , ", " : ")]), st.sampled_from([None, None, 2])
    ).map(lambda style: json.dumps(value, ensure_ascii=style[0], separators=style[1], indent=style[2]))


@dataclass(frozen=True)
class _PythonStyle:
    quote: str
    python_words: bool  # True, None or true, null
    tuples: bool
    ascii: bool
    adjacent: bool
    comma: str

    def write(self, value: Json) -> str:
        if value is None or isinstance(value, bool):
            return repr(value) if self.python_words else json.dumps(value)
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, list):
            inner = self.comma.join(self.write(v) for v in value)
            if self.tuples:
                return f"({inner},)" if len(value) == 1 else f"({inner})"
            return f"[{inner}]"
        if isinstance(value, dict):
            return "{" + self.comma.join(f"{self.string(k)}: {self.write(v)}" for k, v in value.items()) + "}"
        return repr(value)

    def string(self, text: str) -> str:
        if self.adjacent and len(text) > 1:
            return f"{self.quoted(text[:1])} {self.quoted(text[1:])}"
        return self.quoted(text)

    def quoted(self, text: str) -> str:
        return self.quote + "".join(map(self.character, text)) + self.quote

    def character(self, c: str) -> str:
        named = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", self.quote: "\\" + self.quote}
        if c in named:
            return named[c]
        if c < " " or c == "\x7f" or (self.ascii and c > "~"):
            return (
                f"\\x{ord(c):02x}" if c < "\u0100" else f"\\u{ord(c):04x}" if c < "\U00010000" else f"\\U{ord(c):08x}"
            )
        return c


_PYTHON_STYLES = st.builds(
    _PythonStyle,
    quote=st.sampled_from(["'", '"']),
    python_words=st.booleans(),
    tuples=st.booleans(),
    ascii=st.booleans(),
    adjacent=st.booleans(),
    comma=st.sampled_from([", ", ",", ",\n  "]),
)

_JSON_NAMES = st.sampled_from(
    ["f", "get_weather", "search", "a.b.c", "get-time", "ns:tool", "天气", "say_hello", "name"]
)
_PLAIN_NAMES = st.sampled_from(["f", "get_weather", "search", "a.b", "get-time", "say_hello2"])
_PYTHON_NAMES = st.sampled_from(["f", "get_weather", "search", "a.b.c", "_private", "Say2"])
_IDS = st.text("abcXYZ0189", min_size=9, max_size=9)


@st.composite
def _envelope(
    draw: st.DrawFn, arguments_keys: tuple[str, ...], with_type: bool, small: bool
) -> tuple[str, str, dict[str, Json], str | None]:
    """A JSON object that is a call: text, name, arguments, and the id that the message must show."""
    name = draw(_JSON_NAMES)
    arguments = draw(json_arguments(small))
    id = draw(st.none() | _IDS)
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
def _llama3_json(draw: st.DrawFn, small: bool) -> Output:
    page = _Page()
    count = draw(st.integers(0, 1 if small else 3))
    blanks = st.sampled_from(["", " "]) if small else _BLANKS
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
        page.call(*draw(_envelope(("parameters", "parameters", "arguments"), True, small)))
    if count and draw(st.booleans()):
        page.write(draw(blanks))
        page.prose(draw(prose("llama3_json")))
    if draw(st.booleans()):
        page.write(draw(blanks) + draw(st.sampled_from(["<|eom_id|>", "<|eot_id|>"])))
    elif count == 0:
        page.segments[-1] += (tail := draw(_BLANKS))
        page.write(tail)
    return page.output()


@st.composite
def _python_call(draw: st.DrawFn, small: bool) -> tuple[str, str, dict[str, Json]]:
    style = draw(_PYTHON_STYLES)
    name = draw(_PYTHON_NAMES)
    arguments = draw(keyword_arguments(small))
    equals = draw(st.sampled_from(["=", "=", " = "]))
    edge = draw(st.sampled_from(["", "", " ", "\n"]))
    inner = style.comma.join(f"{key}{equals}{style.write(value)}" for key, value in arguments.items())
    return f"{name}({edge}{inner}{edge})", name, arguments


def _until_certain(text: str, call: Call) -> Call:
    """`[f()` in prose is not a call yet: without arguments, the comma or bracket after a call decides."""
    if call.arguments:
        return call
    return replace(call, certain=1 + min(at for at in (text.find(c, call.end) for c in ",]") if at >= 0))


@st.composite
def _llama4_pythonic(draw: st.DrawFn, small: bool) -> Output:
    page = _Page()
    lists = draw(st.integers(0, 1 if small else 2))
    if lists == 0 or draw(st.booleans()):
        page.prose(draw(opening("llama4_pythonic")))
    for number in range(lists):
        if number and draw(st.booleans()):
            page.write(draw(_LEAST_ONE_BLANK))
            page.prose(draw(prose("llama4_pythonic")))
        page.write(draw(_LEAST_ONE_BLANK))
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
        page.write(draw(_LEAST_ONE_BLANK))
        page.prose(draw(prose("llama4_pythonic")))
    if lists == 0:
        page.segments[-1] += (tail := draw(_BLANKS))
        page.write(tail)
    return page.output()


@st.composite
def _mistral_v3(draw: st.DrawFn, small: bool) -> Output:
    page = _Page()
    blocks = draw(st.integers(0, 1 if small else 2))
    if blocks == 0 or draw(st.booleans()):
        page.prose(draw(opening("mistral_v3")))
    for number in range(blocks):
        if number and draw(st.booleans()):
            page.write(draw(_BLANKS))
            page.prose(draw(prose("mistral_v3")))
        page.write(draw(_BLANKS) + "[TOOL_CALLS]" + draw(st.sampled_from(["", " ", "  "])))
        if draw(st.integers(0, 3)):
            edge = draw(st.sampled_from(["", "", " ", "\n"]))
            page.write("[" + edge)
            for item in range(draw(st.integers(1, 1 if small else 3))):
                page.write(draw(st.sampled_from([", ", ",", " ,\n"])) if item else "")
                page.call(*draw(_envelope(("arguments",), False, small)))
            page.write(edge + "]")
        else:
            page.call(*draw(_envelope(("arguments",), False, small)))
        page.write(draw(st.sampled_from(["", "", "[/TOOL_CALLS]", " [/TOOL_CALLS]"])))
    if blocks and draw(st.booleans()):
        page.write(draw(_BLANKS))
        page.prose(draw(prose("mistral_v3")))
    if blocks == 0:
        page.segments[-1] += (tail := draw(_BLANKS))
        page.write(tail)
    return page.output()


@st.composite
def _mistral_v11(draw: st.DrawFn, small: bool) -> Output:
    page = _Page()
    count = draw(st.integers(0, 1 if small else 3))
    gaps = st.sampled_from(["", "", "", " ", "\n", "        "])
    thinking = draw(st.booleans())
    if thinking:
        page.write("[THINK]" + draw(_BLANKS))
        page.think(draw(prose("mistral_v11")))
        page.write(draw(_BLANKS) + "[/THINK]")
    if count == 0 or draw(st.booleans()):
        page.write(draw(_BLANKS) if thinking else "")
        page.prose(draw(prose("mistral_v11") if thinking else opening("mistral_v11")))
    for number in range(count):
        if number and draw(st.booleans()):
            page.write(draw(_BLANKS))
            page.prose(draw(prose("mistral_v11")))
        page.write(draw(_BLANKS))
        name, arguments = draw(_PLAIN_NAMES), draw(json_arguments(small))
        id = draw(st.none() | _IDS)
        text = "[TOOL_CALLS]" + draw(gaps) + name + draw(gaps)
        if id is not None:
            text += "[CALL_ID]" + draw(gaps) + id + draw(gaps) + "[ARGS]" + draw(gaps)
        elif draw(st.booleans()):
            text += "[ARGS]" + draw(gaps)
        text += draw(json_texts(arguments))
        page.call(text, name, arguments, id)
    if count and draw(st.booleans()):
        page.write(draw(_BLANKS))
        page.prose(draw(prose("mistral_v11")))
    if count == 0:
        page.segments[-1] += (tail := draw(_BLANKS))
        page.write(tail)
    return page.output()


def _think(draw: st.DrawFn, page: _Page, name: str, opening_tag: str, closing_tag: str) -> bool:
    """Perhaps some reasoning in its tags; whether there is any."""
    thinking = draw(st.booleans())
    if thinking:
        page.write(opening_tag + draw(_BLANKS))
        page.think(draw(prose(name)))
        page.write(draw(_BLANKS) + closing_tag)
    return thinking


def _say(draw: st.DrawFn, page: _Page, name: str) -> None:
    """Prose: where nothing stands before it, blanks that begin it belong to it; elsewhere they touch a marker."""
    if page.text:
        page.write(draw(_BLANKS))
        page.prose(draw(prose(name)))
    else:
        page.prose(draw(opening(name)))


def _call_list(draw: st.DrawFn, page: _Page, small: bool, keys: tuple[str, ...] = ("arguments",)) -> None:
    edge = draw(st.sampled_from(["", "", " ", "\n"]))
    page.write("[" + edge)
    for item in range(draw(st.integers(1, 1 if small else 3))):
        page.write(draw(st.sampled_from([", ", ",", " ,\n"])) if item else "")
        page.call(*draw(_envelope(keys, False, small)))
    page.write(edge + "]")


@st.composite
def _functionary_v3_2(draw: st.DrawFn, small: bool) -> Output:
    page = _Page()
    for _ in range(draw(st.integers(1, 1 if small else 3))):
        match draw(st.sampled_from(["all", "call", "call", "bare"])):
            case "all":
                page.write(">>>all\n" + draw(_BLANKS))
                page.prose(draw(prose("functionary_v3_2")))
            case "call":
                name, arguments = draw(_PLAIN_NAMES), draw(json_arguments(small))
                text = ">>>" + name + draw(st.sampled_from(["\n", "\n", "", " ", "\r\n"])) + draw(json_texts(arguments))
                page.call(text, name, arguments)
            case _ if not page.text or (page.calls and page.calls[-1].end == len(page.text)):
                _say(draw, page, "functionary_v3_2")
        page.write(draw(st.sampled_from(["", "", "<|eot_id|>"])))
    return page.output()


@st.composite
def _gpt_oss(draw: st.DrawFn, small: bool) -> Output:
    page = _Page()
    if draw(st.integers(0, 5)) == 0:
        page.prose(draw(opening("gpt_oss")))
    ends = st.sampled_from(["<|end|>", "<|end|>", "<|return|>", "<|call|>"])
    starts = st.sampled_from(["<|start|>assistant", "<|start|>assistant", ""])
    for number in range(draw(st.integers(0 if page.text else 1, 1 if small else 3))):
        if number or page.text:
            page.write(draw(_BLANKS) + draw(ends) + draw(_BLANKS) + draw(starts))
        match draw(st.sampled_from(["analysis", "final", "commentary", "call", "call"])):
            case "analysis":
                page.write("<|channel|>analysis<|message|>" + draw(_BLANKS))
                page.think(draw(prose("gpt_oss")))
            case "call":
                name, arguments = draw(_PLAIN_NAMES), draw(json_arguments(small))
                page.call(draw(_harmony_header(name)) + draw(json_texts(arguments)), name, arguments)
            case channel:
                kind = draw(st.sampled_from(["", "", " <|constrain|>json", " json", "<|constrain|>json"]))
                page.write(f"<|channel|>{channel}{kind}<|message|>" + draw(_BLANKS))
                page.prose(draw(prose("gpt_oss")))
    if draw(st.booleans()):
        page.write(draw(_BLANKS) + draw(ends))
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
def _granite_3(draw: st.DrawFn, small: bool) -> Output:
    page = _Page()
    blocks = draw(st.integers(0, 1 if small else 2))
    thinking = _think(draw, page, "granite_3", "<think>", "</think>")
    if thinking and draw(st.booleans()):
        page.write(draw(_BLANKS) + "<response>")
        _say(draw, page, "granite_3")
        page.write(draw(_BLANKS) + "</response>")
    elif blocks == 0 or draw(st.booleans()):
        _say(draw, page, "granite_3")
    for number in range(blocks):
        if number and draw(st.booleans()):
            _say(draw, page, "granite_3")
        page.write(draw(_BLANKS) + draw(st.sampled_from(["<|tool_call|>", "<|tool_call|>", "<tool_call>"])))
        page.write(draw(st.sampled_from(["", "", " ", "\n"])))
        if draw(st.integers(0, 3)):
            _call_list(draw, page, small)
        else:
            page.call(*draw(_envelope(("arguments",), False, small)))
    if blocks and draw(st.booleans()):
        _say(draw, page, "granite_3")
    page.write(draw(st.sampled_from(["", "", "<|end_of_text|>"])))
    return page.output()


@st.composite
def _hermes(draw: st.DrawFn, small: bool) -> Output:
    page = _Page()
    count = draw(st.integers(0, 1 if small else 3))
    edges = st.sampled_from(["\n", "\n", "", " ", "\r\n"])
    _think(draw, page, "hermes", "<think>", "</think>")
    if count == 0 or draw(st.booleans()):
        _say(draw, page, "hermes")
    closed = True
    for number in range(count):
        if number and closed and draw(st.booleans()):
            _say(draw, page, "hermes")
        page.write(draw(_BLANKS) + "<tool_call>" + draw(edges))
        if draw(st.integers(0, 4)):
            page.call(*draw(_envelope(("arguments", "arguments", "parameters"), False, small)))
        else:
            _call_list(draw, page, small, ("arguments", "parameters"))
        closed = draw(st.integers(0, 4)) > 0
        page.write(draw(edges) + ("</tool_call>" if closed else ""))
    if count and closed and draw(st.booleans()):
        _say(draw, page, "hermes")
    page.write(draw(st.sampled_from(["", "", "<|im_end|>"])))
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
def _qwen3_coder(draw: st.DrawFn, small: bool) -> Output:
    page = _Page()
    count = draw(st.integers(0, 1 if small else 3))
    edges = st.sampled_from(["\n", "\n", "", " "])
    _think(draw, page, "qwen3_coder", "<think>", "</think>")
    if count == 0 or draw(st.booleans()):
        _say(draw, page, "qwen3_coder")
    for number in range(count):
        if number and draw(st.booleans()):
            _say(draw, page, "qwen3_coder")
        page.write(draw(_BLANKS) + "<tool_call>" + draw(edges))
        page.call(*draw(_tagged_call(small)))
        page.write(draw(edges) + "</tool_call>")
    if count and draw(st.booleans()):
        _say(draw, page, "qwen3_coder")
    page.write(draw(st.sampled_from(["", "", "<|im_end|>"])))
    return page.output()


@st.composite
def _lfm2(draw: st.DrawFn, small: bool) -> Output:
    page = _Page()
    lists = draw(st.integers(0, 1 if small else 2))
    _think(draw, page, "lfm2", "<think>", "</think>")
    if lists == 0 or draw(st.booleans()):
        _say(draw, page, "lfm2")
    for number in range(lists):
        if number and draw(st.booleans()):
            _say(draw, page, "lfm2")
        edge = draw(st.sampled_from(["", "", " ", "\n"]))
        page.write(draw(_BLANKS) + "<|tool_call_start|>" + draw(st.sampled_from(["", "", " "])) + "[" + edge)
        for item in range(draw(st.integers(1, 1 if small else 3))):
            page.write(draw(st.sampled_from([", ", ",", ",\n"])) if item else "")
            page.call(*draw(_python_call(small)))
        page.write(edge + "]" + draw(st.sampled_from(["<|tool_call_end|>", "<|tool_call_end|>", " "])))
    if lists and draw(st.booleans()):
        _say(draw, page, "lfm2")
    page.write(draw(st.sampled_from(["", "", "<|im_end|>"])))
    return page.output()


_WELL_FORMED: dict[str, Callable[[bool], st.SearchStrategy[Output]]] = {
    "llama3_json": _llama3_json,
    "llama4_pythonic": _llama4_pythonic,
    "mistral_v3": _mistral_v3,
    "mistral_v11": _mistral_v11,
    "functionary_v3_2": _functionary_v3_2,
    "gpt_oss": _gpt_oss,
    "granite_3": _granite_3,
    "hermes": _hermes,
    "qwen3_coder": _qwen3_coder,
    "lfm2": _lfm2,
}


def well_formed(name: str, *, small: bool = False) -> st.SearchStrategy[Output]:
    """Outputs of a format as a model means them, with the message each one is; at most one call where `small`."""
    if name in _WELL_FORMED:
        return _WELL_FORMED[name](small)
    return st.just(Output(toolgram.get_format(name).example, known=False))


# ------------------------------------------------------------------------------------------------------ broken outputs

_SYNTAX = (
    *"{}[]()\"':,=;\\ \n\t-.0a",
    "1",
    "12.5e-3",
    "true",
    "None",
    "null",
    "f",
    "é",
    "\\u00e9",
    "\\n",
    '"name"',
    '"f"',
    '"arguments"',
    '"parameters"',
    '"id": "abc123def"',
    '"type": "function"',
    '{"name": "f", "parameters": {',
    '{"name": "f", "arguments": {',
    '"a": 1',
    "}}",
    "}]",
    "[f(a=",
    ", b='",
    ")]",
    "{}",
    "hello",
    "\x00",
    "\u00a0",
)
_MARKERS: dict[str, tuple[str, ...]] = {
    "llama3_json": ("<|python_tag|>", "<|eom_id|>", "<|eot_id|>"),
    "llama4_pythonic": ("<|python_start|>", "<|python_end|>", "<|eot_id|>"),
    "mistral_v3": ("[TOOL_CALLS]", "[/TOOL_CALLS]", "[TOOL_CALLS] [{", "[TOOL_CALLS][TOOL_CALLS]"),
    "mistral_v11": (
        "[TOOL_CALLS]",
        "[ARGS]",
        "[CALL_ID]",
        "[THINK]",
        "[/THINK]",
        "[TOOL_CALLS]f[ARGS]{",
        "[TOOL_CALLS]f{",
    ),
    "functionary_v3_2": (">>>", ">>>all\n", ">>>f\n{", ">>>python\n", "<|eot_id|>"),
    "gpt_oss": (
        "<|channel|>",
        "<|message|>",
        "<|start|>assistant",
        "<|channel|>analysis<|message|>",
        "<|channel|>final<|message|>",
        " to=functions.f<|channel|>commentary json<|message|>{",
        "<|channel|>commentary to=f <|constrain|>json<|message|>",
    ),
    "granite_3": ("<|tool_call|>", "<|tool_call|>[{", "<think>", "</think><response>", "</response>", "<tool_call>{"),
    "qwen3_coder": (
        "<tool_call>",
        "</tool_call>",
        "<function=f>",
        "</function>",
        "\n<parameter=a>",
        "<parameter=b>\n",
        "\n</parameter>",
        "</parameter>",
        "<think>",
        "</think>",
        "{'a': 1}",
    ),
    "hermes": ("<tool_call>", "</tool_call>", '<tool_call>\n{"name": "f", "arguments": {', "<think>", "</think>"),
    "lfm2": ("<|tool_call_start|>", "<|tool_call_start|>[f(a=", "<|tool_call_end|>", "<think>", "</think>"),
}


def grammar_literals(name: str) -> tuple[str, ...]:
    """The string literals of a grammar: its markers, and whatever else it spells out."""
    text = toolgram.get_format(name).grammar_text
    found = re.findall(r'"((?:[^"\\\n]|\\.)+)"', re.sub(r"//.*", "", text))
    return tuple(dict.fromkeys(literal.replace('\\"', '"').replace("\\\\", "\\") for literal in found))


def fragments(name: str) -> tuple[str, ...]:
    """The pieces a format has to worry about: its markers, whole and torn, and the syntax around them."""
    markers = tuple(dict.fromkeys(_MARKERS.get(name, ()) + grammar_literals(name)))
    torn = tuple(piece for m in markers if len(m) > 3 for piece in (m[: len(m) // 2], m[len(m) // 2 :], m[:-1]))
    return markers * 3 + torn + _SYNTAX


def noise(name: str) -> st.SearchStrategy[str]:
    return st.lists(st.sampled_from(fragments(name)), max_size=30).map("".join)


@st.composite
def mutated(draw: st.DrawFn, name: str) -> str:
    """A well-formed output with a few wounds: characters or markers lost, doubled, moved, added, or cut off."""
    text = draw(well_formed(name)).text
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        length = draw(st.sampled_from([1, 1, 1, 2, 5, 12]))
        piece = text[at : at + length]
        match draw(st.sampled_from(["delete", "insert", "double", "swap", "cut"])):
            case "delete":
                text = text[:at] + text[at + length :]
            case "insert":
                text = text[:at] + draw(st.sampled_from(fragments(name))) + text[at:]
            case "double":
                text = text[:at] + piece + text[at:]
            case "swap":
                text = text[:at] + piece[::-1] + text[at + length :]
            case _:
                text = text[:at]
    return text


def any_text() -> st.SearchStrategy[str]:
    """Any str at all, lone surrogates and control characters among them."""
    return st.text(st.characters(), max_size=40)


def outputs(name: str) -> st.SearchStrategy[str]:
    """Everything: well-formed, wounded, noise, and text that has nothing to do with the format."""
    return st.one_of(well_formed(name).map(lambda o: o.text), mutated(name), noise(name), any_text())


# ----------------------------------------------------------------------------------------------------------- chunkings


@st.composite
def chunkings(draw: st.DrawFn, text: str) -> list[str]:
    """`text` in random pieces, empty ones among them."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return list(_pieces(text, cuts))


def _pieces(text: str, cuts: list[int]) -> Iterator[str]:
    last = 0
    for at in [*cuts, len(text)]:
        yield text[last:at]
        last = at
