"""The reference of the command line: what each command prints for `--help`, as one page.

`python -m tests.help_page --write docs/reference/cli.md` writes it, and tests/test_reference_pages.py compares.
"""

import argparse
from pathlib import Path

from typer.testing import CliRunner

from toolgram.cli.app import COMMANDS, app

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "cli.md"
INTRODUCTION = """# Command line

`pip install '.[cli]'` gives the command `toolgram`. Standard output has the result, in a pipe as JSON or tab-separated
lines; standard error has everything else. `toolgram --install-completion` completes names in the shell. What follows is
the help of each command.
"""


def help_page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, _fenced(_help())]
    parts += [f"## toolgram {name}\n\n{_fenced(_help(name))}" for name in COMMANDS]
    return "\n".join(parts)


def _help(*command: str) -> str:
    result = CliRunner().invoke(
        app, [*command, "--help"], prog_name="toolgram", env={"COLUMNS": "100", "TERM": "dumb", "LANG": "C.UTF-8"}
    )
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.output.strip().splitlines())


def _fenced(text: str) -> str:
    return f"```text\n{text}\n```\n"


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", type=Path, default=PAGE, metavar="FILE")
    options.parse_args().write.write_text(help_page(), encoding="utf-8", newline="\n")
