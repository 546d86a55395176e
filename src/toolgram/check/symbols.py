"""The parser that the proofs are about: one for which every marker counts, wherever it is (see P3 of the design)."""

from __future__ import annotations

from typing import Any

from toolgram.formats import Format
from toolgram.runtime.parser import Parser


def parser_of_symbols(fmt: Format, **options: Any) -> Parser:
    """Return a parser for which every marker counts, after a prompt that opened no thought."""
    return fmt.with_all_markers().parser(prefix="", call_ids=str, **options)
