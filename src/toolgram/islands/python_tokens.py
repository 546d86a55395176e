"""The tokens of Python's literals, and the JSON that is written for them.

Strategy: tables and patterns without state; `python_literals` moves through them. Patterns only look forward over runs,
and end in an optional group, so that nothing is retried.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import cast

BLANKS = " \t\n\r\f"  # blanks of Python inside brackets, without the no-break space
SCALAR = r"(?P<quote>[\"'])|(?P<number>[-+.0-9])|(?P<word>[TFNtfn])"
OPEN = r"(?P<open>[\[({])"
Always = Callable[[str, int], re.Match[str]]


def always(pattern: str) -> Always:
    """Return the `match` of a pattern that matches everywhere."""
    return cast("Always", re.compile(pattern).match)


def expect(tokens: str) -> Always:
    """Match blanks, then one of the tokens, if there, in `lastgroup`. Nothing is retried, because all is optional."""
    return always(rf"[{BLANKS}]*(?:{tokens})?")


# Frames of the stack are the brackets themselves, "s" for a set, "t" for a parenthesis after a comma, which makes it a
# tuple, and for the outermost "k" (keyword arguments) or "d" (a sole dict).
CLOSERS = {"k": r"\)", "s": r"\}", "d": r"\}", "{": r"\}", "[": r"\]", "(": r"\)", "t": r"\)"}
KEYED = "{d"

ARGUMENT = {
    "arguments": expect(r"(?P<name>[^\W\d]\w*)|(?P<close>\))|(?P<dict>\{)"),
    "argument": expect(r"(?P<name>[^\W\d]\w*)|(?P<close>\))"),
}
NAME = re.compile(r"\w+")
EQUALS = expect("(?P<equals>=)")
COLON = expect("(?P<colon>:)")
VALUE = expect(f"{SCALAR}|{OPEN}")
ITEM = {
    frame: expect(f"{SCALAR}|(?P<close>{closer})" + ("" if frame in KEYED else f"|{OPEN}"))
    for frame, closer in CLOSERS.items()
}
AFTER = {frame: expect(f"(?P<comma>,)|(?P<close>{closer})") for frame, closer in CLOSERS.items()}
SOLE = {"sole": expect(r"(?P<comma>,)|(?P<close>\))"), "last": expect(r"(?P<close>\))")}

WORDS = {"True": "true", "true": "true", "False": "false", "false": "false", "None": "null", "null": "null"}
WORD_PREFIXES = {word[:size] for word in WORDS for size in range(1, len(word) + 1)}
WORD_ENDS = BLANKS + ",:)]}"

# Numbers: token -> next state and the JSON written for it (None: unchanged). JSON wants a digit on both sides of a
# point, and has no plus sign, no underscores and no other base: `0x1F` is written as a decimal.
NUMBER_TOKEN = re.compile(
    r"(?P<zero>0)|(?P<digits>[1-9][0-9]*)|(?P<point>\.)|(?P<exp>[eE])|(?P<minus>-)|(?P<plus>\+)|(?P<under>_)"
    "|(?P<base>(?=[xXoObB]))"
)
Row = dict[str, tuple[str, str | None]]


def digits(state: str) -> Row:
    """Return the row of a state in which digits lead to `state`."""
    return {"zero": (state, None), "digits": (state, None)}


UNSIGNED: Row = {"zero": ("zero", ""), "digits": ("integer", None), "point": ("leading point", "0.")}
EXPONENT: Row = {"exp": ("exponent", None)}
NUMBER: dict[str, Row] = {
    "number": {**UNSIGNED, "minus": ("sign", "-"), "plus": ("sign", "")},
    "sign": UNSIGNED,
    "zero": {"point": ("point", "0."), "exp": ("exponent", "0e"), "base": ("based", "")},
    "integer": {**digits("integer"), "under": ("integer _", ""), "point": ("point", "."), **EXPONENT},
    "integer _": digits("integer"),
    "leading point": digits("fraction"),
    "point": {**digits("fraction"), "exp": ("exponent", "0e")},
    "fraction": {**digits("fraction"), "under": ("fraction _", ""), **EXPONENT},
    "fraction _": digits("fraction"),
    "exponent": {**digits("power"), "minus": ("exponent sign", None), "plus": ("exponent sign", None)},
    "exponent sign": digits("power"),
    "power": {**digits("power"), "under": ("power _", "")},
    "power _": digits("power"),
}
NUMBER_ENDS = {"zero": "0", "integer": "", "point": "0", "fraction": "", "power": ""}  # what JSON still needs

BASED = re.compile(r"[xX](?:_?[0-9a-fA-F])+|[oO](?:_?[0-7])+|[bB](?:_?[01])+").fullmatch
BASED_DIGITS = always(r"[0-9a-fA-FxXoO_]*+")

RUN = {quote: re.compile(rf"[^{quote[0]}\\]+") for quote in ('"', "'", '"""', "'''")}
SPECIAL = {quote: re.compile(rf'["{quote[0]}\\\x00-\x1f]').search for quote in RUN}  # different in JSON
HEX = "[0-9a-fA-F]"
# As much of one escape as fits: a wrong one leaves text, a cut one does not. The digits after "\U" are spelled out
# because the largest character is 10FFFF.
ESCAPE_PATTERN = (
    rf"\\(?:[0-7]{{1,3}}|x{HEX}{{0,2}}|u{HEX}{{0,4}}|U(?:0(?:0(?:0{HEX}{{0,5}}|1(?:0{HEX}{{0,4}})?)?)?)?|\r\n?|.)?"
)
ESCAPE = always(f"(?s:{ESCAPE_PATTERN})")
_escapes = re.compile(f"(?s:{ESCAPE_PATTERN})").finditer
ESCAPE_SIZE = {"x": 4, "u": 6, "U": 10, "\r": 3, **dict.fromkeys("01234567", 4)}  # the longest possible; others 2
LONGEST_ESCAPE = 10
SHORT_ESCAPES = {
    **{letter: "\\" + letter for letter in 'ntrbf\\"'},
    **{"a": r"\u0007", "v": r"\u000b", "'": "'", "\n": "", "\r": ""},
}


def json_text(text: str) -> str:
    """Return the text as it is inside a JSON string."""
    return encode_basestring(text)[1:-1]


def more_of_escape(held: str, text: str, pos: int) -> tuple[str, int, bool]:
    """Return as much as fits of an escape that begins with `held`, the position after it, and whether it may go on."""
    window = held + text[pos : pos + LONGEST_ESCAPE - len(held)]
    match = ESCAPE(window, 0)
    escape, end = match.group(), pos + match.end() - len(held)
    return escape, end, match.end() == len(window) and is_short(escape)


def is_short(escape: str) -> bool:
    """Return whether an escape may have more characters."""
    return len(escape) < ESCAPE_SIZE.get(escape[1], 2)


def is_escape(escape: str) -> bool:
    """Return whether Python knows an escape by its first characters; it keeps the backslash of any other."""
    return escape[1:2] in ESCAPE_SIZE or escape[1:2] in SHORT_ESCAPES or escape[1:2] == "N"


def unescape(escape: str) -> str:
    """Return a whole escape, backslash included, as it is inside a JSON string."""
    kind = escape[1]
    if kind in SHORT_ESCAPES:
        return SHORT_ESCAPES[kind]
    if kind in "xuU":
        code = int(escape[2:], 16)
    elif kind in "01234567":
        code = int(escape[1:], 8)
    else:
        return json_text(escape)
    return rf"\u{code:04x}" if 0xD800 <= code <= 0xDFFF else json_text(chr(code))


def string_as_json(text: str) -> str:
    """Return the inside of a Python string as a JSON string. An escape that is not whole is text."""
    parts: list[str] = []
    at = 0
    for found in _escapes(text):
        escape = found.group()
        cut = len(escape) == 1 or (escape[1] in "xuU" and is_short(escape))
        parts += json_text(text[at : found.start()]), json_text(escape) if cut else unescape(escape)
        at = found.end()
    return f'"{"".join(parts)}{json_text(text[at:])}"'
