"""Values in a notation of the format's own: JSON with other quotes, and names without quotes.

Strategy: the converter of schemas is that of JSON and Python (`values`); this module has its table. Texts have no
escapes, so a text that contains a quote cannot be written. Its rules are written with each value.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

from toolgram.export.expressions import EMPTY, NOTHING, Class, Expr, Lit, Ref, choice, seq
from toolgram.export.markers import NO_TOKENS, Tokens
from toolgram.export.notations import Notation, composed, kinds_of

_BARE = Class(((45, 46), (48, 57), (65, 90), (95, 95), (97, 122)))  # characters of names without quotes
_fits_bare = re.compile(r"[^:,{}\[\]\"'\s<]+").fullmatch


@lru_cache(maxsize=64)
def notated(opening: str, closing: str, markers: tuple[str, ...] = (), tokens: Tokens = NO_TOKENS) -> Notation:
    """Return the notation of a format with its own quotes, in which texts have no escapes and names have no quotes.

    `markers` close a call in which the quote of a text is missing, so no text contains one.
    """
    marks = (opening, closing, *markers)
    words = tuple(dict.fromkeys(filter(tokens.is_text, marks)))

    def text(within: Expr | None) -> Expr:
        return seq(tokens.written(opening), tokens.text_until(closing, words, within))

    def quoted(value: str) -> Expr:
        if any(mark in value for mark in marks):
            return NOTHING
        return seq(tokens.written(opening), Lit(value), tokens.written(closing))

    def name(value: str) -> Expr:
        return Lit(value) if _fits_bare(value) else quoted(value)

    def leaf(value: Any) -> Expr:
        return quoted(value) if isinstance(value, str) else null if value is None else Lit(json.dumps(value))

    def constant(value: Any) -> Expr:
        return composed(value, made, leaf)

    null = choice(Lit("null"), Lit("None"))  # a template that prints a value writes it as Python does
    kinds: dict[str, Expr] = {}
    made = Notation("notated", "true", "false", "null", Lit(","), Lit(":"), EMPTY, constant, text, name, _BARE, kinds)
    kinds |= {f"notated_{kind}": Ref(f"json_{kind}") for kind in ("integer", "number", "boolean")}
    kinds |= {f"notated_{kind}": body for kind, body in kinds_of(made).items() if f"notated_{kind}" not in kinds}
    kinds["notated_string"], kinds["notated_null"] = text(None), null
    return made
