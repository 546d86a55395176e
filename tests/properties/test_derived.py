"""The contract, over formats that nobody wrote: derived from the templates of `tests/derive`.

Strategy: a message is drawn, rendered by the template, and read with the format that was
derived from the same template.  Broken outputs are made from such texts by cutting, repeating and dropping pieces.
"""

import json
from typing import Any

from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from tests.derive.turns import TEMPLATES, analysis_of, source
from tests.strategies import chunkings
from tests.streams import check_events, check_message, merged, run, without_ids
from toolgram.derive import DiffAnalysisResult, NotExpressible
from toolgram.derive.deriving import derive_format
from toolgram.derive.messages import Writer
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import Case
from toolgram.formats import Format
from toolgram.observing.probes import Call, tool_of

# Without those whose templates do not say where text ends (see tests/derive/test_deriving.py, LOST), and those that
# print calls as no Python would have them: of all of these the report says so.
UNSURE = (
    "key_value_lines", "python_tokens", "role_before_reasoning", "type_tags",
    "python_all_quoted", "python_bare_words", "python_no_commas", "python_single_quoted",
)  # fmt: skip
NAMES = sorted(path.stem for path in TEMPLATES.glob("*.jinja") if path.stem not in UNSURE)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="<>|[]{}【】`"), min_size=1, max_size=20)
KEYS = st.text("abcxyz_", min_size=1, max_size=6)


def values() -> st.SearchStrategy[Any]:
    numbers = st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False, width=32)
    texts = st.text(st.characters(codec="utf-8", exclude_characters="<>|\x00"), max_size=12)
    scalars = st.booleans() | numbers | texts
    nested = st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=5
    )
    # Beside a marker with blanks of its own nobody can tell whose those are with which a text begins or ends.
    return nested.filter(lambda value: not isinstance(value, str) or (value == value.strip() != ""))


def calls() -> st.SearchStrategy[Call]:
    ids = st.text("abcdefgh12345678", min_size=9, max_size=9)
    return st.builds(
        Call, st.sampled_from(["search", "get_weather", "f"]), st.dictionaries(KEYS, values(), max_size=3), ids
    )


def derived(name: str) -> tuple[Format, DiffAnalysisResult]:
    fmt = derive_format(source(name), bos_token="<s>", eos_token="</s>")
    return fmt, analysis_of(fmt)


@st.composite
def turns(draw: st.DrawFn) -> tuple[str, str, str | None, str | None, list[Call]]:
    """The name of a template, a turn as it writes it, and what the turn means."""
    name = draw(st.sampled_from(NAMES))
    _, result = derived(name)
    content = draw(st.none() | WORDS.filter(lambda text: bool(text.strip())))
    reasoning = draw(st.none() | WORDS.filter(lambda text: bool(text.strip())))
    made = draw(st.lists(calls(), max_size=3, unique_by=lambda call: call.name))
    assume(content or made)
    template = ChatTemplate(source(name), "<s>", "</s>")
    try:
        text = Writer(template, result).write(Case(name, content, reasoning, tuple(made)), "unset").output
    except NotExpressible:
        assume(False)
        raise
    return name, text, content, reasoning, made


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(drawn=turns(), data=st.data())
def test_calls_come_back_whatever_they_are(drawn: tuple[Any, ...], data: st.DataObject) -> None:
    name, text, _, _, made = drawn
    fmt, result = derived(name)
    note(f"{name}: {text!r}")
    if result.calls is not None and result.calls.arguments.values:
        omitted = {kind for kind, style in result.calls.arguments.values.items() if style.encoding.value == "omitted"}
        assume(not omitted)
    tools = [tool_of(call) for call in made]
    prefix, chunks = result.prompts["unset"].text, data.draw(chunkings(text))
    events, message = run(fmt, chunks, tools=tools, prefix=prefix, finish_reason="stop")
    check_events(events, text)
    check_message(message, events)
    found = [(call.name, json.loads(call.arguments), call.status) for call in message.tool_calls]
    assert found == [(call.name, call.arguments, "complete") for call in made]


@st.composite
def broken(draw: st.DrawFn) -> tuple[str, str]:
    """A turn with pieces cut out, repeated or replaced."""
    name, text, _, _, _ = draw(turns())
    for _ in range(draw(st.integers(1, 3))):
        if not text:
            break
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 12)))
        inserted = ["", text[begin:end] * 2, "<", "}", '"', "&lt;", "\\\\", "%2", "\n", "x", text[: end - begin]]
        text = text[:begin] + draw(st.sampled_from(inserted)) + text[end:]
    return name, text


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(drawn=broken(), data=st.data())
def test_broken_turns_keep_the_contract(drawn: tuple[str, str], data: st.DataObject) -> None:
    name, text = drawn
    note(f"{name}: {text!r}")
    fmt, _ = derived(name)
    tools = [tool_of(Call("search", {"a": 1, "b": "x"}))]
    reason = data.draw(st.sampled_from([None, "stop", "length"]))
    events, message = run(fmt, [text], tools=tools, finish_reason=reason)
    check_events(events, text)
    check_message(message, events)
    streamed, other = run(fmt, data.draw(chunkings(text)), tools=tools, finish_reason=reason)
    assert merged(streamed) == merged(events)
    assert other == message
    at, parser = data.draw(st.integers(0, len(text))), fmt.parser(tools, prefix="")
    begun = parser.feed(text[:at])
    again = fmt.restore(json.loads(json.dumps(parser.snapshot())), tools)
    restored = [*begun, *again.feed(text[at:]), *again.close(reason)]
    assert merged(without_ids(restored)) == merged(without_ids(events))
