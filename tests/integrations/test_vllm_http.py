"""Every kind of request over HTTP: vLLM's own server and the official clients. `make test-vllm-http`.

The matrix itself is in `http_matrix.py`. Here it has to be clean, and what only a server can show is tried beside it.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm-http` builds an environment")
pytest.importorskip("anthropic", reason="the clients are part of the environment of `make test-vllm-http`")

import httpx2

from tests.integrations.cases import TOOLS
from tests.integrations.http_clients import APIS, CHAT, MESSAGES, RESPONSES, Ask, Clients
from tests.integrations.http_fleet import ROOT, START, Fleet, flags_of, make_models
from tests.integrations.http_matrix import Model, Trial, mistakes, wrong
from tests.integrations.http_shapes import shapes
from tests.integrations.scripted_engine import SLOW
from tests.integrations.writers import Turn
from tests.json_prefix import value_of

pytestmark = pytest.mark.filterwarnings("default")

NAMES = [shape.name for shape in shapes()]
_CALL = ("get_weather", {"city": "Paris"})
WRITTEN = ("write_file", {"path": "/tmp/a", "content": " ".join(f"word {number}" for number in range(20))})
STREAMS = 200
# What ends an output, and whether the call in it is whole then.
ENDS: dict[str, tuple[dict[str, Any], bool]] = {
    "itself": ({}, True),
    "a limit": ({"limit": 30}, False),
    "a stop string": ({"stop": ["word 12"]}, False),
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    scratch = tmp_path_factory.mktemp("servers")
    models = make_models((), scratch)
    for model in models:
        MATRIX[model.shape.name] = model.trials()
        SCRIPTS[model.shape.name] = {label: model.number(script) for label, script in scripts(model).items()}
        model.write()
    with Fleet(models, scratch) as running:
        yield running


MATRIX: dict[str, list[Trial]] = {}
SCRIPTS: dict[str, dict[str, int]] = {}


def scripts(model: Model) -> dict[str, tuple[int, ...]]:
    """What is said in the tests below the matrix."""
    said = {
        "content": Turn("", content="It is sunny in Paris today, and warm."),
        "call": Turn("", content="Let me look.", calls=(_CALL,)),
        "long": Turn("", content="word " * 400),
        "text after": Turn("", calls=(_CALL,), after="And that was that."),
        "write": Turn("", calls=(WRITTEN,)),
    }
    found = {label: model.written(turn, TOOLS, {}) for label, turn in said.items()}
    return {label: model.script(text) for label, text in found.items() if text is not None}


@pytest.mark.parametrize("name", NAMES)
def test_the_matrix(name: str, fleet: Fleet) -> None:
    heard = asyncio.run(fleet.try_all(f"toolgram {name}", MATRIX[name]))
    shape, specials = fleet.models[name].shape, fleet.models[name].specials
    assert len(heard) > (0 if shape.calls is None else 200 if shape.sibling else 300)
    found = mistakes(heard, partial(wrong, specials=specials))
    assert not found, f"{len(found)} of {len(heard)} answers are wrong, first {found[:3]}"


def asked(fleet: Fleet, *asks: Ask, name: str = "toolgram Qwen3") -> list[Any]:
    async def together() -> list[Any]:
        async with Clients(fleet.ports[name]) as clients:
            return list(await asyncio.gather(*(clients.hear(ask) for ask in asks)))

    return asyncio.run(together())


@pytest.mark.parametrize("api", APIS)
def test_every_grouping_of_a_call_and_the_text_behind_it(api: str, fleet: Fleet) -> None:
    """Also where a step holds the end of the arguments, the text and the end of the turn."""
    script = SCRIPTS["Qwen3"]["text after"]
    for (heard,) in asked(fleet, *(Ask(script, api, pace, TOOLS) for pace in (None, *range(40)))):
        assert heard.error == ""
        assert heard.made() == [_CALL]
        assert (heard.content or "").strip() == "And that was that."


@pytest.mark.parametrize("pace", [None, 1, 3, 0])
@pytest.mark.parametrize("api", [CHAT, MESSAGES])
def test_a_stop_string_ends_the_text(api: str, pace: int | None, fleet: Fleet) -> None:
    ((heard,),) = asked(fleet, Ask(SCRIPTS["Qwen3"]["content"], api, pace, TOOLS, stop=["today"]))
    assert (heard.content or "").strip() == "It is sunny in Paris"
    assert heard.finish_reason == "stop"


@pytest.mark.parametrize("pace", [None, 1, 3])
def test_two_answers_with_logprobs_and_usage(pace: int | None, fleet: Fleet) -> None:
    ask = Ask(SCRIPTS["Qwen3"]["call"], CHAT, pace, TOOLS, answers=2, logprobs=True, usage=pace is not None)
    (heard,) = asked(fleet, ask)
    tokens = len(list(fleet.models["Qwen3"].scripts)[ask.script])
    assert len(heard) == 2
    for answer in heard:
        assert answer.error == ""
        assert answer.made() == [_CALL]
        assert answer.finish_reason == "tool_calls"
        assert answer.usage["completion_tokens"] == 2 * tokens
    if pace is None:
        assert heard[0].logprobs == tokens


def is_as_it_ended(calls: Sequence[tuple[str, str]], whole: bool) -> bool:
    """Whether there is the one call, whole, or the beginning of it, which is no JSON."""
    if [name for name, _ in calls] != [WRITTEN[0]]:
        return False
    given = value_of(calls[0][1])
    return bool(given == WRITTEN[1] if whole else not isinstance(given, dict))


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("pace", [None, 1, 3])
@pytest.mark.parametrize("name", ["Qwen3", "Qwen3-Coder"])
def test_several_answers_end_as_the_model_ended_them(name: str, pace: int | None, end: str, fleet: Fleet) -> None:
    fields, whole = ENDS[end]
    ask = Ask(SCRIPTS[name]["write"], CHAT, pace, TOOLS, answers=3, **fields)
    (heard,) = asked(fleet, ask, name=f"toolgram {name}")
    assert len(heard) == 3
    for answer in heard:
        assert answer.error == ""
        assert is_as_it_ended(answer.calls, whole), answer.told()


@pytest.mark.parametrize("end", ["itself", "a limit"])
@pytest.mark.parametrize("pace", [None, 1])
@pytest.mark.parametrize("name", ["Qwen3", "Qwen3-Coder"])
def test_an_answer_of_beam_search_ends_as_the_model_did(name: str, pace: int | None, end: str, fleet: Fleet) -> None:
    """vLLM asks the engine for one token at a time, and leaves out the last one."""
    fields, whole = ENDS[end]
    ask = Ask(SCRIPTS[name]["write"], CHAT, pace, TOOLS, extra={"use_beam_search": True}, **fields)
    ((heard,),) = asked(fleet, replace(ask, limit=ask.limit or 1000), name=f"toolgram {name}")
    assert heard.error == ""
    assert is_as_it_ended(heard.calls, whole), heard.told()
    assert heard.finish_reason == ("tool_calls" if whole else "length")


def test_an_answer_of_run_batch_ends_as_the_model_ended_it(fleet: Fleet, tmp_path: Path) -> None:
    """A file of requests, with one answer each and with two."""
    model = fleet.models["Qwen3"]
    text = Ask(SCRIPTS["Qwen3"]["write"]).text
    asks = {f"{end}, {n}": (n, fields, whole) for n in (1, 2) for end, (fields, whole) in ENDS.items()}
    given, answered = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    with given.open("w", encoding="utf-8") as file:
        for label, (n, fields, _) in asks.items():
            body = {"model": "model", "messages": [{"role": "user", "content": text}], "tools": TOOLS, "n": n}
            body |= {"max_completion_tokens": fields.get("limit", 1000), "stop": fields.get("stop", [])}
            row = {"custom_id": label, "method": "POST", "url": "/v1/chat/completions", "body": body}
            file.write(json.dumps(row) + "\n")
    command = [sys.executable, "-m", "tests.integrations.http_server", "run-batch", "-i", str(given)]
    command += ["-o", str(answered), "--model", str(model.folder), "--served-model-name", "model", "--dtype", "float32"]
    command += flags_of("toolgram", "toolgram")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=START)
    assert done.returncode == 0, done.stderr[-3000:]
    told = [json.loads(line) for line in answered.read_text(encoding="utf-8").splitlines()]
    assert {row["custom_id"] for row in told} == asks.keys()
    for row in told:
        n, _, whole = asks[row["custom_id"]]
        choices = row["response"]["body"]["choices"]
        assert len(choices) == n
        for choice in choices:
            functions = [each["function"] for each in choice["message"]["tool_calls"]]
            assert is_as_it_ended([(each["name"], each["arguments"]) for each in functions], whole), (row, functions)


def test_reasoning_is_counted_once(fleet: Fleet) -> None:
    trials = [each for each in MATRIX["Qwen3"] if each.label.startswith("reasoning, content, thinking unset")]
    chosen = [each for each in trials if each.kind == "auto" and each.ask.api != MESSAGES]
    asks = [replace(each.ask, usage=each.ask.api == CHAT and each.ask.pace is not None) for each in chosen]
    counted = set()
    for (heard,) in asked(fleet, *asks):
        details = heard.usage.get("completion_tokens_details") or heard.usage.get("output_tokens_details")
        counted.add(details["reasoning_tokens"])
    assert len(counted) == 1
    assert counted.pop() > 0


def test_two_hundred_streams_at_once(fleet: Fleet) -> None:
    known = SCRIPTS["Qwen3"]
    asks = [Ask(known[("call", "text after")[n % 2]], APIS[n % 3], (1, 3)[n % 2], TOOLS) for n in range(STREAMS)]
    answers = asked(fleet, *asks)
    assert all(not heard.error for (heard,) in answers)
    assert all(heard.made() == [_CALL] for (heard,) in answers)


def test_clients_that_hang_up_leave_the_server_well(fleet: Fleet) -> None:
    async def hang_up() -> None:
        messages: Any = [{"role": "user", "content": Ask(SCRIPTS["Qwen3"]["long"], pace=SLOW).text}]
        more: Any = {"tools": TOOLS, "stream": True, "max_completion_tokens": 5000}
        async with Clients(fleet.ports["toolgram Qwen3"]) as clients:
            for _ in range(5):
                stream = await clients.openai.chat.completions.create(model="model", messages=messages, **more)
                async for _chunk in stream:
                    break
                await stream.close()

    asyncio.run(hang_up())
    ((heard,),) = asked(fleet, Ask(SCRIPTS["Qwen3"]["call"], tools=TOOLS))
    assert heard.calls


def test_counters_are_where_vllm_serves_its_metrics(fleet: Fleet) -> None:
    def malformed() -> float:
        text = httpx2.get(f"http://127.0.0.1:{fleet.ports['toolgram Qwen3']}/metrics").text
        return float(text.partition('toolgram_answers_total{outcome="malformed"}')[2].split()[0])

    before = malformed()
    asked(fleet, broken_call().ask)
    assert malformed() == before + 1


def broken_call() -> Trial:
    return next(each for each in MATRIX["Qwen3"] if each.kind == "malformed" and each.ask.pace is None)


@pytest.mark.parametrize("api", [CHAT, RESPONSES])
def test_a_client_may_ask_for_broken_calls(api: str, fleet: Fleet) -> None:
    extra = {"vllm_xargs": {"toolgram_malformed_calls": "call"}}
    ((heard,),) = asked(fleet, replace(broken_call().ask, api=api, extra=extra))
    assert [name for name, _ in heard.calls] == ["get_weather"]
    with pytest.raises(ValueError, match=r".*"):
        json.loads(heard.calls[0][1])


def test_a_client_may_ask_for_text_before_a_required_call(fleet: Fleet) -> None:
    script = SCRIPTS["Qwen3"]["call"]
    extra = {"vllm_xargs": {"toolgram_forced_calls": "after_text"}}
    forced = Ask(script, tools=TOOLS, choice="required")
    (plain,), (allowed,) = asked(fleet, forced, replace(forced, extra=extra))
    assert not plain.calls
    assert allowed.calls
    assert allowed.content == "Let me look."


def test_the_start_is_one_line_for_each_format(fleet: Fleet) -> None:
    deadline = time.monotonic() + 5
    while "reads derived" not in fleet.said() and time.monotonic() < deadline:
        time.sleep(0.1)
    lines = [line for line in fleet.said().splitlines() if "toolgram: reads " in line]
    assert len(lines) == len(NAMES)
    assert all("markers" in line and "ask: toolgram" in line for line in lines)


def test_nothing_failed_in_the_server(fleet: Fleet) -> None:
    """Last: no traceback in the log, whatever was asked above."""
    said = fleet.said()
    assert "Traceback" not in said, said[said.index("Traceback") :][:3000]


# --- servers that are configured wrongly ----------------------------------------------------------------------------

OTHER_FORMAT, OTHER_REASONING, OTHER_TEMPLATE = "another format", "another reasoning parser", "another template"
WARNINGS = {  # of each, once in the log
    OTHER_FORMAT: "toolgram_gemma4 does not fit this model: 0 of ",
    OTHER_REASONING: "do not share a stream",
    OTHER_TEMPLATE: "--chat-template differs from the tokenizer's",
    "an unknown name": "TOOLGRAM_VLLM_OVERRIDE names no_such_parser",
}


@pytest.fixture(scope="module")
def misconfigured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Fleet, dict[Any, Any]]]:
    scratch = tmp_path_factory.mktemp("misconfigured")
    (model,) = make_models(["Qwen3"], scratch)
    turn = Turn("", reasoning="Hm.", content="Look.", calls=(_CALL,))
    ask = Ask(model.number(model.script(model.written(turn, TOOLS, {}) or "")), tools=TOOLS)
    model.write()
    template = scratch / "template.jinja"
    template.write_text(model.shape.template_text() + "{# of the server #}", encoding="utf-8")
    flags = {
        OTHER_FORMAT: flags_of("toolgram_gemma4", "toolgram_gemma4"),
        OTHER_REASONING: flags_of("toolgram", "deepseek_r1"),
        OTHER_TEMPLATE: [*flags_of("toolgram", "toolgram"), "--chat-template", str(template)],
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOOLGRAM_VLLM_OVERRIDE", "no_such_parser")
        with Fleet([model], scratch, (), flags) as running:
            heard = {
                (name, api, pace): asked(running, replace(ask, api=api, pace=pace), name=name)[0][0]
                for name in flags
                for api in APIS
                for pace in (None, 1, 3)
            }
            yield running, heard


@pytest.mark.parametrize("pace", [None, 1, 3])
@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("name", [OTHER_FORMAT, OTHER_REASONING, OTHER_TEMPLATE])
def test_nothing_is_lost_where_a_server_is_configured_wrongly(
    name: str, api: str, pace: int | None, misconfigured: tuple[Fleet, dict[Any, Any]]
) -> None:
    """With a format that does not fit, a call is text."""
    answer = misconfigured[1][name, api, pace]
    assert answer.error == ""
    assert "Look." in (answer.content or "")
    if name == OTHER_FORMAT:
        assert not answer.calls
        assert "get_weather" in (answer.content or "")
    else:
        assert answer.made() == [_CALL]


@pytest.mark.parametrize("name", WARNINGS)
def test_a_wrong_configuration_is_reported_once(name: str, misconfigured: tuple[Fleet, dict[Any, Any]]) -> None:
    """With the first request at the latest, however many there are."""
    assert misconfigured[0].said().count(WARNINGS[name]) == 1


def test_nothing_else_is_reported(misconfigured: tuple[Fleet, dict[Any, Any]]) -> None:
    lines = misconfigured[0].said().splitlines()
    warnings = [line for line in lines if "WARNING" in line and "toolgram: " in line]
    assert [line for line in warnings if not any(each in line for each in WARNINGS.values())] == []
