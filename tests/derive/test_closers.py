"""Copied templates that print a wrong closing marker: what they print is read, and what their family writes."""

from __future__ import annotations

import pytest

import toolgram
from tests.derive.test_shapes import ARGUMENTS, ENDS, NAME, TURNS, calls_of, report_of
from tests.derive.turns import TEMPLATES
from tests.streams import check_events, cut, run
from toolgram.check import check_format
from toolgram.derive.closers import match_closers, wrong_closers

JSON = f'{{"name": "{NAME}", "arguments": {ARGUMENTS}}}'
PARAMETERS = (
    "{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>\n"
    "{{ v if v is string else v|tojson }}\n</parameter>\n{% endfor %}"
)
CODER = f"<tool_call>\n<function={NAME}>\n{PARAMETERS}</function>\n</tool_call>\n"
CODER_TEXT = "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>\n"
JSON_TEXT = '{"name": "f", "arguments": {"a": 1}}'
# How a call is written, what a model writes, the closing marker that is printed wrong, and what is printed for it.
WRONG = {
    "opened again": (
        f"<tool_call>{JSON}</tool_call>",
        f"<tool_call>{JSON_TEXT}</tool_call>",
        "</tool_call>",
        "<tool_call>",
    ),
    "plural": (
        f"<tool_call>{JSON}</tool_call>",
        f"<tool_call>{JSON_TEXT}</tool_call>",
        "</tool_call>",
        "</tool_calls>",
    ),
    "another": (f"<call>{JSON}</call>", f"<call>{JSON_TEXT}</call>", "</call>", "</tool>"),
    "bracket": (f"[TOOL]{JSON}[/TOOL]", f"[TOOL]{JSON_TEXT}[/TOOL]", "[/TOOL]", "[TOOL]"),
    "section": (
        f"<calls><call>{JSON}</call></calls>",
        f"<calls><call>{JSON_TEXT}</call></calls>",
        "</calls>",
        "<calls>",
    ),
    "token": (
        f"<|call_begin|>{NAME}<|with|>{ARGUMENTS}<|call_end|>",
        '<|call_begin|>f<|with|>{"a": 1}<|call_end|>',
        "<|call_end|>",
        "<|call_begin|>",
    ),
    "function": (
        f"<function={NAME}>{ARGUMENTS}</function>",
        '<function=f>{"a": 1}</function>',
        "</function>",
        "</func>",
    ),
    "outer": (CODER, CODER_TEXT, "</tool_call>", "<tool_call>"),
    "inner": (CODER, CODER_TEXT, "</function>", "</functions>"),
    "value": (CODER, CODER_TEXT, "</parameter>", "</param>"),
}


@pytest.mark.parametrize("name", WRONG)
def test_the_official_closer_closes_as_well(name: str) -> None:
    call, text, official, printed = WRONG[name]
    fmt = toolgram.derive_format(TURNS + call.replace(official, printed) + ENDS)
    assert report_of(fmt).ok, str(report_of(fmt))
    if printed not in text:  # else the same marker begins the next call where this one is not closed
        assert check_format(fmt, 4).ok
    for one in (text, text.replace(official, printed)):
        for whole, meant in ((f"Yes.{one}", 1), (f"Yes.{one}{one}", 2)):
            for size in (1, 3, len(whole)):
                events, message = run(fmt, cut(whole, size))
                check_events(events, whole)
                assert (message.content, calls_of(message)) == ("Yes.", [("f", {"a": 1})] * meant), whole
                assert not message.anomalies


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ("<tool_call>", "</tool_call>"),
        ("<calls><call>", "</call></calls>"),
        ("<|call|>x<|with|>", "<|done|>"),
        ("<｜calls▁begin｜><｜call▁begin｜>function<｜sep｜>x\n```json\n", "\n```<｜call▁end｜><｜calls▁end｜>"),
        ('<invoke name="x">', "</invoke>"),
        ("[TOOL_CALLS]x[ARGS]", ""),
        ("|x|", "|"),
        ("```json\n", "\n```"),
        ("<do x ", "/>"),
    ],
)
def test_what_closes_as_it_should_stands_for_nothing_else(opening: str, closing: str) -> None:
    assert match_closers(opening, closing) == {}


def test_no_other_template_has_a_wrong_closer() -> None:
    for path in sorted(TEMPLATES.glob("*.jinja")):
        report = report_of(toolgram.derive_format(path.read_text(encoding="utf-8"), bos_token="<s>", eos_token="</s>"))
        if report.analysis is not None and report.analysis.calls is not None:
            assert wrong_closers(report.analysis.calls) == {}, path.stem
