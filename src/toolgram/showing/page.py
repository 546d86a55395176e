"""Write the page of many texts: a list, and the pane of the one that is chosen.

Strategy: the document has its style and script inside and loads nothing. All text in it comes from models: it is JSON
data, which the script writes as text. No other script runs: the page's policy has the hash of its own.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from importlib.resources import files
from string import Template
from typing import Any

_SCRIPTS = ("pane.mjs", "answers.mjs")


def page(title: str, intro: str, data: dict[str, Any] | None = None) -> str:
    """Return the page. Without `data`, it asks the server that it comes from for it."""
    here = files("toolgram.showing")
    script = "\n".join((here / name).read_text(encoding="utf-8") for name in _SCRIPTS)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template((here / "answers.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(title),
        intro=html.escape(intro),
        style=(here / "style.css").read_text(encoding="utf-8"),
        script=script,
        policy=f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'",
        data=json.dumps(data).replace("<", "\\u003c"),
    )
