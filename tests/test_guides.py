"""Every command and every block of code on the pages written by hand is run, or says `no-run` and why.

A page is one session: its Python blocks share their names, in order, and its commands run in one folder with the files
that the pages speak of. Blocks of Lark and YAML are the files `my.lark` and `my.yaml`, or those that their first lines
name.
"""

import gzip
import json
import re
import shlex
from pathlib import Path

import pyarrow.parquet
import pytest
from typer.testing import CliRunner

import toolgram
from toolgram.cli.app import app
from toolgram.pages.tables import refreshed

ROOT = Path(__file__).parent.parent
GUIDES = [f"docs/guides/{place.name}" for place in sorted((ROOT / "docs/guides").glob("*.md"))]
WRITTEN = sorted(place.name for place in (ROOT / "docs").glob("*.md"))
REFERENCE = sorted(f"docs/reference/{place.name}" for place in (ROOT / "docs/reference").glob("*.md"))
START = sorted(f"docs/start/{place.name}" for place in (ROOT / "docs/start").glob("*.md"))
PAGES = ["README.md", "docs/specs/README.md", *(f"docs/{name}" for name in WRITTEN), *REFERENCE, *GUIDES, *START]
BLOCK = re.compile(r"^```(\w*)(?: [\w.]+)?\n(.*?)^```$", re.M | re.S)
FILE = re.compile(r"^```text ([\w.]+)\n(.*?)^```$", re.M | re.S)  # a text that the reader saves
TEMPLATE = """{% for m in messages %}<|im_start|>{{ m.role }}
{{ m.content or '' }}{% for t in m.tool_calls or [] %}<tool_call>{"name": "{{ t.function.name }}", "arguments": \
{{ t.function.arguments | tojson }}}</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": CITY}}]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the pages speak of."""
    monkeypatch.chdir(tmp_path)
    pages = ("docs/guides/write-a-format.md", "docs/guides/formats-to-begin-with.md")
    guides = "".join((ROOT / page).read_text(encoding="utf-8") for page in pages)
    for language, block in BLOCK.findall(guides):
        if language in ("lark", "yaml"):
            named = re.match(rf"(?://|#) (\w+\.{language})\n", block)
            (tmp_path / (named[1] if named else f"my.{language}")).write_text(block, encoding="utf-8")
    example = toolgram.get_format("mistral_v11").example
    chosen = [{"message": {"content": toolgram.get_format("llama3_json").example}}]
    row = {"id": 7, "choices": chosen, "text": toolgram.get_format("hermes").example}
    (tmp_path / "logs").mkdir()
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "log.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode() + b"\n"))
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "log.parquet")
    texts = {
        "logs/log.jsonl": json.dumps(row) + "\n",
        "output.txt": example,
        "log.jsonl": json.dumps(row) + "\n",
        "tools.json": json.dumps(TOOLS),
        "tokenizer_config.json": json.dumps({"chat_template": TEMPLATE, "eos_token": "<|im_end|>"}),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run_commands(block: str, folder: Path) -> None:
    for line in block.splitlines():
        command, _, comment = line.partition(" #")
        if comment.strip().startswith("no-run:") and len(comment.strip()) > len("no-run: why"):
            continue
        standard_input = (folder / "output.txt").read_bytes() if command.startswith("model | ") else None
        words = shlex.split(command.removeprefix("model | ").partition(" > ")[0])
        words = [each for word in words for each in (sorted(map(str, Path().glob(word))) if "*" in word else [word])]
        assert words[0] == "toolgram", f"neither run nor `no-run: why`: {line}"
        result = CliRunner().invoke(app, words[1:], input=standard_input)
        assert result.exit_code == 0, f"{line}\n{result.output}"


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(page: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    for name, text in FILE.findall((ROOT / page).read_text(encoding="utf-8")):
        (folder / name).write_text(text, encoding="utf-8")
    for language, block in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        match language:
            case "python":
                if not block.startswith("# no-run: "):
                    exec(block, names)
                    shown = capsys.readouterr().out  # a stream of chat completions has an end
                    assert not shown.startswith("data: {") or shown.endswith("data: [DONE]\n\n")
            case "json":
                json.loads(block)
            case "sh":
                run_commands(block, folder)
            case "text" | "lark" | "yaml":
                pass  # shown; the files of a format are used by the commands
            case _:
                pytest.fail(f"{page}: a block of {language or 'no language'}: neither run nor known not to run")


@pytest.mark.parametrize("page", [page for page in GUIDES if not page.endswith("proofs.md")])
def test_a_guide_is_short_and_says_what_to_do_if_it_fails(page: str) -> None:
    """The other page is a table."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert 300 <= len(text.split()) <= 900
    assert re.search(r"^## (?:If it fails|The usual causes)$", text, re.M), page


def test_the_tables_of_the_vocabulary_are_current() -> None:
    page = (ROOT / "docs/reference/format-files.md").read_text(encoding="utf-8")
    assert refreshed(page) == page, "run make docs"
