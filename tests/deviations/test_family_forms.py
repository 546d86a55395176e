"""Forms that models of a family write at times: read as calls, noted as `unusual_form`, and text for strict parsers."""

from __future__ import annotations

import pytest

import toolgram
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split, calls_of

F = '{"name": "f", "arguments": {"a": 1}}'
NESTED = '{"type": "function", "function": {"name": "f", "arguments": {"a": 1}}}'
KIMI = '<|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": 1}<|tool_call_end|>'
TAGGED = "<function=f>\n<parameter=a>\n1\n</parameter>\n</function>"
CALL = ("f", '{"a": 1}', "complete")

JSON = [
    ("hermes", "<tool_call>", "</tool_call>"),
    ("kimi_vl", "<tool_call>", "</tool_call>"),
    ("mistral_v3", "[TOOL_CALLS] [", "]"),
    ("granite_3", "<|tool_call|>[", "]"),
    ("phi4_mini", "<|tool_call|>[", "]<|/tool_call|>"),
    ("jamba", "<tool_calls>[", "]</tool_calls>"),
]
TAGS = [
    ("qwen3_coder", "<tool_call>", "</tool_call>"),
    ("mimo", "<tool_call>", "</tool_call>"),
    ("seed_oss", "<seed:tool_call>", "</seed:tool_call>"),
    ("glm45", "<tool_call>", "</tool_call>"),
    ("glm47", "<tool_call>", "</tool_call>"),
    ("poolside_v1", "<tool_call>", "</tool_call>"),
]
CODERS = ("qwen3_coder", "hermes")
QUOTED = ('="f"', ' name="f"')

FORMS = [
    ("granite_3", f"<|tool_call|>[{NESTED}, {NESTED}]", None, [CALL, CALL], 2),
    ("hermes", f"Sure.\n<tool_call>\n{NESTED}\n</tool_call>", "Sure.", [CALL], 1),
    ("hermes", 'Sure.\n<function=f>\n{"a": 1}\n</function> ok', "Sure. ok", [CALL], 1),
    ("hermes", '<function=f>{"a": 1}</function>\n<function=f>{"a": 1}</function>', None, [CALL, CALL], 2),
    (
        "hermes",
        '<tool_call>\n<function=f>{"a": 1}</function>\n</tool_call>\n<tool_call>' + F + "</tool_call>",
        None,
        [CALL, CALL],
        1,
    ),
    ("hermes", '<think>Hm.</think><function=f>{"a": 1}', None, [CALL], 1),
    (
        "hermes",
        f"Sure.<tool_call>\n{TAGGED}\n</tool_call>\n<tool_call>\n{F}\n</tool_call>ok",
        "Sure. ok",
        [CALL, CALL],
        1,
    ),
    ("hermes", f"Sure.\n{TAGGED}\n{TAGGED}\nok", "Sure. ok", [CALL, CALL], 2),
    ("kimi_vl", f"Sure.\n{TAGGED}\nok", "Sure. ok", [CALL], 1),
    ("kimi_vl", f"<tool_call>\n{TAGGED}\n</tool_call>ok", "ok", [CALL], 1),
    ("hermes", "<function=f></function>", None, [("f", "{}", "complete")], 1),
    ("kimi_k2", f"<|tool_call_section_begin|>{KIMI}<|tool_call_section_end|>ok", "ok", [CALL], 1),
    ("kimi_k2", f"<|tool_calls_section_begin|>{KIMI.replace(':0', '')}<|tool_calls_section_end|>", None, [CALL], 1),
    ("kimi_k2", f"{KIMI}ok", "ok", [CALL], 1),
    ("llama3_json", f"Sure. {NESTED}", "Sure.", [CALL], 1),
    ("mistral_v3", f"[TOOL_CALLS] [{NESTED}, {F}]", None, [CALL, CALL], 1),
    ("mistral_v3", '[TOOL_CALLS] [{"function": "f", "arguments": {"a": 1}}]', None, [CALL], 1),
    ("mistral_v3", '[TOOL_CALLS]f[ARGS]{"a": 1}', None, [CALL], 1),
    ("mistral_v3", '[TOOL_CALLS]f{"a": 1}[TOOL_CALLS] f[ARGS] {"a": 1} ok', "ok", [CALL, CALL], 2),
    ("mistral_v11", f"Sure.[TOOL_CALLS] [{F}, {F}] ok", "Sure. ok", [CALL, CALL], 1),
    ("mistral_v11", f"[TOOL_CALLS]{F}", None, [CALL], 1),
    ("mistral_v11", f"[THINK]Hm.[TOOL_CALLS][{F}]", None, [CALL], 1),
    ("qwen3_coder", "Sure.\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\nok", "Sure. ok", [CALL], 1),
    ("lfm2", f"<|tool_call_start|>[{F}, {F}]<|tool_call_end|>ok", "ok", [CALL, CALL], 2),
    ("lfm2", f"<|tool_call_start|>[f(a=1), {F},]<|tool_call_end|>", None, [CALL, CALL], 1),
    ("lfm2", f"<|tool_call_start|>{F}<|tool_call_end|>ok", "ok", [CALL], 1),
    ("lfm2", f"<|tool_call_start|> {F}\n{F} <|tool_call_end|>", None, [CALL, CALL], 2),
    ("lfm2", f"<|tool_call_start|>{F}, f(a=1)]<|tool_call_end|>", None, [CALL, CALL], 1),
    ("llama3_json", "Sure.<|python_tag|>f(a=1)<|eom_id|>", "Sure.", [CALL], 1),
    ("llama3_json", "<|python_tag|>f()", None, [("f", "{}", "complete")], 1),
    ("llama3_json", F.replace("arguments", "args"), None, [CALL], 1),
    *((name, f"{begin}{F.replace('arguments', 'args')}{end}", None, [CALL], 1) for name, begin, end in JSON),
    *((name, f'{begin}{{"args": {{"a": 1}}, "name": "f"}}{end}', None, [CALL], 1) for name, begin, end in JSON),
    *((name, f'{begin}{{"name": "f"}}{end}', None, [("f", "{}", "complete")], 1) for name, begin, end in JSON),
    *((name, f"Sure.{begin}\n{F}\n{end}ok", "Sure. ok", [CALL], 1) for name, begin, end in TAGS),
    *((name, f"Sure.{TAGGED.replace('=f', form)}ok", "Sure. ok", [CALL], 1) for name in CODERS for form in QUOTED),
    *((name, f"{TAGGED.replace('=a', form)}ok", "ok", [CALL], 1) for name in CODERS for form in ('="a"', ' name="a"')),
    ("hermes", '<function="f">{"a": 1}</function>ok', "ok", [CALL], 1),
]


def whole(calls: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """The calls, their arguments without blanks."""
    return [(name, arguments.replace(" ", ""), status) for name, arguments, status in calls]


@pytest.mark.parametrize(("name", "text", "content", "calls", "count"), FORMS)
def test_strict_parsers_do_not_read_it(
    name: str, text: str, content: str | None, calls: list[tuple[str, str, str]], count: int
) -> None:
    message = toolgram.get_format(name).parse(text, strict=True)
    assert len([call for call in message.tool_calls if call.status == "complete"]) < len(calls)
    assert "unusual_form" not in [each.kind for each in message.anomalies]


@pytest.mark.parametrize("form", ["Here is my {}:", "Here's my {}:"])
def test_granite_thinks_in_words(form: str) -> None:
    fmt = toolgram.get_format("granite_3")
    begin, end = form.format("thought process"), form.format("response")
    message = assert_same_however_split(fmt, f"{begin}\nHm.\n\n{end}\nYes.")
    assert (message.reasoning, message.content) == ("Hm.", "Yes.")
    assert not message.anomalies, "Granite 3.2 has no other way"
    message = assert_same_however_split(fmt, f"{begin} Hm. <|tool_call|>[{F}]", finish_reason="stop")
    assert (message.reasoning, whole(calls_of(message))) == ("Hm.", whole([CALL]))
    for text in (f"Yes. {begin} Hm. {end} Yes.", f"{end} Yes.", "Here is my tho"):
        assert fmt.parse(text).content == text
    assert fmt.parse(f"{begin} Hm.", strict=True).reasoning == "Hm."


@pytest.mark.parametrize(("name", "text", "content", "calls", "count"), quarter(FORMS, "snapshots of forms"))
def test_a_snapshot_keeps_what_counts_when_the_call_is_certain(
    name: str, text: str, content: str | None, calls: list[tuple[str, str, str]], count: int
) -> None:
    fmt = toolgram.get_format(name)
    for at in range(len(text)):
        first = fmt.parser(prefix="")
        first.feed(text[:at])
        noted = [each for each in first.take_anomalies() if each.kind == "unusual_form"]
        parser = fmt.restore(first.snapshot())
        parser.feed(text[at:])
        parser.close()
        noted += [each for each in parser.take_anomalies() if each.kind == "unusual_form"]
        assert len(noted) == count, text[:at]


def test_longcat_writes_pairs_of_keys_and_values() -> None:
    """Behind the name, in place of a JSON object; what is not closed is closed by the call."""
    pair = "<longcat_arg_key>a</longcat_arg_key>\n<longcat_arg_value>{}</longcat_arg_value>\n"
    call = "<longcat_tool_call>f\n{}</longcat_tool_call>"
    fmt = toolgram.get_format("longcat")
    text = f"Sure.\n{call.format(pair.format(1))}\n{call.format(pair.format('x'))}ok"
    message = assert_same_however_split(fmt, text)
    assert message.content == "Sure. ok"
    assert calls_of(message) == [("f", '{"a": 1}', "complete"), ("f", '{"a": "x"}', "complete")]
    assert [each.kind for each in message.anomalies] == ["unusual_form"] * 2
    unclosed = call.format(pair.format("x").removesuffix("</longcat_arg_value>\n"))
    message = assert_same_however_split(fmt, unclosed, finish_reason="stop")
    assert calls_of(message) == [("f", '{"a": "x"}', "complete")]
    assert not [each for each in fmt.parse(text, strict=True).tool_calls if each.status == "complete"]
