"""Answers and their stop strings through the clients of OpenAI and Anthropic, before every kind of server.

And several servers by the names of their models, servers that start later, and what is passed through. Clients know a
model by one name, and its server may know it by another.
"""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.servers import (
    BODIES,
    CHAT,
    HI,
    MESSAGES,
    TEMPLATE,
    Script,
    free_port,
    gateway_to,
    gateways_before,
    get,
    open_stream,
    post,
    running,
)
from tests.integrations.http_clients import heard_from, in_every_way
from tests.tables import table
from toolgram.cli.serving import Upstream, configured
from toolgram.gateway.endings import StopTexts
from toolgram.gateway.loading import TemplateFiles
from toolgram.gateway.serving import Settings, application
from toolgram.gateway.upstreams import UPSTREAMS

OUTPUT = (
    '<think>\nHm.\n</think>\n\nAdding. <tool_call>\n{"name": "add", "arguments": {"a": 1, "b": "ü\u2028"}}\n'
    "</tool_call>\n"
    '<tool_call>\n{"name": "add", "arguments": {"a": 2}}\n</tool_call>'
)
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}}
TOOL: Any = {"type": "function", "function": {"name": "add", "description": "d", "parameters": PARAMETERS}}
USER: Any = [{"role": "user", "content": "Add."}]
ARGUMENTS = ['{"a": 1, "b": "ü\u2028"}', '{"a": 2}']


def cut(text: str, size: int = 3) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.fixture(scope="module", params=UPSTREAMS)
def served(request: pytest.FixtureRequest) -> Iterator[tuple[str, Script]]:
    script = Script(kind=request.param)
    files = None if request.param == "llama.cpp" else TemplateFiles(TEMPLATE, "<s>", "<|im_end|>")
    with gateway_to(script, files=files, reasoning="reasoning") as (address, gateway):
        assert gateway.kind == request.param
        yield address, script


CLIENTS = ExitStack()


@pytest.fixture(autouse=True)
def closed_clients() -> Iterator[None]:
    with CLIENTS:
        yield


def openai_at(address: str) -> openai.OpenAI:
    http = httpx.Client(verify=False)
    client = openai.OpenAI(base_url=f"{address}/v1", api_key="none", max_retries=0, timeout=20, http_client=http)
    return CLIENTS.enter_context(client)


def anthropic_at(address: str) -> anthropic.Anthropic:
    return CLIENTS.enter_context(anthropic.Anthropic(base_url=address, api_key="none", max_retries=0, timeout=20))


def test_whole_and_streamed_through_each_api(served: tuple[str, Script]) -> None:
    address, script = served
    script.texts, script.reason = cut(OUTPUT), "stop"
    for heard in heard_from(address, *in_every_way(tools=[TOOL], usage=True)):
        assert heard.error == "", heard.detail
        assert heard.told() == ("Adding.", "Hm.", [("add", each) for each in ARGUMENTS])
        assert heard.finish_reason == "tool_calls"
        assert heard.usage.get("prompt_tokens", heard.usage.get("input_tokens")) in (11, None)
        assert heard.usage.get("completion_tokens", heard.usage.get("output_tokens", 0)) > 10


def test_the_server_gets_prompt_stops_and_numbers(served: tuple[str, Script]) -> None:
    address, script = served
    script.texts = ["fine"]
    openai_at(address).chat.completions.create(
        model="m", messages=USER, temperature=0.5, top_p=0.9, seed=7, stop=["END", *"vwxyz"], max_tokens=50
    )
    body = script.bodies[-1]
    prompt = body.get("prompt", body.get("text"))
    assert prompt == "<|im_start|>user\nAdd.<|im_end|>\n<|im_start|>assistant\n"
    assert ("END" in json.dumps(body)) == (script.kind != "mlx")
    assert "50" in json.dumps(body)
    parameters = body.get("options", body.get("sampling_params", body))
    assert (parameters["temperature"], parameters["top_p"]) == (0.5, 0.9)
    assert "stream_options" not in body or len(body["stop"]) <= 4  # servers of this API take no more
    openai_at(address).responses.create(model="m", input="Add.", extra_body={"stop": ["THERE"]})
    assert ("THERE" in json.dumps(script.bodies[-1])) == (script.kind != "mlx")


def test_a_cut_off_answer_says_so(served: tuple[str, Script]) -> None:
    address, script = served
    script.texts, script.reason = cut(OUTPUT[:80]), "length"
    heard = heard_from(address, *in_every_way(tools=[TOOL]))
    assert [(each.error, each.finish_reason) for each in heard] == [("", "length")] * 6
    script.reason = "stop"


LLAMA = Script()


@pytest.fixture(scope="module")
def llama() -> Iterator[str]:
    with gateway_to(LLAMA) as (address, _):
        yield address


@pytest.fixture(autouse=True)
def fresh() -> None:
    vars(LLAMA).update(vars(Script()))


def test_a_conversation_with_calls_and_results_comes_back_as_the_template_writes_it(llama: str) -> None:
    said = yaml.safe_load(Path(__file__).with_name("conversation.yaml").read_text(encoding="utf-8"))
    openai_at(llama).chat.completions.create(model="m", tools=[TOOL], **said["chat"])
    chat = LLAMA.bodies[-1]["prompt"]
    assert '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call><|im_end|>' in chat
    assert "one\ntwo<|im_end|>" in chat
    assert chat.startswith("<|im_start|>system\nBe brief.\n\nFunctions:\n")
    flat: Any = {"type": "function", **TOOL["function"]}
    openai_at(llama).responses.create(model="m", tools=[flat], **said["responses"])
    tool: Any = {"name": "add", "description": "d", "input_schema": PARAMETERS}
    anthropic_at(llama).messages.create(model="m", tools=[tool], **said["messages"])
    assert [body["prompt"] for body in LLAMA.bodies] == [chat] * 3


def test_reasoning_can_be_turned_off(llama: str) -> None:
    openai_at(llama).chat.completions.create(model="m", messages=USER, reasoning_effort="none")
    anthropic_at(llama).messages.create(model="m", max_tokens=9, messages=USER, thinking={"type": "disabled"})
    ends = [body["prompt"].rpartition("assistant\n")[2] for body in LLAMA.bodies]
    assert ends == ["<think>\n\n</think>\n\n"] * 2


def test_an_answer_that_goes_on(llama: str) -> None:
    LLAMA.texts = [" and more"]
    said: Any = [*USER, {"role": "assistant", "content": "So"}]
    message: Any = anthropic_at(llama).messages.create(model="m", max_tokens=9, messages=said)
    assert LLAMA.bodies[-1]["prompt"].endswith("<|im_start|>assistant\nSo")
    assert message.content[0].text.strip() == "and more"


def test_a_stop_sequence_is_named(llama: str) -> None:
    LLAMA.texts, LLAMA.stopped_by = ["one "], "END"
    client = anthropic_at(llama)
    message = client.messages.create(model="m", max_tokens=9, messages=USER, stop_sequences=["END"])
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "END")
    with client.messages.stream(model="m", max_tokens=9, messages=USER, stop_sequences=["END"]) as stream:
        assert stream.get_final_message().stop_sequence == "END"


def test_a_grammar_is_sent_where_a_call_is_required(llama: str) -> None:
    client = openai_at(llama)
    client.chat.completions.create(model="m", messages=USER, tools=[TOOL])
    assert "grammar" not in LLAMA.bodies[-1]
    named: Any = {"type": "function", "function": {"name": "add"}}
    allowed: Any = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [named]}}
    for choice in ("required", named, allowed):
        client.chat.completions.create(model="m", messages=USER, tools=[TOOL], tool_choice=choice)
        assert "root ::=" in LLAMA.bodies[-1]["grammar"]
    form: Any = {"type": "json_schema", "json_schema": {"name": "n", "schema": PARAMETERS}}
    client.chat.completions.create(model="m", messages=USER, response_format=form)
    assert "root ::=" in LLAMA.bodies[-1]["grammar"]


@pytest.mark.parametrize("size", [3, 999])
def test_one_call_where_one_was_asked_for(size: int) -> None:
    """The answer ends before the second one, whatever ended that of the server. Only whole calls are sent here."""
    script = Script()
    with gateway_to(script, calls="whole") as (address, _):
        for text, script.reason, content, arguments, reason in table(__file__, "one_call_where_one_was_asked_for"):
            script.texts = cut(text, size)
            for heard in heard_from(address, *in_every_way(tools=[TOOL], choice="auto", parallel=False)):
                calls = [("add", each) for each in arguments]
                assert (heard.told(), heard.finish_reason) == ((content, None, calls), reason), heard.detail


def test_several_answers_have_seeds_of_their_own(llama: str) -> None:
    completion = openai_at(llama).chat.completions.create(model="m", messages=USER, n=3, seed=5)
    assert len(completion.choices) == 3
    assert sorted(body["seed"] for body in LLAMA.bodies) == [5, 6, 7]


def test_without_tools_a_call_is_text(llama: str) -> None:
    LLAMA.texts = ["I would write <tool_call>\n{}\n</tool_call>"]
    completion = openai_at(llama).chat.completions.create(model="m", messages=USER)
    assert "<tool_call>" in (completion.choices[0].message.content or "")


def test_the_small_endpoints(llama: str) -> None:
    assert [model.id for model in openai_at(llama).models.list()] == ["tiny.gguf"]
    assert [model.id for model in anthropic_at(llama).models.list()] == ["tiny.gguf"]
    assert openai_at(llama).models.retrieve("tiny.gguf").id == "tiny.gguf"
    count = anthropic_at(llama).messages.count_tokens(model="m", messages=[{"role": "user", "content": "one two"}])
    assert count.input_tokens == len(["<|im_start|>user", "one", "two<|im_end|>", "<|im_start|>assistant"])
    openai_at(llama).chat.completions.create(model="m", messages=USER)
    health = get(f"{llama}/health").json()
    about = {"model": "tiny.gguf", "upstream": "llama.cpp", "answers": True}
    assert health == {"status": "ok", "models": [{**about, "format": health["models"][0]["format"]}]}
    metrics = get(f"{llama}/metrics").text
    assert 'toolgram_requests_total{api="chat",status="200"}' in metrics
    assert "toolgram_answers_in_flight 0.0" in metrics
    assert 'toolgram_answer_seconds_count{api="chat"}' in metrics
    assert float(metrics.partition('toolgram_tokens_total{kind="prompt"}')[2].split()[0]) > 0


@pytest.mark.parametrize("answers", [1, 3])
def test_several_choices_are_streamed_at_the_same_time(answers: int) -> None:
    """No answer goes on before all of them are open, so choices one after the other would never end."""
    script = Script(cut(OUTPUT), together=answers)
    with gateway_to(script) as (address, _):
        client = openai_at(address)
        asked: Any = {"model": "m", "messages": USER, "tools": [TOOL], "n": answers, "stream": True}
        chunks = list(client.chat.completions.create(**asked, stream_options={"include_usage": True}))
    assert len(script.bodies) == answers
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == answers * len(cut(OUTPUT))
    for index in range(answers):
        mine = [choice for chunk in chunks for choice in chunk.choices if choice.index == index]
        calls = [call for choice in mine for call in choice.delta.tool_calls or ()]
        heard = ["".join(call.function.arguments or "" for call in calls if call.index == at) for at in (0, 1)]
        assert heard == ARGUMENTS
        assert [choice.finish_reason for choice in mine if choice.finish_reason] == ["tool_calls"]


def test_one_of_several_choices_that_fails_ends_the_stream() -> None:
    script = Script(cut(OUTPUT), error={"message": "out of memory"})
    with gateway_to(script) as (address, _):
        body = {"model": "m", "messages": USER, "n": 3, "stream": True}
        with open_stream("POST", address + CHAT, json=body) as response:
            lines = [line for line in response.iter_lines() if line.startswith("data: {")]
    assert "out of memory" in json.loads(lines[-1][6:])["error"]["message"]
    assert script.open == 0


@given(st.lists(st.text("ab", max_size=4), max_size=12), st.lists(st.text("ab", min_size=1, max_size=4), max_size=3))
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


@pytest.mark.parametrize("kind", UPSTREAMS)
@pytest.mark.parametrize("more", [0, 1, 50])
def test_an_answer_is_cut_here(kind: str, more: int) -> None:
    """The server ends with the stop string in its text, soon after it, or much later."""
    script = Script(kind=kind, texts=["It is su", "nny in Zü", "rich", *["again "] * more], ends=more < 50)
    with gateway_to(script, files=TemplateFiles(TEMPLATE, eos_token="<|im_end|>"), name="mine") as (address, _):
        said = post(address + CHAT, json={"messages": USER, "stop": ["Zürich"]}).json()
        messages = {"model": "m", "max_tokens": 99, "messages": USER, "stop_sequences": ["Zürich"]}
        other = post(address + MESSAGES, json=messages).json()
    assert said["choices"][0]["message"]["content"] == "It is sunny in "
    assert said["choices"][0]["finish_reason"] == "stop"
    assert (other["stop_reason"], other["stop_sequence"]) == ("stop_sequence", "Zürich")
    assert said["usage"]["prompt_tokens"] == (11 if more < 50 else 0)
    if kind == "mlx":
        assert script.bodies[0]["model"] == "default_model"
        assert script.bodies[0]["stop"] == ["<|endoftext|>", "<|im_end|>"]  # those of the family


NAMES = ("one", "two")


@pytest.fixture(scope="module")
def both() -> Iterator[str]:
    with ExitStack() as stack:
        scripts = {name: Script([f"I-am-{name}"]) for name in NAMES}
        servers = [Settings(stack.enter_context(running(each.app())), name=name) for name, each in scripts.items()]
        yield stack.enter_context(gateways_before(*servers))[0]


@pytest.mark.parametrize("path", BODIES)
def test_a_request_names_its_model(both: str, path: str) -> None:
    for name in NAMES:
        assert f"I-am-{name}" in post(both + path, json={**BODIES[path], "model": name}).text
        with open_stream("POST", both + path, json={**BODIES[path], "model": name, "stream": True}) as response:
            said = response.read().decode()
        assert f"I-am-{name}" in said
        assert f'"model":"{name}"' in said.replace(": ", ":")
    for unknown in ("three", 3):
        assert post(both + path, json={**BODIES[path], "model": unknown}).status_code == 404


def test_the_small_endpoints_of_several(both: str) -> None:
    assert [each["id"] for each in get(f"{both}/v1/models").json()["data"]] == [*NAMES]
    assert get(f"{both}/v1/models/two").json()["id"] == "two"
    assert get(f"{both}/v1/models/three").status_code == 404
    health = get(f"{both}/health").json()["models"]
    assert [(each["model"], each["answers"]) for each in health] == [("one", True), ("two", True)]
    counted = post(f"{both}/v1/messages/count_tokens", json={"model": "two", "messages": HI})
    assert counted.json()["input_tokens"] > 0


def test_a_file_of_servers_is_read(tmp_path: Path) -> None:
    path = tmp_path / "models.yaml"
    given = {"one": {"upstream": "http://127.0.0.1:1", "format": "hermes"}, "two": {"upstream": "http://127.0.0.1:2"}}
    path.write_text(yaml.safe_dump({"models": given}))
    assert configured(str(path)) == [
        Upstream("http://127.0.0.1:1", format="hermes", name="one"),
        Upstream("http://127.0.0.1:2", name="two"),
    ]


def test_a_server_may_start_later() -> None:
    port = free_port()
    said: list[str] = []

    async def start() -> Any:
        waiting = asyncio.create_task(application(Settings(f"http://127.0.0.1:{port}"), say=said.append))
        while not said:
            await asyncio.sleep(0.01)
        assert not waiting.done()
        with running(Script().app(), port):
            _, (gateway,) = await waiting
            await gateway.client.aclose()
            return gateway.model.name

    assert asyncio.run(start()) == "tiny.gguf"
    assert [each.endswith("waiting for it") for each in said] == [True]


def test_completions_are_passed_through() -> None:
    script = Script(["raw ", "<tool_call>"], kind="vllm", listed=["served"])
    files = TemplateFiles("{% for m in messages %}{{ m.content }}{% endfor %}")
    with gateway_to(script, files=files, name="mine") as (address, gateway):
        body = {"model": "mine", "prompt": "hi", "stream": True, "echo": True}
        with open_stream("POST", f"{address}/v1/completions", json=body) as response:
            said = response.read().decode()
        assert script.bodies == [{**body, "model": "served"}]
        assert "raw " in said
        assert said.endswith("data: [DONE]\n\n")
        script.status, script.error = 400, {"error": {"message": "no"}}
        refused = post(f"{address}/v1/completions", json=body)
        assert (refused.status_code, refused.json()) == (400, script.error)
        gateway.client.base_url = httpx.URL("http://127.0.0.1:9")
        assert post(f"{address}/v1/completions", json=body).status_code == 502
        assert "toolgram_answers_in_flight 0.0" in get(f"{address}/metrics").text


@pytest.mark.parametrize(
    ("kind", "listed", "given", "asked", "heard"), table(__file__, "clients_and_the_server_have_their_own_name")
)
def test_clients_and_the_server_have_their_own_name(
    kind: str, listed: list[str], given: dict[str, str], asked: str | None, heard: str
) -> None:
    script = Script(kind=kind, listed=listed)
    with gateway_to(script, files=TemplateFiles(TEMPLATE, eos_token="<|im_end|>"), **given) as (address, _):
        said = post(address + CHAT, json=BODIES[CHAT]).json()
    assert script.bodies[0].get("model") == asked
    assert said["model"] == heard
