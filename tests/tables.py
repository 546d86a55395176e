"""Tables of texts and expectations: they are data, in a YAML file beside the test that asks them row by row."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml


@cache
def _tables(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def table(module: str, name: str) -> Any:
    """Return a table of a module, whose `__file__` this is, from the YAML file beside it."""
    return _tables(Path(module).with_suffix(".yaml"))[name]
