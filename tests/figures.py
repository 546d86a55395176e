"""Figures that pages state: `docs/data/NAME.json`, which commands write, and the links by which pages state them.

Strategy: a page states a figure inside of a link to the file that has it, such as `[581 of 582](data/scoreboard.json)`.
A reader sees where it is from, and `tests/test_readme.py` compares it with the file.
"""

import datetime
import json
import os
import platform
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import toolgram

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "data"
LINK = re.compile(r"\[([^\]\[]*)\]\(((?:[\w.]+/)*)data/(\w+\.json)\)")
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def write_figures(
    name: str, command: str, figures: Mapping[str, Any], versions: Mapping[str, str] | None = None
) -> None:
    """Write a data file: the figures, the command that made them, machine, versions, and the day."""
    content = {
        "command": command,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}",
        "versions": {"toolgram": toolgram.__version__, "Python": platform.python_version(), **(versions or {})},
        "figures": dict(figures),
    }
    (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def numbers(values: Any) -> set[str]:
    """Return every number of a data file, as a page writes it: `95,000`, `62.1`."""
    if isinstance(values, Mapping):
        return set().union(*map(numbers, values.values()))
    if isinstance(values, int):
        return {f"{values:,}"}
    if isinstance(values, float):
        return {f"{values:g}", f"{values:.1f}"}
    return set(NUMBER.findall(values)) if isinstance(values, str) else set()


def stated(text: str) -> Iterator[tuple[str, str]]:
    """Yield every figure that a page states with the name of its file."""
    for link in LINK.finditer(text):
        for number in NUMBER.findall(link[1]):
            yield number, link[3]
