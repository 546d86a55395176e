"""Closers that are missing, cut off, or too many: what a model drops or doubles around a call, in every format.

Strategy: one table of outputs and one of tagged values. Each row is read whole, by character and in small pieces, which
must agree, conserve every character, and give the calls, the content and the kinds of anomalies that the row says.
"""

from __future__ import annotations

from typing import Any

import pytest

import toolgram

F, G = '{"name": "f", "arguments": {"a": 1}', '{"name": "g", "arguments": {"b": 2}'  # without their last brace
P, Q = F.replace("arguments", "parameters"), G.replace("arguments", "parameters")
TF = "<tool_call>\n<function=f>\n<parameter=a>\n"  # a tagged call, up to its value
TG = "<tool_call>\n<function=g>\n<parameter=b>\n2\n</parameter>\n</function>\n</tool_call>"
ONE, BOTH = [("f", {"a": 1})], [("f", {"a": 1}), ("g", {"b": 2})]
NESTED = [("f", {"a": {"b": 1}})]
ENVELOPE, ARGUMENTS, VALUE = "unclosed_envelope", "unclosed_arguments", "unclosed_value"
SURPLUS, UNFINISHED, QUOTED = "surplus_closer", "unfinished_marker", "quoted_call"
HF = TF.removeprefix("<tool_call>\n")
TO_F = "<|channel|>commentary to=functions.f<|message|>"

# format, output, calls (all complete), content, kinds of anomalies
ROWS: list[tuple[str, str, list[tuple[str, dict[str, Any]]], str | None, set[str]]] = [
    # whole arguments, and nothing closes what stands around them
    ("hermes", f"<tool_call>\n{F}", ONE, None, {ENVELOPE}),
    ("hermes", f"<tool_call>\n{F}\n</tool_call>\nhi", ONE, "hi", {ENVELOPE}),
    ("hermes", f"<tool_call>\n{F}<tool_call>\n{G}}}</tool_call>", BOTH, None, {ENVELOPE}),
    ("hermes", f"<tool_call>\n{F} hi there", ONE, "hi there", {ENVELOPE}),
    ("hermes", f"<tool_call>\n{F}<|im_end|>", ONE, None, {ENVELOPE}),
    ("hermes", f"<tool_call>\n[{F}}}, {G}}}</tool_call> hi", BOTH, "hi", {ENVELOPE}),
    ("mistral_v3", f"[TOOL_CALLS] [{F}}}", ONE, None, {ENVELOPE}),
    ("mistral_v3", f"[TOOL_CALLS] [{F}", ONE, None, {ENVELOPE}),
    ("mistral_v3", f"[TOOL_CALLS] [{F}]", ONE, None, {ENVELOPE}),
    ("mistral_v3", f"[TOOL_CALLS] [{F}}}</s>", ONE, None, {ENVELOPE}),
    ("mistral_v3", f"[TOOL_CALLS] [{F}}} hi", ONE, "hi", {ENVELOPE}),
    ("mistral_v3", f"[TOOL_CALLS] [{F}, {G}}}]", BOTH, None, {ENVELOPE, "repaired_json"}),
    ("granite_3", f"<|tool_call|>[{F}<|end_of_text|>", ONE, None, {ENVELOPE}),
    ("lfm2", "<|tool_call_start|>[f(a=1), g(b=2)<|tool_call_end|>hi", BOTH, "hi", {ENVELOPE}),
    ("llama4_pythonic", "[f(a=1), g(b=2)", BOTH, None, {ENVELOPE}),
    ("llama3_json", f"Hi {P}", ONE, "Hi", {ENVELOPE}),
    ("llama3_json", f"Hi {P}<|eot_id|>", ONE, "Hi", {ENVELOPE}),
    ("llama3_json", f"Hi {P}; {Q}}}", BOTH, "Hi", {ENVELOPE}),
    ("llama3_json", f"Hi {P}\n{Q}}}", BOTH, "Hi", {ENVELOPE}),
    ("llama3_json", f"```json\n{P}\n```", ONE, None, {ENVELOPE}),
    # a brace of the arguments is missing where the closing marker of the call comes
    ("hermes", '<tool_call>\n{"name": "f", "arguments": {"a": {"b": 1}\n</tool_call> hi', NESTED, "hi", {ARGUMENTS}),
    ("gpt_oss", f'{TO_F}{{"a": {{"b": 1}}<|call|>', NESTED, None, {ARGUMENTS}),
    ("llama3_json", '<function=f>{"a": {"b": 1}</function> hi', NESTED, "hi", {ARGUMENTS}),
    # closers too many
    ("hermes", f"<tool_call>\n{F}}}}}}}\n</tool_call>\nhi", ONE, "hi", {SURPLUS}),
    ("hermes", f"<tool_call>\n{F}}}\n</tool_call>\n</tool_call> hi", ONE, "hi", {SURPLUS}),
    ("hermes", f"<tool_call>\n{F}}}\n</tool_call>\n```\nhi", ONE, "hi", {SURPLUS}),
    ("hermes", f"<tool_call>\n{F}}}\n</tool_call>\n```py\nhi", ONE, "```py\nhi", set()),
    ("mistral_v3", f"[TOOL_CALLS] [{F}}}}}, {G}}}]] hi", BOTH, "hi", {SURPLUS}),
    ("mistral_v11", '[TOOL_CALLS]f[ARGS]{"a": 1}}} hi', ONE, "hi", {SURPLUS}),
    ("mistral_v11", 'See ([TOOL_CALLS]f[ARGS]{"a": 1}) ok', ONE, "See ( ) ok", set()),
    ("functionary_v3_2", '>>>f\n{"a": 1}}>>>all\n} hi', ONE, "} hi", {SURPLUS}),
    ("granite_3", f"<|tool_call|>[{F}}}}}] hi", ONE, "hi", {SURPLUS}),
    ("gpt_oss", f'{TO_F}{{"a": 1}}}}<|call|>', ONE, None, {SURPLUS}),
    ("llama3_json", f"See ({P}}}) ok", ONE, "See ( ) ok", set()),
    ("llama3_json", f"See {P}}}) ok", ONE, "See ok", {SURPLUS}),
    ("llama3_json", f"```\n{P}}}\n``` ok", [], f"```\n{P}}}\n``` ok", {QUOTED}),
    ("llama3_json", '<function=f>{"a": 1}</function></function> hi', ONE, "hi", {SURPLUS}),
    ("llama4_pythonic", "[f(a=1)]] hi", ONE, "hi", {SURPLUS}),
    ("lfm2", "<|tool_call_start|>[f(a=1)]]<|tool_call_end|> hi", ONE, "hi", {SURPLUS}),
    ("qwen3_coder", f"{TF}1\n</parameter>\n</function>\n</function>\n</tool_call> hi", ONE, "hi", {SURPLUS}),
    # half a closing marker at the end
    ("hermes", f"<tool_call>\n{F}}}\n</tool_c", ONE, None, {UNFINISHED}),
    ("llama3_json", f"```json\n{P}}}\n``", ONE, None, {UNFINISHED}),
    ("llama3_json", f"```json\n{P}}}\n`", ONE, "`", set()),
    ("lfm2", "<|tool_call_start|>[f(a=1)]<|tool_call_e", ONE, None, {UNFINISHED}),
    ("qwen3_coder", f"{TF}1\n</parameter>\n</function>\n</tool_c", ONE, None, {UNFINISHED}),
    # a tagged value without its closer
    ("qwen3_coder", f"{TF}1\n</function>\n</tool_call>\n{TG}", BOTH, None, {VALUE}),
    ("qwen3_coder", f"{TF}1\n</function>\n</tool_call>", ONE, None, {VALUE}),
    ("qwen3_coder", f"{TF}1\n</function>\n</tool_call><|im_end|>", ONE, None, {VALUE}),
    ("qwen3_coder", f"{TF}1\n</tool_call>\n{TG}", BOTH, None, {VALUE}),
    ("qwen3_coder", f"{TF}1", ONE, None, {VALUE}),
    ("qwen3_coder", f"{TF}1\n</par", ONE, None, {VALUE, UNFINISHED}),
    ("qwen3_coder", f"{TF}1\n</parameter>\n</tool_call>\n{TG}", BOTH, None, {ENVELOPE}),
    (
        "qwen3_coder",
        f"{TF}x\n</function>\n</tool_call>\nand on\n</parameter>\n</function>\n</tool_call>",
        [("f", {"a": "x\n</function>\n</tool_call>\nand on"})],
        None,
        set(),
    ),
]


UNUSUAL = "unusual_form"
# the same where a format reads such calls by mistake only
ROWS += [
    ("hermes", text, calls, content, {*kinds, UNUSUAL})
    for name, text, calls, content, kinds in ROWS
    if name == "qwen3_coder" and text.startswith(TF)
]
ROWS += [
    ("hermes", '<function=f>{"a": 1}</function></function> hi', ONE, "hi", {SURPLUS, UNUSUAL}),
    ("hermes", f"{HF}1\n</function>", ONE, None, {VALUE, UNUSUAL}),
    ("hermes", f"{HF}1\n</parameter>\n", ONE, None, {ENVELOPE, UNUSUAL}),
    ("hermes", f"{HF}1\n</parameter>\n<|im_end|>", ONE, None, {ENVELOPE, UNUSUAL}),
    (
        "hermes",
        f"{TF}1\n</parameter>\n</function>\n</tool_call>\n<tool_call>\n{G}}}</tool_call>",
        BOTH,
        None,
        {UNUSUAL},
    ),
]


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, text, _, _, kinds in ROWS if kinds == {ENVELOPE} and name != "lfm2"]
)
def test_strict_parsers_repair_nothing(name: str, text: str) -> None:
    message = toolgram.get_format(name).parse(text, strict=True)
    assert ENVELOPE not in {anomaly.kind for anomaly in message.anomalies}
