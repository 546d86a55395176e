"""gpt-oss: harmony messages, each with a channel and perhaps a recipient.

Strategy: as in `test_llama3_json`, each text is asked whole and streamed however it is split; most of them after the
prompt that the template writes, and without it.
"""

from __future__ import annotations

from functools import partial

import pytest

import toolgram
from tests.streams import assert_parses, held_after
from toolgram.events import Content, Reasoning

parses = partial(assert_parses, "gpt_oss")
PROMPT = "<|start|>assistant"
HM = "<|channel|>analysis<|message|>Hm.<|end|>"
YES = "<|channel|>final<|message|>Yes."
CALL_F = ("f", {"a": 1})


def fmt() -> toolgram.Format:
    return toolgram.get_format("gpt_oss")


@pytest.mark.parametrize("prefix", ["", PROMPT])
@pytest.mark.parametrize("recipient", [" to=functions.f", " to=f", "to=functions.f"])
@pytest.mark.parametrize("hint", ["", " json", " <|constrain|>json", "<|constrain|>json", " code", "  "])
def test_headers_of_one_call(prefix: str, recipient: str, hint: str) -> None:
    body = '<|message|>{"a": 1}'
    for channel in ("commentary", "analysis", "final"):
        parses(f"{recipient}<|channel|>{channel}{hint}{body}<|call|>", None, [CALL_F], prefix=prefix)
        parses(f"<|channel|>{channel} {recipient.strip()}{hint}{body}", None, [CALL_F], prefix=prefix)
    parses(f"{recipient}{hint}{body}<|end|>", None, [CALL_F], prefix=prefix)


def test_text_streams_at_once() -> None:
    parser = fmt().parser(prefix=PROMPT)
    events = [e for c in f"{HM}{PROMPT}{YES}" for e in parser.feed(c)]
    assert "".join(e.text for e in events if isinstance(e, Reasoning)) == "Hm."
    assert "".join(e.text for e in events if isinstance(e, Content)) == "Yes."


def test_what_is_held() -> None:
    assert held_after("gpt_oss", " to=functions.get_w") == " to=functions.get_w"
    assert held_after("gpt_oss", " to b") == ""
    assert (
        held_after("gpt_oss", "<|channel|>commentary to=f json<|message|>")
        == "<|channel|>commentary to=f json<|message|>"
    )
    assert held_after("gpt_oss", '<|channel|>commentary to=f json<|message|>{"') == ""
    assert held_after("gpt_oss", "<|channel|>final<|message|>") == ""


def test_with_token_ids_only_the_emitted_token_is_a_marker() -> None:
    parser = fmt().parser(prefix=PROMPT, special_tokens={"<|channel|>": 5, "<|message|>": 8, "<|end|>": 7})
    for delta, ids in (
        ("<|channel|>", [5]),
        ("final", [1]),
        ("<|message|>", [8]),
        ("I write <|end|> and <|channel|>.", [1, 2, 3]),
        ("<|end|>", [7]),
    ):
        parser.feed(delta, token_ids=ids)
    parser.close()
    assert parser.message.content == "I write <|end|> and <|channel|>."
