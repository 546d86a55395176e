"""What a tag lets a model write where a prompt has not said whether it thinks: in every format, with no server."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import toolgram
from tests.export.engines import Xgrammar, vocabulary
from tests.export.test_answers import without_stop
from tests.integrations.cases import TOOLS
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.writers import WRITERS, Turn
from tests.properties.selection import every_format
from toolgram.integrations.served import Served
from toolgram.integrations.vllm_tags import tag_text
from toolgram.observing.paths import canonical_outputs

for engine in ("tvm_ffi", "numpy"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")

CALL = (("get_weather", {"city": "Paris"}),)
FORM = {"type": "regex", "pattern": "[0-9]+"}


def asked(choice: str) -> Any:
    """A request."""
    return SimpleNamespace(tool_choice=choice, parallel_tool_calls=True)


@every_format
def test_a_call_or_an_answer_may_follow_a_thought_and_need_not(name: str) -> None:
    """Also where all examples of the format have the thought behind a prompt that has begun it."""
    fmt = toolgram.get_format(name)
    if name not in WRITERS or not any(
        fmt.parse(out, TOOLS, prefix).reasoning for prefix, out, _ in canonical_outputs(fmt)
    ):
        pytest.skip("nothing writes this format, or its models do not think")
    served = Served(Pieces([], list(fmt.program.special.values())), name)
    plain = WRITERS[name](Turn("", content="12"))
    begun = next((prefix for prefix, _, _ in canonical_outputs(fmt) if prefix and plain.startswith(prefix)), "")
    engine = Xgrammar(vocabulary())  # `begun` is what every prompt writes, before a message of any kind
    forced = engine.compile("structural_tag", tag_text(served, asked("required"), TOOLS, begun, None))
    formed = engine.compile("structural_tag", tag_text(served, asked("auto"), [], begun, None, FORM))
    for reasoning in ("", "They ask. Is it {so}?"):
        call, answer, text = (
            without_stop(fmt, WRITERS[name](turn)).removeprefix(begun)
            for turn in (
                Turn("", reasoning, calls=CALL),
                Turn("", reasoning, content="12"),
                Turn("", reasoning, content="It is sunny."),
            )
        )
        assert engine.accepts(forced, call), call
        assert not engine.accepts(forced, text), text
        assert engine.accepts(formed, answer), answer
        assert not engine.accepts(formed, text), text
        assert not engine.accepts(formed, call), call


def test_where_the_prompt_is_not_known_no_thought_is_added() -> None:
    """It may have begun one."""
    served = Served(Pieces([], ["<think>", "</think>"]), "minicpm5")
    request = asked("required")
    known, unknown = (tag_text(served, request, TOOLS, prefix, None) for prefix in ("", None))
    assert len(known) > len(unknown)
