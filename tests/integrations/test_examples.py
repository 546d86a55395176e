"""Every example of a plug-in is run where its host is installed: by `make test`, or by the target of that host."""

import os
import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = {  # an example, what it needs, and a line that it prints
    "chat_chunks.py": ((), '"finish_reason":"tool_calls"'),
    "langchain_chain.py": (("langchain_core",), "'type': 'invalid_tool_call'"),
    "gateway_client.py": (("openai", "starlette", "uvicorn", "httpx", "sse_starlette"), "tool_calls"),
    "transformers_streamer.py": (("transformers", "torch"), "ToolCallEnd(index=0, status='complete'"),
    "vllm_offline.py": (("vllm",), "get_weather"),
    "sglang_parsers.py": (("sglang",), "name='get_weather'"),
    "llama_cpp_chat.py": (("llama_cpp", "gguf", "mistral_common"), '"name": "book"'),
}

# The torchvision of SGLang's environment cannot be imported as it is, and transformers imports it.
WITH_OPERATORS = (
    "import runpy, sys; from tests.integrations.sglang_server import declare_operators; declare_operators(); "
    "runpy.run_path(sys.argv[1], run_name='__main__')"
)


def test_every_example_of_a_plug_in_is_here() -> None:
    texts = {place.name: place.read_text() for place in (ROOT / "examples").glob("*.py")}
    assert {name for name, text in texts.items() if "toolgram.integrations" in text} <= NEEDED.keys() <= texts.keys()


@pytest.mark.parametrize("name", NEEDED)
def test_an_example(name: str, tmp_path: Path) -> None:
    needed, shown = NEEDED[name]
    # The example runs in a process of its own: what another test has put into this one is not installed.
    missing = [package for package in needed if PathFinder.find_spec(package) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} is not in this environment; docs/surfaces.md says which target has it")
    arguments = []
    if name == "llama_cpp_chat.py":
        from tests.gateway.tiny_model import write_model

        template = (ROOT / "tests/gateway/chatml.jinja").read_text()
        write_model(tmp_path / "tiny.gguf", ["<|im_start|>", "<|im_end|>"], template=template)
        arguments = [str(tmp_path / "tiny.gguf")]
    path = str(ROOT / "examples" / name)
    command = [sys.executable, path, *arguments]
    if name == "transformers_streamer.py" and PathFinder.find_spec("sglang") is not None:
        command = [sys.executable, "-c", WITH_OPERATORS, path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert shown in done.stdout
