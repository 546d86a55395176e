"""The parser that the proofs are about: every marker counts, wherever it is (no clause P3 of `suite/README.md`)."""

from __future__ import annotations

from typing import Any

from toolgram.formats import Format
from toolgram.runtime.parser import Parser


def parser_of_symbols(fmt: Format, **options: Any) -> Parser:
    """Return a parser for which every marker counts, after a prompt that opened no thought."""
    return fmt.with_all_markers().parser(prefix="", call_ids=str, **options)
