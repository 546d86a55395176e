"""Each recipe of `examples/clients` gets a call from a server that returns raw text, whole and in a stream.

LiteLLM and the Vercel AI SDK are heavy: `make test-clients` builds an environment for them.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from tests.adapters.test_wrapping import Raw
from tests.gateway.servers import Script, gateway_to, running

CLIENTS = Path(__file__).parents[2] / "examples" / "clients"
TEXT = 'Adding. <tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
PIECES = [TEXT[at : at + 7] for at in range(0, len(TEXT), 7)]
MODULES = Path(os.environ.get("TOOLGRAM_CLIENTS", CLIENTS)) / "node_modules"


def check(command: list[str], address: str) -> None:
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # it would ask the network for prices
    done = subprocess.run([*command, address], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.split(" ", 2) for line in done.stdout.splitlines()]
    found = [each for each in lines if each[0] in ("whole:", "streamed:")]
    assert [(label, name, json.loads(arguments)) for label, name, arguments in found] == [
        ("whole:", "add", {"a": 1, "b": 2}),
        ("streamed:", "add", {"a": 1, "b": 2}),
    ]


@pytest.fixture(scope="module")
def raw() -> Iterator[str]:
    with running(Raw(text=TEXT).app()) as address:
        yield address


@pytest.mark.parametrize("name", ["openai_sdk.py", "anthropic_sdk.py"])
def test_a_wrapped_client(raw: str, name: str) -> None:
    check([sys.executable, str(CLIENTS / name)], raw)


def test_a_provider_of_litellm() -> None:
    if PathFinder.find_spec("litellm") is None:
        pytest.skip("litellm is not in this environment; make test-clients builds one")
    with running(Script(PIECES, kind="openai").app()) as address:
        check([sys.executable, str(CLIENTS / "litellm_provider.py")], address)


def test_the_vercel_ai_sdk(tmp_path: Path) -> None:
    if not MODULES.is_dir() or shutil.which("node") is None:
        pytest.skip("the packages of npm are not here; make test-clients installs them")
    (tmp_path / "node_modules").symlink_to(MODULES)
    recipe = shutil.copy(CLIENTS / "vercel_ai_sdk.mjs", tmp_path)
    with gateway_to(Script(PIECES)) as (address, _):
        check(["node", str(recipe)], address)


def test_every_recipe_is_run() -> None:
    named = {path.name for path in CLIENTS.iterdir() if path.suffix in (".py", ".mjs")}
    assert named == {"openai_sdk.py", "anthropic_sdk.py", "litellm_provider.py", "vercel_ai_sdk.mjs"}
