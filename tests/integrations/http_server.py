"""vLLM's HTTP servers in one process, one for each model folder, with scripted engine cores.

    python -m tests.integrations.http_server SERVERS.json
    python -m tests.integrations.http_server run-batch -i IN.jsonl -o OUT.jsonl --model FOLDER

The second one is `vllm run-batch` with such a core.

SERVERS.json is a list of `{"name", "folder", "arguments", "may_fail"}`; the arguments are those of `vllm serve`. All of
it is vLLM's own: argument parser, engine arguments, AsyncLLM, FastAPI application, routes, uvicorn. Only loopback is
bound, to ports that are free and kept from then on. The process writes SERVERS.ready beside it when all of them answer,
and ends on SIGTERM. That file has the `ports`, and `failed`: the servers that may fail and did, each with its error. A
parser of vLLM's may refuse a tokenizer.
"""

import asyncio
import json
import os
import signal
import socket
import sys
from contextlib import AsyncExitStack, nullcontext
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")  # before vLLM looks for a device
os.environ.setdefault("VLLM_USE_V1", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")


async def serve(configurations: list[dict[str, Any]], ready: Path) -> None:
    """Start them all, say so, and wait for the end."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with AsyncExitStack() as stack:
        servers, ports, failed = [], {}, {}
        for each in configurations:
            listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            try:
                servers.append(await _started(each, listening, stack))
            except Exception as error:
                if not each["may_fail"]:
                    raise
                failed[each["name"]] = repr(error)[:300]
            else:
                ports[each["name"]] = listening.getsockname()[1]
        while not all(server.started for server, _ in servers):
            await asyncio.sleep(0.02)
        written = ready.with_suffix(".failed")
        written.write_text(json.dumps({"ports": ports, "failed": failed}), encoding="utf-8")
        written.rename(ready)
        await stopped.wait()
        for server, _ in servers:
            server.should_exit = True
        await asyncio.gather(*(task for _, task in servers))


async def _started(each: dict[str, Any], listening: socket.socket, stack: AsyncExitStack) -> tuple[Any, Any]:
    """One server and its task."""
    import uvicorn
    from vllm.entrypoints.common.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.entrypoints.launchers.api_server.app_state import init_app_state
    from vllm.entrypoints.launchers.api_server.entry import build_async_engine_client
    from vllm.entrypoints.launchers.app import build_app
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    parser = make_arg_parser(FlexibleArgumentParser())
    given = f"--model {each['folder']} --served-model-name model --host 127.0.0.1"
    arguments = parser.parse_args([*given.split(), "--dtype", "float32", "--disable-log-stats", *each["arguments"]])
    validate_parsed_serve_args(arguments)
    client = await stack.enter_async_context(build_async_engine_client(arguments))
    tasks = await client.get_supported_tasks()
    app = build_app(arguments, tasks, client.model_config)
    await init_app_state(client, app.state, arguments, tasks)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_keep_alive=600)
    server = app.state.server = uvicorn.Server(config)
    server.capture_signals = nullcontext  # the process has one handler for all of them
    return server, asyncio.create_task(server.serve(sockets=[listening]))


def main() -> None:
    """Run until told to stop, or until all requests are answered."""
    from tests.integrations.scripted_engine import put_in_place

    put_in_place()
    if sys.argv[1] == "run-batch":
        from vllm.entrypoints.launchers import run_batch

        del sys.argv[1]
        asyncio.run(run_batch.main(run_batch.parse_args()))
        return
    path = Path(sys.argv[1])
    asyncio.run(serve(json.loads(path.read_text(encoding="utf-8")), path.with_suffix(".ready")))


if __name__ == "__main__":
    main()
