"""Several servers by the names of their models, servers that start later, and what is passed through.

Clients know a model by one name, and its server may know it by another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.gateway.servers import (
    BODIES,
    CHAT,
    HI,
    TEMPLATE,
    Script,
    application_for,
    free_port,
    gateway_to,
    get,
    open_stream,
    post,
    running,
)
from tests.tables import table
from toolgram.cli.serving import Upstream, configured
from toolgram.errors import ToolgramError
from toolgram.gateway.engine import NoServer
from toolgram.gateway.loading import TemplateFiles
from toolgram.gateway.serving import Settings, application

NAMES = ("one", "two")


@pytest.fixture(scope="module")
def both() -> Iterator[str]:
    with ExitStack() as stack:
        scripts = {name: Script([f"I-am-{name}"]) for name in NAMES}
        servers = [Settings(stack.enter_context(running(each.app())), name=name) for name, each in scripts.items()]
        app, _ = asyncio.run(application_for(*servers))
        yield stack.enter_context(running(app))


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


def test_what_cannot_begin() -> None:
    """A server that still loads its model, and two models of one name."""
    with running(Script(loading=True).app()) as upstream, pytest.raises(NoServer, match="loading its model"):
        asyncio.run(application(Settings(upstream, wait=0)))
    with running(Script().app()) as upstream, pytest.raises(ToolgramError, match="two models have one name"):
        asyncio.run(application(Settings(upstream, name="a"), Settings(upstream, name="a")))


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
