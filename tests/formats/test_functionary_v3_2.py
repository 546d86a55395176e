"""Functionary v3.2: `>>>`, a recipient on a line, and what goes to it.

Strategy: as in `test_llama3_json`, each text is asked whole and streamed however it is split; with the prompt's `>>>`
as the prefix, and with all of it in the output.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import toolgram
from tests.streams import assert_parses, assert_same_however_split, held_after, statuses

parses = partial(assert_parses, "functionary_v3_2")
PROMPT = "<|start_header_id|>assistant<|end_header_id|>\n\n>>>"
F = '>>>f\n{"a": 1}'
G = ">>>g\n{}"
CALL_F = ("f", {"a": 1})
CALL_G: tuple[str, dict[str, Any]] = ("g", {})


def fmt() -> toolgram.Format:
    return toolgram.get_format("functionary_v3_2")


def test_content() -> None:
    parses("all\nHello!", "Hello!", prefix=PROMPT)
    parses("all\n Line one\n\nLine two \n", "Line one\n\nLine two \n", prefix=PROMPT)
    parses(">>>all\nHello!<|eot_id|>", "Hello!")
    parses(">>>all\nOne.>>>all\nTwo.", "One. Two.")
    parses("Hello!", "Hello!")
    parses("all\n", None, prefix=PROMPT)


@pytest.mark.parametrize(
    "text",
    [
        'f\n{"a": 1}',
        'f{"a": 1}',
        'f {"a": 1}',
        'f\r\n{"a": 1}\n',
        'f\n\n{"a": 1}<|eot_id|>',
        'f\n  {"a": 1} <|eot_id|>',
    ],
)
def test_spellings_of_one_call(text: str) -> None:
    parses(text, None, [CALL_F], prefix=PROMPT)
    parses(text, None, [CALL_F], prefix=">>>")
    parses(f">>>{text}", None, [CALL_F])


def test_calls_and_content() -> None:
    parses(f"{F}{G}", None, [CALL_F, CALL_G])
    parses(f"{F}\n{G}\n{F}", None, [CALL_F, CALL_G, CALL_F])
    parses(f"all\nSure.{F}{G}", "Sure.", [CALL_F, CALL_G], prefix=PROMPT)
    parses(f"all\nSure.\n{F}>>>all\nDone.", "Sure. Done.", [CALL_F], prefix=PROMPT)
    parses(f"{F} and {G}", "and", [CALL_F, CALL_G])


@pytest.mark.parametrize("name", ["f", "get_weather", "a.b", "get-time", "allocate", "al", "python"])
def test_names(name: str) -> None:
    parses(f"{name}\n{{}}", None, [(name, {})], prefix=PROMPT)
    parses(f">>>all\nx>>>{name}\n{{}}", "x", [(name, {})])


@pytest.mark.parametrize(
    "text",
    [
        "python\nprint(1)",
        "python\n{'a': 1}",
        'python\n"""doc"""\nx = {}\n',
        "python\n[1, 2]",
        "f\n{",
        "f\n{a}",
        "f",
        "f\n",
        "al",
        " all\nx",
        "",
    ],
)
def test_what_is_no_call_stays_in_content(text: str) -> None:
    parses(text, text or None, prefix=PROMPT)
    parses(f">>>{text}", f">>>{text}")
    parses(f"{text}{F}", text.rstrip() or None, [CALL_F], prefix=f"{PROMPT}all\n" if not text else PROMPT)


@pytest.mark.parametrize("text", [">>> print(1)\n1", "a >> b >>= c", ">>>>> quoted", ">>>\nx", "x>>>", ">>", "{}"])
def test_arrows_in_content(text: str) -> None:
    parses(f"all\n{text}", text, prefix=PROMPT)
    parses(text, text)


def test_arguments_that_break() -> None:
    message = assert_same_however_split(fmt(), f'>>>h\n{{"a": tru}} bye {G}')
    assert statuses(message) == [("h", "malformed"), ("g", "complete")]
    assert (message.content or "").endswith("bye")
    message = assert_same_however_split(fmt(), f'>>>h\n{{"a": 1 {G}')
    assert statuses(message) == [("h", "malformed"), ("g", "complete")]


def test_truncated() -> None:
    for at in range(F.index("{") + 2, len(F)):
        message = assert_same_however_split(fmt(), F[:at])
        assert statuses(message) == [("f", "truncated")]


def test_a_recipient_in_arguments_is_data() -> None:
    parses('>>>f\n{"a": ">>>g\\n{}", "b": "<|eot_id|>"}', None, [("f", {"a": ">>>g\n{}", "b": "<|eot_id|>"})])


def test_what_is_held() -> None:
    assert held_after("functionary_v3_2", "a >>") == " >>"
    assert held_after("functionary_v3_2", "a >>> ") == " "
    assert held_after("functionary_v3_2", ">>>get_w") == ">>>get_w"
    assert held_after("functionary_v3_2", ">>>python\nprint(") == ""
    assert held_after("functionary_v3_2", '>>>f\n{"') == ""


def test_clean_output_has_no_anomalies() -> None:
    assert parses(f"all\nSure.{F}{G}", "Sure.", [CALL_F, CALL_G], prefix=PROMPT).anomalies == []
