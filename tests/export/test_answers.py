"""What a format's writer puts down, its exports do not refuse: plain text, one call, text and a call.

The writers know nothing of toolgram. Where calls may be written and need not be, what a model may say besides must not
depend on which outputs the machine file happens to show. What an engine accepts, its masks allow: after every character
of an output, each token that is the output's next characters. An engine knows what may follow a text, and decides by
that once which tokens may go beyond the end of the text; if that is wrong, tokens are missing in masks, and whole
outputs are accepted all the same.
"""

from typing import Any

import pytest

import toolgram
from tests.export.engines import END, NEEDED, Llguidance, Xgrammar, vocabulary
from tests.integrations.cases import TOOLS, TURNS, without_stop
from tests.integrations.writers import WRITERS, Turn, can_write
from tests.properties.selection import every_format
from toolgram.observing.paths import canonical_outputs

pytestmark = NEEDED

SAID = {"content", "unicode content", "content that is a list", "call", "content, call", "unicode call", "escapes"}
SAID |= {"no arguments"}


@pytest.mark.parametrize("parallel", [True, False])
@every_format
def test_no_answer_is_refused_where_calls_are_free(name: str, parallel: bool) -> None:
    fmt = toolgram.get_format(name)
    engine = Xgrammar(vocabulary())
    made = engine.compile("structural_tag", fmt.export("structural_tag", TOOLS, "auto", parallel, prefix="").text)
    for turn in TURNS:
        if turn.label in SAID and can_write(name, turn):
            text = without_stop(fmt, WRITERS[name](turn))
            assert engine.accepts(made, text), (turn.label, text)


SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
FORMS: dict[str, tuple[dict[str, Any], str, str]] = {
    "json_schema": ({"json_schema": SCHEMA}, '{"a": 1}', "one"),
    "a schema as a format": ({"answer_format": {"type": "json_schema", "json_schema": SCHEMA}}, '{"a": 1}', "one"),
    "a pattern as a format": ({"answer_format": {"type": "regex", "pattern": "[0-9]+"}}, "12", "one"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("calls", [True, False])
@every_format
def test_an_answer_of_some_form_is_where_the_format_has_its_content(name: str, calls: bool, form: str) -> None:
    """Markers on both sides of it, a thought before it, and calls in its place."""
    fmt = toolgram.get_format(name)
    bound, good, bad = FORMS[form]
    engine = Xgrammar(vocabulary())
    export = fmt.export("structural_tag", TOOLS if calls else None, "auto" if calls else "none", prefix="", **bound)
    made = engine.compile("structural_tag", export.text)
    shown = list(canonical_outputs(fmt))
    thinks = any(fmt.parse(output, TOOLS, prefix).reasoning for prefix, output, _ in shown)
    for turn in (Turn("", content=good), Turn("", reasoning="Hm.", content=good)):
        if turn.reasoning and (not thinks or any(prefix for prefix, _, _ in shown)):
            continue  # its models do not, or the prompt begins the thought
        text = without_stop(fmt, WRITERS[name](turn))
        assert engine.accepts(made, text), text
        assert not engine.accepts(made, text.replace(good, bad)), "another form"
    turns = [Turn("", reasoning=thought, calls=(("get_weather", {"city": "Paris"}),)) for thought in ("", "Hm.")]
    texts = [without_stop(fmt, WRITERS[name](turn)) for turn in turns]  # at once, or after a thought, as examples show
    messages = [fmt.parse(output, TOOLS, prefix) for prefix, output, _ in shown]
    # every call shown has text before it
    led = all(each.content or each.reasoning for each in messages if each.tool_calls)
    assert any(engine.accepts(made, text) for text in (texts if led else texts[:1])) == calls


@pytest.mark.parametrize("depth", [0, 100_000])
def test_a_format_that_is_none_is_one_clear_error(depth: int) -> None:
    deep: Any = {1}  # no JSON
    for _ in range(depth):
        deep = [deep]
    fmt = toolgram.get_format("hermes")
    for wrong in (deep, {"pattern": "a"}, {"type": "json_schema", "json_schema": deep}):
        with pytest.raises(toolgram.ToolgramError, match="answer_format"):
            fmt.export("structural_tag", answer_format=wrong)
    for wrong in ({"type": deep}, {"function": {"name": deep}}, {"type": "allowed_tools", "tools": deep}):
        with pytest.raises(toolgram.ToolgramError, match="tool_choice"):
            fmt.export("structural_tag", TOOLS, wrong)


LONGEST = 8  # characters of a token
MOST = 400  # characters of an output
ADDED = (
    Turn("text with marks", content="a < b [c] {d}\n\n", calls=(("get_weather", {"city": "a\n<b>[c]{d} e"}),)),
    Turn("two", reasoning="So <it> is.\n", content="Look.", calls=(("get_time", {"zone": ""}), ("get_time", {}))),
)


@pytest.mark.parametrize("target", ["structural_tag", "ebnf", "llguidance"])
@every_format
def test_masks_have_the_tokens_with_which_an_accepted_output_goes_on(name: str, target: str) -> None:
    fmt = toolgram.get_format(name)
    turns = [turn for turn in (*TURNS, *ADDED) if can_write(name, turn)]
    texts = [each for each in (without_stop(fmt, WRITERS[name](turn)) for turn in turns) if len(each) < MOST]
    pieces = sorted({text[at : at + size] for text in texts for at in range(len(text)) for size in range(2, LONGEST)})
    vocab = vocabulary([each for each in pieces if each != END])
    ids = {token: number for number, token in enumerate(vocab.tokens)}
    engine = (Llguidance if target == "llguidance" else Xgrammar)(vocab)
    exported = fmt.export(target, TOOLS, "auto", prefix="").text
    made = engine.compile(exported) if isinstance(engine, Llguidance) else engine.compile(target, exported)
    looked = 0
    for text in texts:
        if not engine.accepts(made, text):
            continue
        matcher = engine.matcher(made)
        for at, character in enumerate(text):
            allowed = set(matcher.allowed().tolist())
            forced = target == "llguidance" and len(allowed) == 1  # then it says one token and no others
            for size in range(2, 2 if forced else min(LONGEST, len(text) - at + 1)):
                token = text[at : at + size]
                assert ids[token.encode()] in allowed, (text[:at], token, text[at + size :])
            assert all(map(matcher.take, character.encode())), (text[:at], character)
        looked += 1
    assert looked, "no output is accepted"
