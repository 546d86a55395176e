"""Patterns of schemas are ECMAScript's: another implementation of JSON Schema judges what they match."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.export.engines import plain_engines
from tests.export.measuring import WRITTEN, tool
from toolgram.export import TARGETS
from toolgram.export.ecmascript import NotAPattern, check_pattern, matches, pattern_text

jsonschema_rs = pytest.importorskip("jsonschema_rs")
pytest.importorskip("llguidance")

TEXTS = ("", "a", "1", "a1", "é", "é1", "日本", "٣", "_", " ", "\u2003", "\x01", "😀", "a😀", "-", "]", "^", "\\",
         "A/b", "abab", "cat", "x\ny", "\n", "Ⅷ", "0", "a-b")  # fmt: skip
PATTERNS = (
    r"^[\p{L}\d]+$", r"^\p{L}+$", r"^[^\p{L}]+$", r"^\P{L}$", r"^\p{Lu}", r"^\p{Letter}$", r"^\p{gc=Nd}$", r"\p{N}",
    r"^\cA$", r"^\u{1F600}$", r"^\u00e9$", r"^\x41", r"^\d$", r"^\w+$", r"^\s$", r"^\S+$", r"^[\w-]+$",
    r"^[^\]]$", r"^[a-z\d]{2,3}$", r"^(?:ab)+$", r"^(?<pet>cat|dog)$", r"a|^$", r"^.$", r"^[\s\S]$", r"^a??1?$", r"\/",
    r"^[^]$", r"^[\b\-]$",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_ecmascript_says(pattern: str) -> None:
    expr = pattern_text(pattern)
    assert expr is not None
    schema = {"pattern": pattern}
    if pattern in (r"^[^]$", r"^\p{gc=Nd}$", r"^\u{1F600}$", r"^[\b\-]$"):  # which the judge does not take
        expected: dict[str, Callable[[str], bool]] = {
            r"^[^]$": lambda char: True,
            r"^\p{gc=Nd}$": str.isdecimal,
            r"^[\b\-]$": lambda char: char == "-",
            r"^\u{1F600}$": lambda char: char == "😀",
        }
        found = [text for text in TEXTS if len(text) == 1 and expected[pattern](text)]
    else:
        found = [text for text in TEXTS if jsonschema_rs.is_valid(schema, text)]
    assert [text for text in TEXTS if matches(expr, text)] == found


@given(st.text(alphabet=r"ab1^$.|()[]{}*+?\-,pcuxd<>=!:", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    """Never an exception of another kind; what has an expression can be asked whether it matches."""
    try:
        check_pattern(text)
    except NotAPattern:
        assert pattern_text(text) is None
    expr = pattern_text(text)
    assert expr is None or matches(expr, "ab1") in (True, False)


@pytest.mark.parametrize("text", ["(", ")", "[a", "*a", "a{2,1}", "[b-a]", "\\", r"\u{FFFFFF}", "a**"])
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(NotAPattern):
        check_pattern(text)


@pytest.mark.parametrize("text", [r"(?=a)b", r"(a)\1", r"\bfoo", "(?i)a", r"a(^b|c)", "(?>a)b", "a{0,9999}",
                                  r"^\p{Script=Greek}$", "(" * 500_000 + ")" * 500_000, "ab" * 500_000])  # fmt: skip
def test_what_has_no_expression_is_a_wider_text_with_a_note(text: str) -> None:
    assert len(text) > 99 or pattern_text(text) is None
    for target in TARGETS:
        made = toolgram.get_format("hermes").export(target, [tool("f", {"a": {"type": "string", "pattern": text}})])
        assert any("the pattern" in note and "not enforce" in note and len(note) < 300 for note in made.notes), target


@pytest.mark.parametrize("target", WRITTEN)
def test_every_engine_reads_the_same_pattern(target: str) -> None:
    engines = plain_engines()
    for pattern in (r"^[\p{L}\d]+$", r"^\p{L}+$", r"^[^\p{L}]+$", r"^\cA$", r"^\d$", r"^\u{1F600}$", r"^\w-\w$"):
        schema: dict[str, Any] = {"type": "string", "pattern": pattern}
        made = toolgram.get_format("qwen3_coder").export(target, [tool("f", {"a": schema}, ["a"])], "required")
        engine = engines.load(target, made.text)
        expr = pattern_text(pattern)
        assert expr is not None
        for text in TEXTS:
            if not set("<\n") & set(text):  # with which a closing marker begins
                value = f"<tool_call>\n<function=f>\n<parameter=a>\n{text}\n</parameter>\n</function>\n</tool_call>"
                assert engine.accepts(value) == matches(expr, text), (pattern, text)
