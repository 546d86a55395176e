"""Patterns, bounds of numbers and strings of schemas mean what they say.

Patterns are ECMAScript's: another implementation of JSON Schema judges what they match.
"""

import itertools
import json
import random
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.export import oracle
from tests.export.engines import plain_engines
from tests.export.measuring import WRITTEN, tool
from toolgram.export import TARGETS
from toolgram.export.digits import integers, numbers
from toolgram.export.ecmascript import FORMATS, NotAPattern, check_pattern, matches, pattern_text
from toolgram.limits import MAX_PATTERN_DEPTH

jsonschema_rs = pytest.importorskip("jsonschema_rs")
pytest.importorskip("llguidance")

TEXTS = ("", "a", "1", "a1", "é", "é1", "日本", "٣", "_", " ", "\u2003", "\x01", "😀", "a😀", "-", "]", "^", "\\",
         "A/b", "abab", "cat", "x\ny", "\n", "Ⅷ", "0", "a-b", "b", "ab", "abc", "xb", "ba", "a$", "]x", "|x", "ababab",
         "x1", " 1", "ac", "axb", "2024-02-29", "10:00:00Z", "2024-02-29T10:00:00.5+01:00", "P1DT2H", "P", "a@b.c",
         "me@x", "10.0.0.256", "::1", "https://x.y/z?q=1", "mailto:",
         "123e4567-e89b-12d3-a456-426614174000")  # fmt: skip
PATTERNS = (
    r"^[\p{L}\d]+$", r"^\p{L}+$", r"^[^\p{L}]+$", r"^\P{L}$", r"^\p{Lu}", r"^\p{Letter}$", r"^\p{gc=Nd}$", r"\p{N}",
    r"^\cA$", r"^\u{1F600}$", r"^\u00e9$", r"^\x41", r"^\d$", r"^\w+$", r"^\s$", r"^\S+$", r"^[\w-]+$",
    r"^[^\]]$", r"^[a-z\d]{2,3}$", r"^(?:ab)+$", r"^(?<pet>cat|dog)$", r"a|^$", r"^.$", r"^[\s\S]$", r"^a??1?$", r"\/",
    r"^[^]$", r"^[\b\-]$", "b", "^b", "b$", "^a|b$", r"^a\$", r"[\]|]x", "^(a|b)c?$", "^(?:ab){2,3}$", r"^\d+\w*$",
    "^[^a-c]+$", "^.*x.?$", "(^a|b)", "^a*?b+?$", "", "^$", r"^\s[\W\d]$", "^(?:a|[]{2})$",
    "(" * MAX_PATTERN_DEPTH + "a" + ")" * MAX_PATTERN_DEPTH, *FORMATS.values(),
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_matches_what_ecmascript_says(pattern: str) -> None:
    expr = pattern_text(pattern)
    assert expr is not None
    expected: dict[str, Callable[[str], bool]] = {  # of those which the judge does not take
        r"^[^]$": lambda text: len(text) == 1,
        r"^\p{gc=Nd}$": lambda text: len(text) == 1 and text.isdecimal(),
        r"^[\b\-]$": lambda text: text == "-",
        "^(?:a|[]{2})$": lambda text: text == "a",
        r"^\u{1F600}$": lambda text: text == "😀",
    }
    found = [*filter(expected.get(pattern, partial(jsonschema_rs.is_valid, {"pattern": pattern})), TEXTS)]
    assert [text for text in TEXTS if matches(expr, text)] == found
    assert [text for text in TEXTS if oracle.accepts(expr, text)] == found


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


BOUNDS = st.one_of(st.none(), st.integers(-200, 200), st.integers(-(2**70), 2**70))


@given(low=BOUNDS, high=BOUNDS, seed=st.integers())
def test_whole_numbers_between_bounds(low: int | None, high: int | None, seed: int) -> None:
    matches = partial(oracle.accepts, integers(low, high))
    rng = random.Random(seed)
    near = [each + step for each in (low, high, 0) if each is not None for step in (-11, -1, 0, 1, 9, 100)]
    for value in [*near, rng.randint(-300, 300), rng.randint(-(2**71), 2**71)]:
        fits = (low is None or value >= low) and (high is None or value <= high)
        assert matches(str(value)) is fits, value
    assert not matches("-0")
    assert not matches("007")


NEAR_ZERO = st.integers(-20, 20) | st.decimals(-20, 20, places=2).map(float)
DECIMALS = st.none() | NEAR_ZERO | st.sampled_from([0.05, 0.95, 1e-7, 3e9])


@given(low=DECIMALS, high=DECIMALS, above=st.booleans(), below=st.booleans(), seed=st.integers())
def test_numbers_between_bounds(low: float | None, high: float | None, above: bool, below: bool, seed: int) -> None:
    if low is not None and high is not None and low > high:
        return
    matches = partial(oracle.accepts, numbers(low, above, high, below))
    rng = random.Random(seed)
    texts = [str(Decimal(str(each)) + Decimal(step)) for each in (low, high, 0) if each is not None
             for step in ("-1", "-0.001", "0", "0.01", "0.5", "1", "10.25")]  # fmt: skip
    texts += [f"{rng.uniform(-25, 25):.{rng.randint(0, 4)}f}" for _ in range(20)]
    for text in texts:
        value = Decimal(text)
        if "E" in text or (text.startswith("-") and value == 0):
            continue
        fits = True
        if low is not None:
            fits = value > Decimal(str(low)) or (value == Decimal(str(low)) and not above)
        if high is not None:
            fits = fits and (value < Decimal(str(high)) or (value == Decimal(str(high)) and not below))
        assert matches(text) is fits, text


@pytest.mark.parametrize("target", ["structural_tag", "ebnf", "gbnf"])
def test_a_string_is_what_json_reads(target: str) -> None:
    """In any combination of two: characters of every kind, escapes, and what is neither."""
    parts = [
        *"a/é𝄞'<", "\x7f", "\u2028", "\\n", "\\/", "\\u12aF", '\\"', "\\\\", "\\u12a", "\\x", "\\", "\x00", "\n", '"',
    ]  # fmt: skip
    made = toolgram.get_format("hermes").export(target, [tool("f", {"a": {"type": "string"}}, ["a"])], "required")
    engine = plain_engines().load(target, made.text)
    for text in map("".join, itertools.product(parts, repeat=2)):
        try:
            fits = isinstance(json.loads(f'"{text}"'), str)
        except ValueError:
            fits = False
        written = f'<tool_call>\n{{"name": "f", "arguments": {{"a": "{text}"}}}}\n</tool_call>'
        assert engine.accepts(written) == fits, ascii(text)
