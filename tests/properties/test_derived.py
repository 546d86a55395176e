"""The contract, over formats that nobody wrote: derived from the templates of `tests/derive`.

Strategy: a message is drawn, rendered by the template, and read with the format that was
derived from the same template.  Broken outputs are made from such texts by cutting, repeating and dropping pieces.
"""

import itertools
import json
import random
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

import toolgram
from tests.clauses import check, check_widely
from tests.derive.turns import TEMPLATES, analysis_of, source, template_of
from tests.fuzz import tools
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
    names = st.sampled_from(["search", "get_weather", "f"])
    return st.builds(Call, names, st.dictionaries(KEYS, values(), max_size=3), ids)


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
    assert (merged(streamed), other) == (merged(events), message)
    at, parser = data.draw(st.integers(0, len(text))), fmt.parser(tools, prefix="")
    begun = parser.feed(text[:at])
    again = fmt.restore(json.loads(json.dumps(parser.snapshot())), tools)
    assert merged(without_ids([*begun, *again.feed(text[at:]), *again.close(reason)])) == merged(without_ids(events))


# --- closing markers that begin with a bracket, as Python has it: `<tool_code>print(f(a=1))</tool_code>` ------------
# Strategy: no shipped format has such a marker, so formats are derived from templates that print them. Every short
# string over what matters there is read after beginnings of a call, whole and by character; and valid outputs are
# broken as the fuzz breaks those of shipped formats.

MARKERS = {
    "a parenthesis": ("<tool_code>print(", ", ", ")</tool_code>"),
    "a brace": ("<<{", ", ", "}>>"),
    "a bracket after the list": ("<calls>[", ", ", "]]</calls>"),
    "a line": ("<tool_code>\nprint(", "\n", ")\n</tool_code>"),
}
SYMBOLS = ("a", "1", " ", ",", "(", ")", "]", "}", "'", "=", ">")


@lru_cache
def bracketed(kind: str) -> toolgram.Format:
    before, between, after = map(repr, MARKERS[kind])
    arguments = "$EACH{{ k }}={{ v|tojson }}{{ ', ' if not loop.last }}$END"
    call = f"$NAME({arguments}){{{{ {between} if not loop.last }}}}"
    return toolgram.derive_format(
        template_of(call, "{{ m.content or '' }}", f"{{{{ {before} }}}}", f"{{{{ {after} }}}}")
    )


@pytest.mark.parametrize("kind", MARKERS)
def test_the_calls_are_read(kind: str) -> None:
    before, between, after = MARKERS[kind]
    for arguments in ("", "a=2", "a='x'", "a=True, b=[1]", "a={'k': (1, 2)}"):
        text = f"{before}f({arguments}){between}g(a=1){after}"
        message = bracketed(kind).parse(text)
        assert [(call.name, call.status) for call in message.tool_calls] == [("f", "complete"), ("g", "complete")]
        assert check(bracketed(kind), text)[0] is None


@pytest.mark.parametrize("kind", MARKERS)
def test_every_short_string_inside_a_call(kind: str) -> None:
    before, _, after = MARKERS[kind]
    symbols = (*SYMBOLS, after, after[:-1], after[0])
    for beginning in ("f(", "f(a=2", "f(a='x", "f(a='x'y", "f(a=[1", "f()", "f(a=True)"):
        for row in itertools.chain.from_iterable(itertools.product(symbols, repeat=size) for size in (1, 2)):
            failure, _ = check(bracketed(kind), before + beginning + "".join(row))
            assert failure is None, failure


@pytest.mark.parametrize("kind", MARKERS)
def test_broken_outputs(kind: str) -> None:
    before, between, after = MARKERS[kind]
    chosen = random.Random(kind)
    for _ in range(300):
        calls = [f"{name}(a={chosen.choice(['2', 'None', repr('x)'), '[1, 2]'])})" for name in "fg"]
        row = list(before + between.join(calls) + after)
        for _ in range(chosen.choice((1, 2, 3))):
            at, size = chosen.randrange(len(row)), chosen.choice((0, 1, 2, 5))
            row[at : at + size] = chosen.choice(([], [chosen.choice((*SYMBOLS, after, after[:-1]))]))
        failure = check_widely(bracketed(kind), "".join(row), tools())
        assert failure is None, failure
