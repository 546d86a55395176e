"""A hook of mkdocs: what the site is without the playground, and folders in the navigation.

Strategy: `make docs` builds the site alone, `make site` with the playground, which needs npm. Without it, the first
page must not frame a page that does not exist. In `nav`, `FOLDER/*.md` stands for the pages of a folder, so that a new
anomaly or error has its place without being listed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

PLAYGROUND = re.compile(r"^## Try it here\n.*?(?=^## )", re.M | re.S)


def on_config(config: Any) -> Any:
    """Replace each `FOLDER/*.md` of the navigation by the pages of the folder."""
    config.nav = _listed(config.nav, Path(config.docs_dir))
    return config


def _listed(nav: list[Any], docs: Path) -> list[Any]:
    found: list[Any] = []
    for entry in nav:
        if isinstance(entry, dict):
            parts = {name: _listed(each, docs) if isinstance(each, list) else each for name, each in entry.items()}
            found.append(parts)
        elif entry.endswith("/*.md"):
            pages = (docs / entry).parent.glob("*.md")
            found += [page.relative_to(docs).as_posix() for page in sorted(pages) if page.name != "README.md"]
        else:
            found.append(entry)
    return found


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave the playground out of the first page if this build has none."""
    if page.file.src_uri == "index.md" and not os.environ.get("TOOLGRAM_PLAYGROUND"):
        return PLAYGROUND.sub("", markdown)
    return markdown
