"""Write the audit as one HTML file that needs no network. All text in it comes from models, and jinja2 escapes it."""

from __future__ import annotations

from pathlib import Path

import jinja2

import toolgram
from toolgram.audit.auditing import Audit
from toolgram.audit.comparing import KINDS


def page(found: Audit) -> str:
    """Return the page."""
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string(Path(__file__).with_name("page.html.jinja").read_text(encoding="utf-8"))
    shown = template.render(found=found.to_dict(), kinds=KINDS, version=toolgram.__version__)
    return shown.encode("utf-8", "replace").decode()
