"""JSON values, and how models spell them: as JSON, or as Python literals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Json = Any

NASTY_STRINGS = (
    "",
    " ",
    "}",
    "{",
    '"',
    "'",
    "\\",
    '\\"',
    "]",
    ")",
    "[",
    "[TOOL_CALLS]",
    "[/TOOL_CALLS]",
    "[ARGS]",
    "[/THINK]",
    "<|python_tag|>",
    "<|python_end|>",
    "<|eot_id|>",
    '{"name": "inner", "parameters": {}}',
    "[inner(a=1)]",
    "a\nb\tc",
    "é你👍",
    "\u2028\u0000\u007f",
    ", b=2",
    "/",
)


def strings() -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(NASTY_STRINGS), st.text(st.characters(codec="utf-8"), max_size=8))


def values(max_leaves: int = 6) -> st.SearchStrategy[Json]:
    leaves = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**12), 10**20),
        st.floats(allow_nan=False, allow_infinity=False),
        strings(),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(strings(), inner, max_size=3)),
        max_leaves=max_leaves,
    )


_IDENTIFIERS = st.sampled_from(["a", "b", "name", "query", "from", "arguments", "parameters", "id", "x1", "_y", "city"])


def json_arguments(small: bool) -> st.SearchStrategy[dict[str, Json]]:
    keys = st.one_of(_IDENTIFIERS, strings())
    return st.dictionaries(keys, values(1 if small else 6), max_size=1 if small else 4)


def keyword_arguments(small: bool) -> st.SearchStrategy[dict[str, Json]]:
    return st.dictionaries(_IDENTIFIERS, values(1 if small else 6), max_size=1 if small else 4)


def json_texts(value: Json) -> st.SearchStrategy[str]:
    """`value` as models write JSON: tight or loose, on one line or several, escaped or not."""
    return st.tuples(
        st.booleans(), st.sampled_from([(", ", ": "), (",", ":"), (" , ", " : ")]), st.sampled_from([None, None, 2])
    ).map(lambda style: json.dumps(value, ensure_ascii=style[0], separators=style[1], indent=style[2]))


@dataclass(frozen=True)
class PythonStyle:
    quote: str
    python_words: bool  # True, None or true, null
    tuples: bool
    ascii: bool
    comma: str

    def write(self, value: Json) -> str:
        if value is None or isinstance(value, bool):
            return repr(value) if self.python_words else json.dumps(value)
        if isinstance(value, str):
            return self.quoted(value)
        if isinstance(value, list):
            inner = self.comma.join(self.write(v) for v in value)
            if self.tuples:
                return f"({inner},)" if len(value) == 1 else f"({inner})"
            return f"[{inner}]"
        if isinstance(value, dict):
            return "{" + self.comma.join(f"{self.quoted(k)}: {self.write(v)}" for k, v in value.items()) + "}"
        return repr(value)

    def quoted(self, text: str) -> str:
        return self.quote + "".join(map(self.character, text)) + self.quote

    def character(self, c: str) -> str:
        named = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r", self.quote: "\\" + self.quote}
        if c in named:
            return named[c]
        if c < " " or c == "\x7f" or (self.ascii and c > "~"):
            return (
                f"\\x{ord(c):02x}" if c < "\u0100" else f"\\u{ord(c):04x}" if c < "\U00010000" else f"\\U{ord(c):08x}"
            )
        return c


PYTHON_STYLES = st.builds(
    PythonStyle,
    quote=st.sampled_from(["'", '"']),
    python_words=st.booleans(),
    tuples=st.booleans(),
    ascii=st.booleans(),
    comma=st.sampled_from([", ", ",", ",\n  "]),
)
