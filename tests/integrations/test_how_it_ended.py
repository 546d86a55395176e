"""How an output ended: a call is complete only if the model ended it.

Strategy: a scripted model writes a call, and something ends the output at every place of it: a limit, a stop string, an
end id. A server of the test cuts text and ids as vLLM's detokenizer does. Whatever is complete then has to be the call
that was written.
"""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import toolgram
from tests.integrations.cases import TOOLS
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.writers import WRITERS, Turn
from tests.properties.selection import quarter
from tests.streams import arguments_of, calls_of
from toolgram.events import ToolCallEnd, ToolCallStart
from toolgram.integrations.answers import FAILED, TEXT, AnswerBuilder
from toolgram.integrations.served import Served, Session

GIVEN = {"path": "/tmp/a", "content": "one two three four"}
TURN = Turn("", calls=(("write_file", GIVEN),))
TAGGED = ("qwen3_coder", "glm45", "minimax_m2", "minicpm5", "deepseek_v32", "hermes", "mistral_v11", "lfm2")
OTHER_END = "<|other|end|>"


class Model:
    """A format, and what a model of it writes."""

    def __init__(self, name: str) -> None:
        self.fmt = toolgram.get_format(name)
        self.text = WRITERS[name](TURN)
        self.tokenizer = Pieces([*self.fmt.program.special.values(), OTHER_END], size=2)
        self.served = Served(self.tokenizer, name)
        self.ids = self.tokenizer.encode(self.text)

    def calls(self, text: str, ids: Sequence[int], group: int | None, **request: Any) -> list[tuple[str, str, str]]:
        """The calls that are read: name, arguments, status; `group` is None for a whole answer."""
        session = Session(self.served, lambda: TOOLS)
        session.prefix = ""
        session.see_request(SimpleNamespace(**request))
        if group is None:
            _, builder = session.whole(text, ids, lambda: AnswerBuilder(FAILED[TEXT]))
            return calls_of(builder.answer())
        events, at = [], 0
        for begin in range(0, len(ids), group):
            part = ids[begin : begin + group]
            last = begin + group >= len(ids)
            until = len(text) if last else min(len(text), at + len(self.tokenizer.decode(part)))
            events += session.feed(text[at:until], part)
            at = until
        events += session.close()
        names = [event.name for event in events if isinstance(event, ToolCallStart)]
        ends = [event.status for event in events if isinstance(event, ToolCallEnd)]
        called = [(name, "".join(arguments_of(events, at))) for at, name in enumerate(names)]
        return [(*call, end) for call, end in zip(called, ends, strict=True)]


@pytest.fixture(params=quarter(TAGGED, "how it ended"), scope="module")
def model(request: pytest.FixtureRequest) -> Model:
    return Model(request.param)


@pytest.fixture(params=[None, 1, 7])
def group(request: pytest.FixtureRequest) -> Any:
    """Tokens in a delta, or None for a whole answer."""
    return request.param


def is_right(calls: Sequence[tuple[str, str, str]]) -> bool:
    return all(json.loads(arguments) == GIVEN for _, arguments, status in calls if status == "complete")


def is_whole(calls: Sequence[tuple[str, str, str]]) -> bool:
    return [(name, status) for name, _, status in calls] == [("write_file", "complete")] and is_right(calls)


def without_closers(model: Model) -> str:
    """What the model wrote, up to its last value."""
    text, before = model.text.rstrip(), ""
    while text != before:
        before = text
        for marker in model.fmt.program.closing - {","}:
            text = text.removesuffix(marker).rstrip()
    return text


def stopped(model: Model, stop: str) -> tuple[str, list[int]]:
    """The text and the ids of an output that a stop string ends: ids up to the one that completes it."""
    place = model.text.index(stop)
    ends = (len(model.tokenizer.decode(model.ids[:at])) for at in range(len(model.ids) + 1))
    enough = next(at for at, end in enumerate(ends) if end >= place + len(stop))
    return model.text[:place], model.ids[:enough]


def test_a_limit_ends_no_call(model: Model, group: int | None) -> None:
    """Not at the limit of the request, and not at that of the server, which no request shows."""
    for size in range(1, len(model.ids)):
        ids = model.ids[:size]
        text = model.tokenizer.decode(ids)
        for limit in ({"max_tokens": size}, {}):
            assert is_right(model.calls(text, ids, group, **limit)), text


def test_a_stop_string_ends_no_call(model: Model, group: int | None) -> None:
    for place in range(len(model.text) - 4):
        stop = model.text[place : place + 4]
        text, ids = stopped(model, stop)
        for asked in (stop, [stop, "no such text"]):
            assert is_right(model.calls(text, ids, group, stop=asked)), (stop, text)


def test_the_closing_marker_of_the_call_as_a_stop_string_ends_it(model: Model, group: int | None) -> None:
    """Whether the server leaves it in the text or takes it out; after it, nothing of the call is missing."""
    value_ends = model.text.index("four") + 4
    closing = {marker: model.text.find(marker) for marker in model.fmt.program.closing}
    for marker in (each for each, place in closing.items() if place >= value_ends):
        text, ids = stopped(model, marker)
        without = model.calls(text, ids, group, stop=[marker])
        assert is_right(without)
        assert without == model.calls(text + marker, ids, group, stop=[marker], include_stop_str_in_output=True)


def test_a_stop_string_in_a_value_is_a_cut_also_if_it_looks_like_a_marker(model: Model, group: int | None) -> None:
    for marker in (each for each in model.fmt.program.closing if len(each) > 1):
        text = model.text[: model.text.index(" three")]
        ids = [*model.tokenizer.encode(text), *model.tokenizer.spell(marker)]
        calls = model.calls(text, ids, group, stop=[marker])
        assert is_right(calls), (marker, calls)
        assert all(marker not in arguments for _, arguments, _ in calls)


def test_an_end_id_ends_a_call(model: Model, group: int | None) -> None:
    """The tokenizer's own, one of the generation config, or one of the request; not if the request ignores them."""
    eos, other = model.tokenizer.eos_token_id, model.tokenizer.token(OTHER_END)
    open_ended = without_closers(model)
    ids = model.tokenizer.encode(open_ended)
    natural = model.calls(open_ended, [*ids, eos], group)
    assert is_right(natural)
    assert natural == model.calls(open_ended, [*ids, other], group, stop_token_ids=[other])
    cut = model.calls(open_ended, ids, group)
    assert cut == model.calls(open_ended, [*ids, eos], group, ignore_eos=True)
    assert cut == model.calls(open_ended, [*ids, other], group)
    model.served.see_model(SimpleNamespace(try_get_generation_config=lambda: {"eos_token_id": [eos, other]}))
    assert natural == model.calls(open_ended, [*ids, other], group)
    model.served.eos_ids = frozenset([eos])


def test_some_calls_need_their_end() -> None:
    """The tests above try something: in these formats a call without its closing markers is complete at an end id."""
    found = 0
    for model in map(Model, TAGGED):
        text = without_closers(model)
        ids = model.tokenizer.encode(text)
        ended = model.calls(text, [*ids, model.tokenizer.eos_token_id], None)
        found += is_whole(ended) and not is_whole(model.calls(text, ids, None))
    assert found >= 3
