"""Every grammar beside the reference matcher of its expression: the same outputs, and after each character the same
characters that may follow."""

import random
from dataclasses import replace
from typing import Any

import pytest

import toolgram
from tests.export import oracle
from tests.export.engines import NEEDED, Engine, plain_engines
from tests.export.measuring import PROMPTS, WRITTEN, tool
from tests.export.writing import mutated, random_output
from tests.properties.selection import every_format
from toolgram.export import export_request, expression
from toolgram.export import expressions as ex
from toolgram.export.ebnf import excluded
from toolgram.export.passes import changed

pytestmark = NEEDED

TEXT: dict[str, Any] = {"type": "string"}
# Few arguments, and no forms that an engine does not count: of these, a grammar keeps everything.
DAYS = {"type": "integer", "minimum": 1, "maximum": 14}
TAGS = {"type": "array", "items": {"enum": ["a", "bc"]}, "maxItems": 2}
TOOLS = [
    tool("get_weather", {"city": TEXT, "days": DAYS}, ["city"], additionalProperties=False),
    tool("get_time", {}, additionalProperties=False),
    tool("search", {"tags": TAGS, "exact": {"type": "boolean"}}, ["exact"], additionalProperties=False),
]
PROBES = frozenset(map(ord, "\n\"'`abcdefghijklmnopqrstuvwxyz_ABCTOL0159 <>[](){}|/\\:,.=-#!?@^~"))


def as_dispatched(root: ex.Expr) -> ex.Expr:
    """The expression with the words that xgrammar looks for: parts of some markers, of which notes tell."""

    def leaf(expr: ex.Expr) -> ex.Expr:
        if not isinstance(expr, ex.Text) or expr.within is not None:
            return expr
        words = ex.Forbidden(excluded(expr, lambda words: None))
        closer = expr.closer
        return ex.Text(words, closer) if closer in words.words else ex.seq(ex.Text(words), ex.Lit(closer))

    return changed(root, leaf)


def check_masks(engine: Engine, root: ex.Expr, output: str) -> None:
    """After each character of an output, the same characters may follow."""
    matcher, state = engine.begin(), oracle.begin(root)
    for at, char in enumerate(output):
        allowed = set(matcher.allowed().tolist())
        if engine.target != "llguidance" or len(allowed) > 1:  # it may say one token and no others
            ours = {code for code in PROBES if oracle.after(state, chr(code))}
            assert allowed & PROBES == ours, (engine.target, output[:at])
            assert (engine.vocab.eos_token_id in allowed) == oracle.may_end(state), (engine.target, output[:at])
        assert all(map(matcher.take, char.encode())), (engine.target, output[:at], char)
        state = oracle.after(state, char)


@pytest.mark.parametrize("tool_choice", ["auto", "required"])
@every_format
def test_every_grammar_is_the_language_of_its_expression(name: str, tool_choice: str) -> None:
    fmt = toolgram.get_format(name)
    whole, _ = expression(fmt, export_request(TOOLS, tool_choice), PROMPTS.get(name), lambda words: None)
    rng = random.Random(f"{name} {tool_choice}")
    written = [random_output(whole, rng) for _ in range(3)]
    assert all(oracle.accepts(whole, output) for output in written)
    outputs = [*written, *(mutated(output, rng) for output in written for _ in range(6))]
    for target in WRITTEN:
        root = whole if target in ("llguidance", "gbnf") else as_dispatched(whole)
        made = fmt.export(target, TOOLS, tool_choice, prefix=PROMPTS.get(name))
        if any("of an id" in note or "for an id" in note for note in made.notes):  # an id is wider, so that it is fast
            made = fmt.export(target, TOOLS, tool_choice, prefix=PROMPTS.get(name), length_limits=True)
        grammar = plain_engines().load(target, made.text)
        for output in outputs:
            assert grammar.accepts(output) == oracle.accepts(root, output), (target, output)
        check_masks(grammar, root, min(filter(grammar.accepts, written), key=len, default=""))


A, B = ex.Lit("a"), ex.Lit("b")
ARGUMENTS = (ex.Member("a", A, True, ex.Lit(",")), ex.Member("b", B, False, ex.Lit(",")))
REST = ex.choice(ex.Lit('"'), ex.seq(A, ex.Ref("rest")))
QUOTED = ex.Rules("start", (("start", ex.seq(ex.Lit('"'), ex.Ref("rest"))), ("rest", REST)))


@pytest.mark.parametrize(
    ("root", "good", "bad"),
    [
        (ex.seq(ex.star(ex.choice(A, B)), ex.Lit("c")), ("c", "abac"), ("", "ab", "cc")),
        (ex.Repeat(ex.Class(((97, 98),)), 1, 2), ("a", "ba"), ("", "aba")),
        (ex.Text(ex.Forbidden(("ab", "b]")), "]"), ("]", "aa]"), ("ab]", "b]", "a", "]]")),
        (ex.Text(ex.Forbidden(("ab",))), ("", "ba"), ("bab",)),
        (ex.Text(ex.Forbidden(("]",)), "]", ex.Repeat(A, 2, 3)), ("aa]", "aaa]"), ("a]", "ab]", "aaaa]")),
        (ex.Members(ARGUMENTS, True), ("a", "a,b", "b,a"), ("", "b", "a,a")),
        (ex.Members(ARGUMENTS, False), ("a", "a,b"), ("", "b", "b,a")),
        (ex.OtherName(("ab", 'c"')), ('"a"', '"abc"', '"c\\n"', '"c\\\\"', '""'), ('"ab"', '"c\\""', '"a')),
        (QUOTED, ('""', '"aa"'), ('"', '"b"')),
    ],
)
def test_the_matcher_itself(root: ex.Expr, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    assert [text for text in good if not oracle.accepts(root, text)] == []
    assert [text for text in bad if oracle.accepts(root, text)] == []


def test_a_difference_is_found() -> None:
    """A grammar in which one character is wrong is not the language of the expression."""
    fmt = toolgram.get_format("hermes")
    root, _ = expression(fmt, export_request(TOOLS, "required"), None, lambda words: None)
    made = fmt.export("gbnf", TOOLS, "required")
    wrong = replace(made, text=made.text.replace("search", "seerch"))
    assert wrong != made
    grammar = plain_engines().load("gbnf", wrong.text)
    rng = random.Random(1)
    outputs = [random_output(root, rng) for _ in range(20)]
    assert {grammar.accepts(output) for output in outputs} == {True, False}
    assert all(oracle.accepts(root, output) for output in outputs)
