"""Commands as their users type them: a row each of `commands.yaml`, and what no row can say of a command."""

import base64
import gzip
import io
import json
import re
import subprocess
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from lark import Lark
from rich.console import Console
from typer.testing import CliRunner

import toolgram
from tests.cli.running import HOSTILE, OUTPUT, Start, check_row, on_terminal, rows_beside, run
from tests.own_format import write_own_format
from tests.properties.selection import every_format, quarter
from tests.tables import table
from toolgram.bulk.json_rows import CONTROLS
from toolgram.cli import terminal
from toolgram.cli.app import app
from toolgram.cli.demo import MOST_LINES, screen
from toolgram.cli.playground_link import ADDRESS, BUILT_HERE, playground_link
from toolgram.cli.source import cut, pieces
from toolgram.diagrams import LEVELS
from toolgram.late_imports import install_line


@pytest.mark.filterwarnings("ignore:Setuptools is replacing distutils")  # of setuptools, when it looks for pip
@pytest.mark.parametrize("row", rows_beside(__file__), ids=lambda row: row["run"])
def test_a_command(row: dict[str, Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_row(row, root, tmp_path, monkeypatch)


def test_the_names_of_formats(start: Start) -> None:
    """Lines for a pipe, JSON, and a table for a terminal."""
    lines = [line.split("\t") for line in run("formats").stdout.splitlines()]
    assert [line[0] for line in lines] == toolgram.format_names()
    assert {len(line) for line in lines} == {4}
    shipped = json.loads(run("formats", "--json").stdout)
    assert [fmt["name"] for fmt in shipped] == toolgram.format_names()
    assert all(fmt["title"] and fmt["models"] and fmt["example"] for fmt in shipped)
    shown = on_terminal(start, "formats", text=b"")
    assert all(name.encode() in shown for name in [*toolgram.format_names(), "[TOOL_CALLS]"])


def test_only_what_runs_is_loaded(environment: dict[str, str]) -> None:
    """A command loads no other, and the library no command line."""
    assert "Did you mean 'parse'?" in run("pars").stderr
    command = "from toolgram.cli.app import app\ntry: app(['parse', '--format', 'hermes'])\nexcept SystemExit: pass"
    library = f"import toolgram, toolgram.cli\ntoolgram.get_format('mistral_v11').parse({OUTPUT!r})"
    for code, others in (
        (command, {"jinja2", "rich.progress", "toolgram.explain", "toolgram.audit"}),
        (library, {"typer", "rich", "toolgram.cli.app"}),
    ):
        code += f"\nimport sys\nprint(sorted({others} & set(sys.modules)))"
        said = subprocess.check_output([sys.executable, "-c", code], env=environment, input="Hi", text=True)
        assert said.splitlines()[-1] == "[]"


def test_pieces_and_cuts(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("aé😀bc", encoding="utf-8")
    assert list(pieces(str(path))) == ["aé😀bc"]
    assert list(pieces(str(path), 2)) == ["aé", "😀b", "c"]
    assert list(cut(["a", "", "bcd", "e"], 2)) == ["ab", "cd", "e"]


def test_a_compressed_file_and_the_mark_of_an_editor(tmp_path: Path) -> None:
    text = "\ufeff" + toolgram.get_format("mistral_v11").example
    (tmp_path / "plain.txt").write_text(text, encoding="utf-8")
    packed = gzip.compress(text.encode())
    (tmp_path / "x.txt.gz").write_bytes(packed)
    (tmp_path / "cut.txt.gz").write_bytes(packed[:-12])
    answers = [run("parse", "-f", "mistral_v11", tmp_path / name) for name in ("plain.txt", "x.txt.gz")]
    messages = [json.loads(answer.stdout) for answer in answers]
    assert [message["content"] for message in messages] == ["Let me add."] * 2
    cut = run("parse", "-f", "mistral_v11", tmp_path / "cut.txt.gz")
    assert cut.exit_code == 1
    assert "damaged or cut off" in cut.stderr
    assert cut.stderr.count("\n") == 1


def test_format_names_are_completed() -> None:
    environment = {"_TOOLGRAM_COMPLETE": "complete_bash", "COMP_WORDS": "toolgram diagram mistral_v", "COMP_CWORD": "2"}
    result = CliRunner().invoke(app, [], prog_name="toolgram", env=environment)
    assert result.stdout.split() == [name for name in toolgram.format_names() if name.startswith("mistral_v")]


def test_vllm_has_a_name_for_every_format() -> None:
    said = run("vllm").stdout
    assert [name for name in toolgram.format_names() if f"toolgram_{name} " not in said] == []


def own(folder: Path) -> tuple[str, str, str, str]:
    grammar, machine = write_own_format(folder)
    return "--grammar", str(grammar), "--machine", str(machine)


@pytest.mark.parametrize(
    ("ending", "start"), [("mmd", "---\n"), ("dot", "digraph"), ("svg", "<svg"), ("DOT", "digraph")]
)
def test_diagram_draws_into_a_file_whose_ending_says_how(tmp_path: Path, ending: str, start: str) -> None:
    place = tmp_path / f"x.{ending}"
    result = run("diagram", *own(tmp_path), "-o", place)
    assert (result.exit_code, result.output) == (0, "")
    assert place.read_text(encoding="utf-8").startswith(start)


def test_docs_writes_the_page_of_an_own_format_with_one_command(tmp_path: Path) -> None:
    result = run("docs", *own(tmp_path), "-o", tmp_path / "pages")
    place = tmp_path / "pages" / "own.md"
    assert (result.exit_code, result.stdout) == (0, f"{place}\n")
    assert "(own.svg)" in place.read_text(encoding="utf-8")
    assert (tmp_path / "pages" / "own.svg").exists()
    assert run("docs", *own(tmp_path), "-o", tmp_path / "pages", "--check").exit_code == 0


def test_docs_check_names_pages_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A changed one and a missing one."""
    monkeypatch.setattr(toolgram, "format_names", lambda: ["mistral_v3", "mistral_v11"])
    assert run("docs", "-o", tmp_path).exit_code == 0
    assert {place.stem for place in tmp_path.iterdir()} == set(toolgram.format_names())
    changed, missing = tmp_path / "mistral_v3.md", tmp_path / "mistral_v11.md"
    changed.write_text("changed", encoding="utf-8")
    missing.unlink()
    result = run("docs", "-o", tmp_path, "--check")
    assert result.exit_code == 1
    assert [line.partition(": ")[2] for line in result.stderr.splitlines()] == [
        f"{place}: out of date; run toolgram docs" for place in (changed, missing)
    ]
    assert changed.read_text(encoding="utf-8") == "changed"
    assert not missing.exists()


def test_docs_keeps_embedded_tables_current(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text("<!-- toolgram formats -->\n<!-- /toolgram formats -->\n", encoding="utf-8")
    command = ("docs", "mistral_v3", "-o", tmp_path, "--embed", readme)
    stale = run(*command, "--check")
    assert stale.exit_code == 1
    assert "README.md: out of date" in stale.stderr
    assert run(*command).exit_code == 0
    assert "(mistral_v3.md)" in readme.read_text(encoding="utf-8")


@every_format
def test_the_composed_machine_loads_again_as_the_same(name: str, tmp_path: Path) -> None:
    fmt = toolgram.get_format(name)
    result = run("machine", name)
    assert (result.exit_code, result.stderr) == (0, "")
    grammar, machine = tmp_path / f"{name}.lark", tmp_path / f"{name}.yaml"
    grammar.write_text(fmt.grammar_text, encoding="utf-8")
    machine.write_text(result.stdout, encoding="utf-8")
    again = toolgram.load_format(grammar, machine)
    assert "import:" not in result.stdout
    assert again.machine_dict == fmt.machine_dict
    rows = [[(t.source, t.trigger, t.dest, t.actions) for t in each.spec.transitions] for each in (fmt, again)]
    assert rows[0] == rows[1]


def test_a_comment_says_which_line_of_which_fragment_an_entry_is(root: Path) -> None:
    fragment = (root / "machines/common/json_call.yaml").read_text(encoding="utf-8").splitlines()
    found = re.findall(
        r"- \{(?:name|trigger): ([^,}]+).*  # common/json_call.yaml:(\d+)", run("machine", "hermes").stdout
    )
    assert len(found) > 20
    for name, line in found:
        # An entry may take several lines, and a fragment that is imported twice has a prefix for its names.
        assert name.removeprefix("BARE_") in " ".join(fragment[int(line) - 1 :][:3])


def test_the_source_is_the_file_as_it_is_and_diagrams_have_both_levels(tmp_path: Path) -> None:
    mine = ("machine", *own(tmp_path))
    assert run(*mine, "--source").stdout == Path(mine[-1]).read_text(encoding="utf-8")
    assert "name: note it" in run(*mine).stdout
    for level, options in zip(LEVELS, ([], ["--whole"]), strict=True):
        assert run("diagram", "hermes", *options).stdout == toolgram.get_format("hermes").diagram(level=level)


def test_the_whole_grammar_is_one_that_lark_parses(root: Path) -> None:
    fmt = toolgram.get_format("hermes")
    result = run("grammar", "hermes", "--whole")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == fmt.whole_grammar_text
    assert "%declare" not in result.stdout
    Lark(result.stdout, parser="lalr", import_paths=[str(root / "grammars")]).parse(fmt.example)


V3_CALL = '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1}}]'
V11_CALL = '[TOOL_CALLS]add[ARGS]{"a": 1}'
HOSTILE_LINE = f"{HOSTILE}\n"


def test_repeated_self_loops_are_one_line_and_what_the_prompt_did_has_no_offset() -> None:
    call = '{"name": "f", "id": "1", "id": "2", "id": "3", "parameters": {}}'
    result = run("explain", "-f", "llama3_json", text=call)
    assert sum("map_key item.id" in line for line in result.output.splitlines()) == 3
    result = run("explain", "-f", "mistral_v3", text=f"[TOOL_CALLS][TOOL_CALLS][TOOL_CALLS]{V3_CALL}")
    assert any(line.split()[1:3] == ["TOOL_CALLS", "x3"] for line in result.output.splitlines())
    result = run("explain", "-f", "mistral_v11", "--prefix", "[THINK]", text=f"Hm.[/THINK]{V11_CALL}")
    assert any(line.split() == ["prompt", "THINK", "REASONING"] for line in result.output.splitlines())


def test_json_is_the_explanation_itself() -> None:
    text = f"Sure. {V11_CALL} and {HOSTILE_LINE}"
    result = run("explain", "-f", "mistral_v11", "--json", text=text)
    document = json.loads(result.output)
    itself = toolgram.get_format("mistral_v11").explain(text).to_dict()
    for one in (document, itself):
        for call in one["message"]["tool_calls"]:
            del call["id"]
    assert document == itself
    assert len(result.output.splitlines()) == 1
    assert not CONTROLS.search(result.output)


@every_format
@pytest.mark.parametrize("tail", ["", V11_CALL, '{"name": "\x1b[2J\\n", "parameters": {"a\x1b": 1}}', "[f(a='\x9b')]"])
def test_the_terminal_is_never_commanded(name: str, tail: str) -> None:
    result = run("explain", "-f", name, text=HOSTILE_LINE + tail + HOSTILE_LINE)
    assert not CONTROLS.search(result.output)


def test_colours_where_there_are_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()

    def console(**options: Any) -> Console:
        return Console(file=screen, force_terminal=True, color_system="truecolor", width=80, **options)

    monkeypatch.setattr(terminal, "Console", console)
    monkeypatch.delenv("NO_COLOR", raising=False)
    run("explain", "-f", "mistral_v11", text=f"{HOSTILE_LINE}[TOOL_CALLS]f! {V11_CALL}")
    shown = screen.getvalue()
    assert '\x1b[33m{"a": 1}' in shown
    assert "\x1b[32mcommitted" in shown
    assert "\x1b[31mrejected" in shown
    assert "\\x1b[31m bell" in shown
    assert "]0;owned\x07" not in shown


SCREEN = 24


@pytest.mark.parametrize("name", quarter(toolgram.format_names(), "test_try_reads_all_of_an_example"))
def test_try_reads_all_of_an_example(name: str) -> None:
    # Several formats may read one example alike; none may be shown that reads less of it than its own does.
    fmt = toolgram.get_format(name)
    result = run("try", text=fmt.example)
    assert result.exit_code == 0
    shown = result.output.split()[1]
    found, ours = (toolgram.get_format(each).parse(fmt.example).tool_calls for each in (shown, name))
    assert [(call.name, call.status) for call in found] == [(call.name, call.status) for call in ours]
    assert f"toolgram explain --format {shown}" in result.output


@pytest.mark.parametrize("name", toolgram.format_names())
def test_a_format_fits_on_a_screen(name: str) -> None:
    lines = list(screen(toolgram.get_format(name)))
    assert MOST_LINES / 2 < len(lines) <= SCREEN - 2
    assert not any("\n" in line.plain for line in lines)
    assert any("complete" in line.plain for line in lines)


def state_of(link: str) -> dict[str, Any]:
    """Return what a link holds, read as `playground/state.mjs` reads it."""
    packed = link.partition("#")[2]
    raw = base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
    state = json.loads(zlib.decompress(raw, -15))
    assert isinstance(state, dict)
    return state


def test_the_link_holds_the_output_the_format_and_the_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ADDRESS, "https://play.example/")
    text = toolgram.get_format("hermes").example + " ␤ é"
    (tmp_path / "output.txt").write_text(text, encoding="utf-8")
    done = run("try", "--link", tmp_path / "output.txt")
    assert done.exit_code == 0
    (link,) = done.stdout.split()
    assert link.startswith("https://play.example/#")
    state = state_of(link)
    assert (state["output"], state["format"]) == (text, "hermes")
    assert json.loads(state["expected"])["tool_calls"][0]["name"] == "get_weather"


def test_the_fields_are_those_of_the_page(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADDRESS, raising=False)
    link = playground_link("x", "hermes", [{"name": "f"}], "", {"content": "x"})
    assert link.startswith(BUILT_HERE)
    page = (root / "playground" / "page.mjs").read_text(encoding="utf-8")
    fields = set(json.loads(page.partition("const FIELDS = ")[2].partition(";")[0]))
    assert set(state_of(link)) - {"view"} <= fields
    assert json.loads(state_of(link)["tools"]) == [{"name": "f"}]


MAIN = "import sys\nfor name in {missing!r}: sys.modules[name] = None\nfrom toolgram.cli import main\nmain()"
MISSING = ["jinja2", "automata", "httpx", "uvicorn", "starlette", "pyarrow", "orjson", "graphviz", "mermaid_render"]
INSTALLED = table(__file__, "one_line_says_how_to_install_it")


@pytest.mark.parametrize(("missing", "command", "status", "needed", "extra"), INSTALLED)
def test_one_line_says_how_to_install_it(
    missing: str, command: str, status: int, needed: str, extra: str, tmp_path: Path
) -> None:
    (tmp_path / "chat.jinja").write_text("{{ messages }}")
    (tmp_path / "x.jsonl").write_text("{}")
    program = [sys.executable, "-c", MAIN.format(missing=[missing] if missing else MISSING)]
    run = subprocess.run([*program, *command.split()], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (run.returncode, run.stdout) == (status, ""), run.stderr
    (line,) = run.stderr.splitlines()
    assert needed in line
    assert extra in line
    assert "-m pip install" in line


def test_the_line_names_where_it_was_installed_from(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, wanted in (
        (None, "'toolgram[derive]'"),
        ('{"url": "file:///src/toolgram", "dir_info": {"editable": true}}', "'/src/toolgram[derive]'"),
        (
            '{"url": "https://host/toolgram", "vcs_info": {"vcs": "git", "commit_id": "a1b2"}}',
            "'toolgram[derive] @ git+https://host/toolgram@a1b2'",
        ),
        ('{"url": "https://host/toolgram.whl", "archive_info": {}}', "'toolgram[derive] @ https://host/toolgram.whl'"),
    ):
        distribution = SimpleNamespace(read_text=Mock(return_value=text))
        monkeypatch.setattr("importlib.metadata.distribution", Mock(return_value=distribution))
        assert install_line("jinja2") == f"{sys.executable} -m pip install {wanted}"
    assert install_line("nobody").endswith("pip install nobody")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # the environments of uv have no pip
    assert install_line("nobody") == f"uv pip install --python {sys.executable} nobody"
