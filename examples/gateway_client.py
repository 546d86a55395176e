"""`toolgram serve` before a server that gives raw text, asked by OpenAI's own client: no GPU, no model, no download.

    pip install 'toolgram[serve]' openai
    python examples/gateway_client.py

The server is a few lines here that speak the completions protocol and always say the same. With a real one, the
gateway is a command: toolgram serve --upstream http://127.0.0.1:8080
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import openai
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from toolgram.gateway.loading import TemplateFiles
from toolgram.gateway.serving import Settings, application

TEXT = 'Adding. <tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
TEMPLATE = (
    "{% if tools %}Functions: {{ tools | tojson }}\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}\n</tool_call>{% endfor %}'
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
TOOLS: Any = [{"type": "function", "function": {"name": "add", "parameters": PARAMETERS}}]


async def completions(request: Request) -> StreamingResponse:
    """Raw text, in pieces, as vLLM, TGI and others stream it."""
    pieces = [{"choices": [{"text": TEXT[at : at + 7]}]} for at in range(0, len(TEXT), 7)]
    lines = [*pieces, {"choices": [{"text": "", "finish_reason": "stop"}]}]
    return StreamingResponse((f"data: {json.dumps(line)}\n\n" for line in lines), media_type="text/event-stream")


@contextmanager
def running(app: Any) -> Iterator[str]:
    """The address of an application that runs in a thread."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        thread.join(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(10)


def main() -> None:
    with running(Starlette(routes=[Route("/v1/completions", completions, methods=["POST"])])) as upstream:
        app, _ = asyncio.run(application(Settings(upstream, kind="openai", files=TemplateFiles(TEMPLATE))))
        with running(app) as address, openai.OpenAI(base_url=f"{address}/v1", api_key="none") as client:
            messages: Any = [{"role": "user", "content": "1 + 2?"}]
            for chunk in client.chat.completions.create(model="m", messages=messages, tools=TOOLS, stream=True):
                print(chunk.choices[0].delta.model_dump(exclude_none=True), chunk.choices[0].finish_reason or "")


if __name__ == "__main__":
    main()
