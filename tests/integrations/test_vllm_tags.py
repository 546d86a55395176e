"""What a tag lets a model write where a prompt has not said whether it thinks: in every format, with no server."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolgram
from tests.export.engines import Xgrammar, vocabulary
from tests.integrations.cases import TOOLS, without_stop
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.writers import WRITERS, Turn
from tests.properties.selection import every_format
from toolgram.errors import ToolgramError
from toolgram.integrations.served import Served
from toolgram.integrations.vllm_tags import tag_text, written
from toolgram.limits import MOST_TAGS
from toolgram.observing.paths import canonical_outputs

for engine in ("tvm_ffi", "numpy"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")

CALL = (("get_weather", {"city": "Paris"}),)
FORM = {"type": "regex", "pattern": "[0-9]+"}


def asked(choice: Any) -> Any:
    """A request."""
    return SimpleNamespace(tool_choice=choice, parallel_tool_calls=True)


@every_format
def test_a_call_or_an_answer_may_follow_a_thought_and_need_not(name: str) -> None:
    """Also if all examples of the format have the thought after a prompt that has begun it."""
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


NAMES = [tool["function"]["name"] for tool in TOOLS]


@given(
    asks=st.lists(
        st.tuples(
            st.sampled_from(["required", "auto", *NAMES]),
            st.booleans(),
            st.lists(st.sampled_from(TOOLS), min_size=1, max_size=2, unique_by=lambda tool: tool["function"]["name"]),
            st.sampled_from([None, "", "<think>\n"]),
            st.sampled_from([None, False]),
            st.sampled_from([None, FORM]),
        ),
        max_size=4,
    )
)
@settings(max_examples=10, deadline=None)
def test_a_tag_from_the_cache_is_the_one_that_would_be_written(asks: list[Any]) -> None:
    served, fmt = Served(Pieces([], ["<think>", "</think>"]), "hermes"), toolgram.get_format("hermes")
    for choice, parallel, tools, prefix, reasoning, form in (*asks, *asks):
        name = tools[0]["function"]["name"]
        named = {"type": "function", "function": {"name": name}}
        words = choice in ("required", "auto")
        request = asked(choice if words else SimpleNamespace(function=SimpleNamespace(name=name)))
        request.parallel_tool_calls = parallel
        export = fmt.export(
            "structural_tag", tools, choice if words else named, parallel, text_before_calls=choice == "auto",
            answer_format=form, reasoning=reasoning, prefix=prefix,
        )  # fmt: skip
        assert tag_text(served, request, tools, prefix, reasoning, form) == export.text


def test_the_same_tools_are_exported_once() -> None:
    """In whatever objects they come; also if there is no tag."""
    served = Served(Pieces([], ["<think>", "</think>"]), "hermes")
    before = written.cache_info()
    for _ in range(5):
        tag_text(served, asked("required"), [json.loads(json.dumps(tool)) for tool in TOOLS], "", None)
        with pytest.raises(ToolgramError, match=r"no tools"):
            tag_text(served, asked("required"), [], "", None)
    after = written.cache_info()
    assert (after.misses - before.misses, after.hits - before.hits) == (2, 8)
    assert after.maxsize == MOST_TAGS
