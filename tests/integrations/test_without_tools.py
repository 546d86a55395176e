"""An answer to a request without tools: reasoning is read, and a call is the text that the model wrote, markers
and all."""

from __future__ import annotations

import pytest

pytest.importorskip("openai")
pytest.importorskip("anthropic")

import toolgram
from tests.integrations.http_matrix import ALL
from tests.integrations.http_shapes import shipped
from tests.integrations.vllm_heard import bare
from tests.properties.selection import quarter

SHAPES = {shape.name.removeprefix("toolgram_"): shape for shape in shipped() if shape.whole is not None}


@pytest.mark.parametrize("name", quarter([*SHAPES], "test_a_call_is_text"))
def test_a_call_is_text(name: str) -> None:
    shape, fmt = SHAPES[name], toolgram.get_format(name).text_only
    around = (*shape.special, *shape.around_text)
    tried = 0
    for turn in ALL:
        if shape.whole is None or shape.calls is None or not turn.calls or not shape.can_write(turn):
            continue
        if (turn.reasoning and not shape.thinks) or turn.label == "long arguments":
            continue
        message = fmt.parse(shape.whole(turn), prefix="")
        assert bare(message.content, around) == bare(shape.calls(turn), around), turn.label
        assert bare(message.reasoning) == bare(turn.reasoning), turn.label
        assert not message.tool_calls
        tried += 1
    assert tried
