"""The recording of `toolgram try` at the top of the README: `make recording` writes docs/recording.svg.

Strategy: the real command runs on an output, and its coloured lines become an SVG by rich.  A line is shown when its
time comes, by an animation in CSS, so that the picture needs no script and no font from elsewhere.  A viewer without
animations, or who asked for none, sees all lines.
"""

import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "recording.svg"
OUTPUT = """Let me look.
<tool_call>
{"name": "get_weather", "arguments": {"city": "Paris",}}
</tool_call>"""  # Qwen 3, with a comma too many
WIDTH = 88  # characters
WIDELY_KNOWN = str.maketrans("␤␠", "↵·")  # symbols that most fonts of terminals lack
CALL_ID = re.compile(r"call_\w{24}")
TYPED, READ = 0.8, 0.12  # seconds for a command, and between the lines of its output
STILL = "@media (prefers-reduced-motion: reduce) { .line { animation: none; opacity: 1 } }"
FONT = re.compile(r"@font-face \{.*?\}\s*", re.S)
BACKGROUND = re.compile(r'(<rect )(fill="#\w+" x="[\d.]+" y="([\d.]+)")')
FIRST_ROW, ROW = 1.5, 24.4  # pixels: where rich draws the backgrounds of rows
LINE = re.compile(r'(<text class="[\w-]+")( [^>]*clip-path="url\(#[\w-]+-line-(\d+)\)")')


def lines() -> list[str]:
    """Return the session: the two commands and what they print, with escape sequences for the colours."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "output.txt").write_text(OUTPUT, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "toolgram", "try", "output.txt"],
            cwd=folder, capture_output=True, text=True, check=True,
            env=os.environ | {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm", "COLUMNS": str(WIDTH)},
        )  # fmt: skip
    read = CALL_ID.sub("call_" + "0" * 24, done.stdout).translate(WIDELY_KNOWN)
    return ["$ cat output.txt", *OUTPUT.splitlines(), "$ toolgram try output.txt", *read.rstrip().splitlines()]


def starts(session: list[str]) -> list[float]:
    """Return the second at which each line is shown."""
    now, times = -TYPED, []
    for line in session:
        now += TYPED if line.startswith("$ ") else READ
        times.append(now)
    return times


def picture(session: list[str]) -> str:
    """Return the SVG."""
    console = Console(record=True, file=io.StringIO(), width=WIDTH, force_terminal=True, color_system="truecolor")
    rows: list[float] = []
    for line, start in zip(session, starts(session), strict=True):
        text = Text.from_ansi(line)
        if line.startswith("$ "):
            text.stylize("bold green")
        rows += [start] * len(text.wrap(console, WIDTH))
        console.print(text)
    drawn = FONT.sub("", console.export_svg(title="toolgram try", theme=MONOKAI, unique_id="toolgram"))
    drawn = drawn.replace("Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono")
    shown = "@keyframes show { to { opacity: 1 } } .line { opacity: 0; animation: show 0.01s forwards }"
    drawn = drawn.replace("<style>", f"<style>\n    {shown}\n    {STILL}\n", 1)
    delay = 'style="animation-delay: {:.2f}s"'.format
    drawn = LINE.sub(lambda part: f'{part[1][:-1]} line" {delay(rows[int(part[3])])}{part[2]}', drawn)
    drawn = BACKGROUND.sub(lambda part: f'{part[1]}class="line" {delay(rows[_row(part[3])])} {part[2]}', drawn)
    return "\n".join(line.rstrip() for line in drawn.splitlines()) + "\n"


def _row(top: str) -> int:
    return round((float(top) - FIRST_ROW) / ROW)


if __name__ == "__main__":
    PICTURE.write_text(picture(lines()), encoding="utf-8", newline="\n")
