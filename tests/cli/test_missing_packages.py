"""Without an optional package, every command says in one line how to install it, and no traceback comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import toolgram
from toolgram.late_imports import install_line

MAIN = "import sys\nfor name in {missing!r}: sys.modules[name] = None\nfrom toolgram.cli import main\nmain()"
MISSING = ["jinja2", "automata", "httpx", "uvicorn", "starlette", "pyarrow", "orjson", "graphviz", "mermaid_render"]
COMMANDS = [
    (["doctor", "chat.jinja", "--format", "hermes"], "jinja2", "derive"),
    (["check", "hermes"], "automata", "check"),
    (["derive", "chat.jinja"], "jinja2", "derive"),
    (["export", "hermes", "--target", "response_template"], "jinja2", "derive"),
    (["serve", "--upstream", "http://127.0.0.1:9"], "", "serve"),
]


@pytest.mark.parametrize(("arguments", "package", "extra"), COMMANDS)
def test_one_line_says_how_to_install_it(arguments: list[str], package: str, extra: str, tmp_path: Path) -> None:
    (tmp_path / "chat.jinja").write_text("{{ messages }}")
    command = [sys.executable, "-c", MAIN.format(missing=MISSING), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 2, run.stderr
    assert "Traceback" not in run.stderr
    (line,) = [line for line in run.stderr.splitlines() if "is not installed" in line]
    assert f"this needs {package}" in line
    assert line.endswith(f"[{extra}]' (see reference/errors/MissingPackage/)")
    assert f"{sys.executable} -m pip install" in line


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


def test_an_unknown_name_says_what_to_do() -> None:
    with pytest.raises(toolgram.UnknownFormat) as caught:
        toolgram.get_format("qwen3_code")
    assert "did you mean qwen3_coder or " in str(caught.value)
    assert str(caught.value).partition("?")[0].count(" or ") == 2, "three names"
    assert "id of a model" in str(caught.value)
    assert "toolgram derive" in str(caught.value)
