"""Stop strings that the gateway looks for itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.servers import TEMPLATE, Script, gateway_to, post
from toolgram.gateway.endings import StopTexts
from toolgram.gateway.loading import TemplateFiles

FILES = TemplateFiles(TEMPLATE, eos_token="<|im_end|>")


@given(
    st.lists(st.text("ab", max_size=4), max_size=12),
    st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
)
def test_the_text_ends_before_the_first_that_is_there(deltas: list[str], stops: list[str]) -> None:
    """However the text is split: that which is over first."""
    text = "".join(deltas)
    places = [(text.find(stop) + len(stop), text.find(stop), stop) for stop in stops if stop in text]
    expected = min(places)[1:] if places else (len(text), None)
    for parts in (deltas, list(text), [text]):
        reader, passed = StopTexts(stops), ""
        for part in parts:
            passed += reader.feed(part)
            assert not any(stop in passed for stop in stops)
            if reader.found is not None:
                break
        else:
            passed += reader.end()
        assert (passed, reader.found) == (text[: expected[0]], expected[1])


@pytest.mark.parametrize("kind", ["mlx", "openai", "vllm", "ollama", "sglang", "llama.cpp"])
@pytest.mark.parametrize("more", [0, 1, 50])
def test_an_answer_is_cut_here(kind: str, more: int) -> None:
    """The server ends with the stop string in its text, soon behind it, or much later."""
    script = Script(kind=kind, texts=["It is su", "nny in Zü", "rich", *["again "] * more], ends=more < 50)
    with gateway_to(script, files=FILES, name="mine") as (address, _):
        ask = {"messages": [{"role": "user", "content": "hi"}], "stop": ["Zürich"]}
        said = post(f"{address}/v1/chat/completions", json=ask).json()
        messages = {"model": "m", "max_tokens": 99, "messages": ask["messages"], "stop_sequences": ["Zürich"]}
        other = post(f"{address}/v1/messages", json=messages).json()
    assert said["choices"][0]["message"]["content"] == "It is sunny in "
    assert said["choices"][0]["finish_reason"] == "stop"
    assert (other["stop_reason"], other["stop_sequence"]) == ("stop_sequence", "Zürich")
    assert said["usage"]["prompt_tokens"] == (11 if more < 50 else 0)
    if kind == "mlx":
        assert script.bodies[0]["model"] == "default_model"
        assert script.bodies[0]["stop"] == ["<|endoftext|>", "<|im_end|>"]  # those of the family
