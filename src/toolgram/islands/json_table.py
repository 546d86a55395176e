"""The table of JSON at character level: where each character leads, in each state.

A row per state says where a character leads: to another state, or to one of four things that a table cannot do (push a
bracket, pop one, escape a raw control character, give up). Whether a value is in a list or an object is part of the
state, so the row checks brackets, and one look-up tells what follows a value.
"""

from __future__ import annotations

# The states inside strings: plain, after a backslash, and with four to one hexadecimal digits to come; each for a
# string in a list, in an object, and for a key, in this order: `state % 3` says which string it is.
ITEM_STRING, MEMBER_STRING, KEY_STRING = range(3)
_ESCAPE = 3
_HEX = 6
# Between tokens, by what is expected next.
START, ITEM, FIRST_ITEM, MEMBER_VALUE, FIRST_KEY, KEY, COLON, AFTER_ITEM, AFTER_MEMBER = range(18, 27)
DONE, BROKEN = 27, 28
# From here on: inside a number or a word.
SCALARS = 29

# Entries of a row that are not states.
RAW_CONTROL, WRONG, POP, PUSH = range(-4, 0)  # RAW_CONTROL - n for a string of kind n

BLANKS = " \t\r\n"
DIGITS, _NONZERO, _HEX_DIGITS = "0123456789", "123456789", "0123456789abcdefABCDEF"
_WORDS = ("true", "false", "null")
_CONTROLS = "".join(map(chr, range(0x20)))
_CONTROL_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}

# The states of a number or a whole word: what has been read of it -> which characters lead where.
_SCALAR: dict[str, dict[str, str]] = {
    "-": {"0": "0", _NONZERO: "1"},
    "0": {".": ".", "eE": "e"},
    "1": {DIGITS: "1", ".": ".", "eE": "e"},
    ".": {DIGITS: "f"},
    "f": {DIGITS: "f", "eE": "e"},
    "e": {DIGITS: "x", "+-": "s"},
    "s": {DIGITS: "x"},
    "x": {DIGITS: "x"},
    "w": {},  # the end of a word: what follows it directly is no other value
}
_SCALAR_ENDS = "01fxw"

_Row = dict[str, int]


def _table() -> tuple[list[_Row], dict[int, int]]:
    """Return the rows of all states, and for each state in which a scalar may be over, the state after it."""
    rows = [_row(state if state <= KEY_STRING else WRONG) for state in range(SCALARS)]
    after_string = {ITEM_STRING: AFTER_ITEM, MEMBER_STRING: AFTER_MEMBER, KEY_STRING: COLON}
    for kind, after in after_string.items():
        rows[kind] |= _each(_CONTROLS, RAW_CONTROL - kind) | {'"': after, "\\": _ESCAPE + kind}
        rows[_ESCAPE + kind] |= _each('"\\/bfnrt', kind) | {"u": _HEX + kind}
        for state in range(_HEX + kind, START, 3):
            rows[state] |= _each(_HEX_DIGITS, state + 3 if state + 3 < START else kind)
    for state in range(START, DONE):
        rows[state] |= _each(BLANKS, state)
    rows[START] |= {"{": PUSH, "[": PUSH}
    rows[FIRST_KEY] |= {'"': KEY_STRING, "}": POP}
    rows[KEY] |= {'"': KEY_STRING}
    rows[COLON] |= {":": MEMBER_VALUE}
    rows[AFTER_ITEM] |= {",": ITEM, "]": POP}
    rows[AFTER_MEMBER] |= {",": KEY, "}": POP}
    rows[FIRST_ITEM] |= {"]": POP}
    after_scalar: dict[int, int] = {}
    for string, after in ((ITEM_STRING, AFTER_ITEM), (MEMBER_STRING, AFTER_MEMBER)):
        scalar = {name: len(rows) + at for at, name in enumerate(_SCALAR)}
        for name, steps in _SCALAR.items():
            over = name in _SCALAR_ENDS
            rows.append(dict(rows[after]) if over else _row(WRONG))
            if over:
                after_scalar[scalar[name]] = after
            for characters, following in steps.items():
                rows[-1] |= _each(characters, scalar[following])
        begin = {"-": scalar["-"], "0": scalar["0"], **_each(_NONZERO, scalar["1"])}
        for word in _WORDS:
            begin[word[0]] = len(rows)
            rows += [_row(WRONG) | {letter: len(rows) + at} for at, letter in enumerate(word[1:], 1)]
            rows[-1][word[-1]] = scalar["w"]
        begin |= {'"': string, "{": PUSH, "[": PUSH}
        for state in (ITEM, FIRST_ITEM) if string == ITEM_STRING else (MEMBER_VALUE,):
            rows[state] |= begin
    return rows, after_scalar


def _row(other: int) -> _Row:
    """Return a row in which every character of ASCII leads to `other`."""
    return dict.fromkeys(map(chr, range(128)), other)


def _each(characters: str, following: int) -> _Row:
    return dict.fromkeys(characters, following)


ROWS, AFTER_SCALAR = _table()
INTEGERS = {ROWS[ITEM]["1"], ROWS[MEMBER_VALUE]["1"]}
SIGNS = {ROWS[ITEM]["-"]: ITEM, ROWS[MEMBER_VALUE]["-"]: MEMBER_VALUE}

# The state that a comma or a closing quote leads to -> the character, and the state before it.
BEFORE = {
    ITEM: (",", AFTER_ITEM),
    KEY: (",", AFTER_MEMBER),
    AFTER_ITEM: ('"', ITEM_STRING),
    AFTER_MEMBER: ('"', MEMBER_STRING),
    COLON: ('"', KEY_STRING),
}


def escape_controls(text: str) -> str:
    """Return `text` with each control character written as its JSON escape."""
    return "".join(
        character if character >= " " else _CONTROL_ESCAPES.get(character, f"\\u{ord(character):04x}")
        for character in text
    )
