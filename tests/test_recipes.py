"""The recipes of CONTRIBUTING, section "What to touch": each is followed in a copy of the package, file by file.

Strategy: a copy gets what the recipe says and nothing else, at most four files.  Text goes after a line that is there,
as somebody who follows the recipe would put it.  Then a process of its own uses what was added.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

MOST = 4  # files that a recipe may touch

# --- an island: a value in single quotes, in which a quote is written twice -------------------------------------------

ISLAND = '''"""A text in single quotes, as SQL writes it: a quote inside it is written twice."""

from __future__ import annotations

from json.encoder import encode_basestring
from typing import Any

from toolgram.islands import OpenBrackets, checked

STATES = BEFORE, INSIDE, QUOTE = ("before", "inside", "quote")


class SqlText:
    """One text, being read."""

    def __init__(self) -> None:
        self._state = BEFORE
        self.out = ""
        self.done = self.broken = False

    def read(self, text: str, pos: int, final: bool) -> int:
        """Read on to the end of the text, which the character after its last quote shows."""
        self.out = ""
        while pos < len(text) and not (self.done or self.broken):
            quote = text[pos] == "'"
            if self._state == QUOTE and not quote:
                self._end()
                return pos
            if self._state == BEFORE:
                self.broken, self.out, self._state = not quote, '"' if quote else "", INSIDE
            elif self._state == QUOTE or not quote:
                self.out, self._state = self.out + encode_basestring(text[pos])[1:-1], INSIDE
            else:
                self._state = QUOTE
            pos += not self.broken
        if final and self._state == QUOTE:
            self._end()
        return pos

    def _end(self) -> None:
        self.out, self.done = self.out + '"', True

    def open_brackets(self) -> OpenBrackets | None:
        """Brackets say nothing."""
        return None

    def dump(self) -> list[Any]:
        """The state as JSON-able data."""
        return [self._state]

    @classmethod
    def load(cls, data: Any) -> SqlText:
        """The inverse of `dump`. Raises ValueError for what is none."""
        value = cls()
        (value._state,) = checked(data, STATES)
        return value
'''
OWN = Path(__file__).parent / "own"
ISLAND_GRAMMAR = (OWN / "sql.lark").read_text("utf-8")
ISLAND_MACHINE = (OWN / "sql.yaml").read_text("utf-8")
USE_ISLAND = """
import toolgram
from toolgram.check import check_format

fmt = toolgram.load_format("sql.lark", "sql.yaml")
text = "Hm.<<call add a='it''s \\"so\\"' b=''>> Yes."
whole = fmt.parse(text)
assert [(call.name, call.arguments, call.status) for call in whole.tool_calls] == [
    ("add", '{"a": "it\\'s \\\\"so\\\\"", "b": ""}', "complete")
], whole
reference = fmt.reference_parse(text)
assert [(call.name, call.arguments) for call in reference.tool_calls] == [("add", whole.tool_calls[0].arguments)]
for at in range(len(text)):
    parser = fmt.parser()
    events = parser.feed(text[:at])
    parser = fmt.restore(parser.snapshot())
    events += [*parser.feed(text[at:]), *parser.close()]
    assert "".join(event.source for event in events) == text
    assert "".join(getattr(event, "arguments", "") for event in events) == whole.tool_calls[0].arguments, at
report = check_format(fmt)
assert report.ok, report
tools = [{"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}]
grammar = fmt.export("ebnf", tools, tool_choice="required").text
assert "'" in grammar, grammar
"""
ISLAND_WRITER = """
def _sql(arguments: TaggedArguments, tool: Tool, key: str | tuple[str, ...], declared: Any) -> ex.Expr:
    return ex.seq(ex.Lit("'"), ex.Text(ex.Forbidden(("'",)), "'", None))


"""

# --- an export target -------------------------------------------------------------------------------------------------

TARGET = '''"""How long a grammar is: a target for whoever only wants to know that."""

from __future__ import annotations

from collections.abc import Callable

from toolgram.export.ebnf import EbnfWriter
from toolgram.export.expressions import Expr


def length_of(root: Expr, note: Callable[[str], object], lengths: bool) -> str:
    """The number of lines."""
    return str(len(EbnfWriter(note, lengths).write(root).splitlines()))
'''
USE_TARGET = """
import toolgram

fmt = toolgram.get_format("hermes")
grammar = fmt.export("length", [{"name": "add", "parameters": {"type": "object", "properties": {}}}])
assert int(grammar.text) > 1 and grammar.target == "length", grammar
from typer.testing import CliRunner
from toolgram.cli.app import app
result = CliRunner().invoke(app, ["export", "hermes", "--target", "length"])
assert int(result.stdout) > 1, result.output
"""

# --- a skeleton -------------------------------------------------------------------------------------------------------

SKELETON = '''"""Calls with an arrow between name and arguments: read as calls in tags, under a title that says so."""

from __future__ import annotations

from toolgram.derive.format_builder import FormatBuilder
from toolgram.derive.result import CallsFormat, DiffAnalysisResult, Slot
from toolgram.derive.tag_skeleton import add_tag_calls


def is_arrows(result: DiffAnalysisResult, calls: CallsFormat) -> bool:
    """Whether an arrow is between name and arguments."""
    at = calls.pattern.index(Slot.NAME) + 1
    between = calls.pattern[at] if at < len(calls.pattern) else ""
    return isinstance(between, str) and "=>" in between


def add_arrow_calls(builder: FormatBuilder, result: DiffAnalysisResult, calls: CallsFormat) -> list[str]:
    """Add the calls. Returns the states after a call."""
    builder.about["title"] = "Arrows"
    return add_tag_calls(builder, calls)
'''
USE_SKELETON = """
import toolgram

template = '''{%- for message in messages -%}
<|{{ message.role }}|>
{%- if message.content %}{{ message.content }}{% endif -%}
{%- for call in message.tool_calls or [] -%}
<<{{ call.function.name }}=>{{ call.function.arguments | tojson }}>>
{%- endfor -%}<|end|>
{%- endfor -%}{%- if add_generation_prompt -%}<|assistant|>{%- endif -%}'''
fmt = toolgram.derive_format(template, eos_token="<|end|>")
assert fmt.title == "Arrows", fmt.title
call = fmt.parse('<<add=>{"a": 1}>>').tool_calls[0]
assert (call.name, call.arguments, call.status) == ("add", '{"a": 1}', "complete"), call
"""

# --- an integration ---------------------------------------------------------------------------------------------------

INTEGRATION = '''"""A server that has plug-ins: they are functions from the text of an answer to what was called."""

from __future__ import annotations

import toolgram


def called(format_name: str, text: str) -> list[str]:
    """The names of the functions that were called."""
    return [call.name for call in toolgram.get_format(format_name).parse(text).tool_calls]
'''
USE_INTEGRATION = """
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

points = tomllib.loads(Path("pyproject.toml").read_text())["project"]["entry-points"]["server.plugins"]
called = EntryPoint("toolgram", points["toolgram"], "server.plugins").load()
assert called("mistral_v11", '[TOOL_CALLS]add[ARGS]{"a": 1}') == ["add"]
"""


@pytest.fixture
def house(root: Path, tmp_path: Path) -> Path:
    """The package, its two folders and its project file, to change at will."""
    ignored = shutil.ignore_patterns("__pycache__", "specs")
    for folder in ("src", "grammars", "machines"):
        shutil.copytree(root / folder, tmp_path / folder, ignore=ignored)
    shutil.copy(root / "pyproject.toml", tmp_path)
    return tmp_path


def follow(house: Path, new: dict[str, str], after: dict[str, list[tuple[str, str]]]) -> None:
    """Write the new files, and put text after lines of others: a line, and what follows it."""
    assert len(new) + len(after) <= MOST
    for name, content in new.items():
        path = house / name
        assert not path.exists()
        path.write_text(content, encoding="utf-8")
    for name, changes in after.items():
        path = house / name
        text = path.read_text(encoding="utf-8")
        for line, added in changes:
            assert text.count(f"{line}\n") == 1, (name, line)
            text = text.replace(f"{line}\n", f"{line}\n{added}")
        path.write_text(text, encoding="utf-8")


def use(house: Path, program: str) -> None:
    """Run a program with the changed package, and hold the change to the layers."""
    environment = os.environ | {"PYTHONPATH": str(house / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", program], cwd=house, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lint = [sys.executable, "-c", "import sys; from importlinter.cli import lint_imports_command as main; main()"]
    layers = subprocess.run(
        [*lint, "--no-cache", "--no-logo"], cwd=house, env=environment, capture_output=True, text=True
    )
    assert layers.returncode == 0, layers.stdout + layers.stderr


def test_an_island(house: Path) -> None:
    follow(
        house,
        {"src/toolgram/islands/sql_values.py": ISLAND},
        {
            "src/toolgram/islands/__init__.py": [
                ('    "recovery": "error_recovery.ErrorRecovery",', '    "sql": "sql_values.SqlText",\n')
            ],
            "src/toolgram/spec/vocabulary.py": [
                (
                    "VALUE_TYPES: Mapping[str, ValueType] = {",
                    '    "sql": ValueType("The value is a text of SQL.", alone="sql", samples=("\'v\'", "\'\'")),\n',
                )
            ],
            "src/toolgram/export/tagged_arguments.py": [
                ('READ_AS_TEXT_OR_JSON = ("", "text", "trimmed", "xml", "html", "json")', ISLAND_WRITER),
                ('    "elements": TaggedArguments.elements,', '    "sql": _sql,\n'),
            ],
        },
    )
    (house / "sql.lark").write_text(ISLAND_GRAMMAR, encoding="utf-8")
    (house / "sql.yaml").write_text(ISLAND_MACHINE, encoding="utf-8")
    use(house, USE_ISLAND)


def test_an_export_target(house: Path) -> None:
    follow(
        house,
        {"src/toolgram/export/length.py": TARGET},
        {
            "src/toolgram/export/targets.py": [
                ("from toolgram.export.lark import LlguidanceWriter",
                 "from toolgram.export.length import length_of\n"),
                ("TARGETS: dict[str, ExportTarget] = {", '    "length": ExportTarget(length_of, bool),\n'),
            ],
        },
    )  # fmt: skip
    use(house, USE_TARGET)


def test_a_skeleton(house: Path) -> None:
    follow(
        house,
        {"src/toolgram/derive/arrow_skeleton.py": SKELETON},
        {
            "src/toolgram/derive/synthesis.py": [
                ("from typing import Any", "from toolgram.derive.arrow_skeleton import add_arrow_calls, is_arrows\n"),
                ("] = (", "    (is_arrows, add_arrow_calls),\n"),
            ]
        },
    )
    use(house, USE_SKELETON)


def test_an_integration(house: Path) -> None:
    follow(
        house,
        {"src/toolgram/integrations/server.py": INTEGRATION},
        {
            "pyproject.toml": [
                ("[project.optional-dependencies]", 'server = ["server"]\n'),
                ("[project.scripts]", ""),
                ('toolgram = "toolgram.cli:main"',
                 '\n[project.entry-points."server.plugins"]\n'
                 'toolgram = "toolgram.integrations.server:called"\n'),
            ]
        },
    )  # fmt: skip
    use(house, USE_INTEGRATION)
