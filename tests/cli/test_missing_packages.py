"""Without an optional package, every command says in one line how to install it, and no traceback comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from toolgram.late_imports import install_line

MAIN = "import sys\nfor name in {missing!r}: sys.modules[name] = None\nfrom toolgram.cli import main\nmain()"
MISSING = ["jinja2", "automata", "httpx", "uvicorn", "starlette", "pyarrow", "orjson", "graphviz", "mermaid_render"]
ROWS = ["parse", "-f", "hermes", "--jsonl", "x"]
# The package that is missing, or "" for all of them; a command, its exit status, and what the line says.
COMMANDS = [
    ("", ["doctor", "chat.jinja", "--format", "hermes"], 2, "this needs jinja2", "[derive]'"),
    ("", ["check", "hermes"], 2, "this needs automata", "[check]'"),
    ("", ["derive", "chat.jinja"], 2, "this needs jinja2", "[derive]'"),
    ("", ["export", "hermes", "--target", "response_template"], 2, "this needs jinja2", "[derive]'"),
    ("", ["serve", "--upstream", "http://127.0.0.1:9"], 2, "this needs ", "[serve]'"),
    ("typer", [], 2, "", "[cli]'"),
    ("rich", [], 2, "", "[cli]'"),
    ("pyarrow", [*ROWS, "x.jsonl", "-o", "y.parquet"], 1, "needs pyarrow", install_line("pyarrow")),
    ("pyarrow", [*ROWS, "x.parquet"], 1, "needs pyarrow", install_line("pyarrow")),
]


@pytest.mark.parametrize(("missing", "arguments", "status", "needed", "install"), COMMANDS)
def test_one_line_says_how_to_install_it(
    missing: str, arguments: list[str], status: int, needed: str, install: str, tmp_path: Path
) -> None:
    (tmp_path / "chat.jinja").write_text("{{ messages }}")
    (tmp_path / "x.jsonl").write_text("{}")
    command = [sys.executable, "-c", MAIN.format(missing=[missing] if missing else MISSING), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (status, ""), run.stderr
    (line,) = run.stderr.splitlines()
    assert needed in line
    assert install in line
    assert "-m pip install" in line


def test_the_line_names_where_it_was_installed_from(monkeypatch: pytest.MonkeyPatch) -> None:
    class Distribution:
        def __init__(self, text: str | None) -> None:
            self.text = text

        def read_text(self, name: str) -> str | None:
            return self.text

    for text, wanted in (
        (None, "'toolgram[derive]'"),
        ('{"url": "file:///src/toolgram", "dir_info": {"editable": true}}', "'/src/toolgram[derive]'"),
        (
            '{"url": "https://host/toolgram", "vcs_info": {"vcs": "git", "commit_id": "a1b2"}}',
            "'toolgram[derive] @ git+https://host/toolgram@a1b2'",
        ),
        ('{"url": "https://host/toolgram.whl", "archive_info": {}}', "'toolgram[derive] @ https://host/toolgram.whl'"),
    ):
        monkeypatch.setattr("importlib.metadata.distribution", lambda name, text=text: Distribution(text))
        assert install_line("jinja2") == f"{sys.executable} -m pip install {wanted}"
    assert install_line("nobody").endswith("pip install nobody")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # the environments of uv have no pip
    assert install_line("nobody") == f"uv pip install --python {sys.executable} nobody"
