"""A brace or a marker that a model writes twice, where only something else can follow: one is dropped.

Strategy: in the examples of every format, each opening brace is doubled, with its closing brace or not, and so is each
marker after which nothing but another token can come. The calls are those of the example, and nothing of the markup
is content. A value and a text may hold a marker, so there a second one is kept (`stray_marker`).
"""

import re
from collections.abc import Iterator

import pytest

import toolgram
from tests.examples import with_calls
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split, calls_of
from toolgram.spec.data import Literal, Spec

# Bare calls are not repaired; the braces of Gemma are a notation of its own.
WITHOUT = ("functionary_v3_2", "functiongemma", "gemma4", "glm4", "llama3_json", "minimax_m1", "xlam")
BRACED = [name for name in toolgram.format_names() if name not in WITHOUT]
# In text they may open something else; a quote twice is an empty string; the tags of elements nest.
KEPT = {
    "beam": {"<|message|>"}, "functiongemma": {"<escape>"}, "gemma4": {'<|"|>'}, "gpt_oss": {"<|message|>"},
    "granite_3": {"<response>", "</response>"}, "ernie45": {"<response>"}, "hunyuan_a13b": {"<answer>"},
    "minicpm5": {'<function name="'},
    "minimax_m3": {"]<]minimax[>[<", ']<]minimax[>[<invoke name="'},
    "muse": {"<|message|>"},
}  # fmt: skip


def with_braces(text: str) -> Iterator[str]:
    """The text with each opening brace twice, and with its closing brace once and twice."""
    for begin, sign in enumerate(text):
        if sign != "{":
            continue
        yield text[:begin] + "{" + text[begin:]
        depth = 0
        for end in range(begin, len(text)):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                yield text[:begin] + "{" + text[begin:end] + "}" + text[end:]
                break


def markers(spec: Spec) -> Iterator[str]:
    """The markers in brackets of their own that lead to no value, and that are in no longer one."""
    texts = {name: shape.text for name, shape in spec.terminals.items() if isinstance(shape, Literal)}
    values = {each.trigger for each in spec.transitions if spec.states[each.dest].meaning == "value"}
    for name, text in texts.items():
        if name not in values and re.match(r"\s*[<\[].", text) and sum(text in each for each in texts.values()) == 1:
            yield text


def kinds(message: toolgram.Message) -> set[str]:
    return {anomaly.kind for anomaly in message.anomalies}


@pytest.mark.parametrize("name", quarter(BRACED, "the calls are the same"))
def test_a_brace_twice_is_one(name: str) -> None:
    fmt = toolgram.get_format(name)
    for prefix, text in with_calls(name):
        plain = fmt.parse(text, prefix=prefix)
        for broken in with_braces(text):
            message = assert_same_however_split(fmt, broken, prefix=prefix)
            assert (calls_of(message), message.content) == (calls_of(plain), plain.content), broken
            assert kinds(message) & {"repaired_json", "surplus_closer"}, broken
            if "{{" in broken:
                strict = fmt.parse(broken, prefix=prefix, strict=True)
                assert all(call in calls_of(plain) for call in calls_of(strict)), broken


@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_marker_twice_is_one(name: str) -> None:
    fmt = toolgram.get_format(name)
    for prefix, text in with_calls(name):
        plain = fmt.parse(text, prefix=prefix)
        doubled = {each for each in markers(fmt.spec) if each not in (plain.content or "")} - KEPT.get(name, set())
        for found in re.finditer("|".join(map(re.escape, sorted(doubled))) or "(?!)", text):
            broken = text[: found.start()] + found[0] + text[found.start() :]
            message = fmt.parse(broken, prefix=prefix)
            assert calls_of(message) == calls_of(plain), broken
            assert found[0] not in (message.content or ""), broken
            assert "malformed" not in kinds(message), broken
