"""What writers write is what they mean: every grammar is read again, and compared with its pieces."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolgram
from tests.export.engines import Engines
from tests.export.measuring import PROMPTS, tool
from tests.export.reading import grammars_of, piece_of, rules_of
from tests.export.schema_pool import pool
from tests.export.writing import random_output
from tests.properties.selection import every_format
from toolgram.export import export_request, expression
from toolgram.export.bnf import GbnfWriter
from toolgram.export.ebnf import EbnfWriter
from toolgram.export.expressions import Expr
from toolgram.export.lark import LlguidanceWriter
from toolgram.export.passes import texts_of
from toolgram.export.written import EMPTY_ROW, Atom, Counted, Either, Piece, Row, either, row, spelled

for engine in ("llguidance", "tvm_ffi", "numpy"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")

WRITERS = {"llguidance": LlguidanceWriter, "ebnf": EbnfWriter, "gbnf": GbnfWriter}
TEXT: dict[str, Any] = {"type": "string"}
# Texts of a form with alternatives: what follows them must stay behind each alternative.
FORMS = {
    "words": {**TEXT, "pattern": "^(cat|dog)$"},
    "bare words": {**TEXT, "pattern": "^cat$|^dog$"},
    "a date": {**TEXT, "format": "date"},
    "a length": {**TEXT, "minLength": 2, "maxLength": 6},
    "an address": {**TEXT, "format": "email"},
}
PIECES = st.recursive(
    st.sampled_from([Atom("a"), Atom('"x | y"'), Atom("[ab]"), EMPTY_ROW]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: row(*parts)),
        st.lists(inner, min_size=2, max_size=3).map(lambda options: either(*options)),
        st.tuples(inner, st.sampled_from("?*+")).map(lambda pair: Counted(*pair)),
    ),
    max_leaves=12,
)


@given(PIECES)
def test_brackets_keep_a_piece_together(piece: Piece) -> None:
    assert piece_of(spelled(piece)) == without_empty(piece)


def without_empty(piece: Piece) -> Piece:
    """A piece as it is read: an empty part of a row is not written."""
    match piece:
        case Row():
            return row(*map(without_empty, piece.parts))
        case Either():
            return either(*map(without_empty, piece.options))
        case Counted():
            return Counted(without_empty(piece.body), piece.mark)
        case Atom():
            return piece


@lru_cache(maxsize=1)
def many_tools() -> list[dict[str, Any]]:
    """Functions with every kind of schema that tools have."""
    schemas = [*pool().values()]
    return [
        {"type": "function", "function": {"name": f"f_{at}", "parameters": each}}
        for at, each in enumerate(schemas[:: len(schemas) // 25])
    ]


def root_of(name: str, tools: list[dict[str, Any]], choice: str = "auto") -> Expr:
    """The expression of a request."""
    found, _ = expression(
        toolgram.get_format(name), export_request(tools, choice), PROMPTS.get(name), lambda words: None
    )
    return found


@every_format
def test_what_is_written_is_what_is_meant(name: str) -> None:
    tools = [tool("f", {f"p{at}": form for at, form in enumerate(FORMS.values())}), *many_tools()]
    root = root_of(name, tools)
    for target, writer in WRITERS.items():
        for limits in (False, True):
            made = writer(lambda words: None, limits)
            meant = made.all_rules(root)
            assert rules_of(made.text_of_rules(meant)) == [(rule, without_empty(body)) for rule, body in meant], target
    tag = toolgram.get_format(name).export("structural_tag", tools, prefix=PROMPTS.get(name))
    assert all(rules_of(grammar) for grammar in grammars_of(tag.text))


@every_format
def test_a_value_with_alternatives_keeps_its_closing_marker(name: str) -> None:
    """Each text of such a value is followed by its marker, and nothing without the marker is accepted."""
    fmt = toolgram.get_format(name)
    engines = Engines()
    for kind, form in FORMS.items():
        tools = [tool("get_pet", {"a": form}, ["a"], additionalProperties=False)]
        root = root_of(name, tools, "required")
        closers = {text.closer for text in texts_of(root) if text.within is not None}
        if not any(closers):
            return  # values of this format are no raw text
        rng = random.Random(f"{name} {kind}")
        outputs = [random_output(root, rng) for _ in range(3)]
        for target in WRITERS:
            for limits in (False, True):
                made = fmt.export(target, tools, "required", prefix=PROMPTS.get(name), length_limits=limits)
                grammar = engines.load(target, made.text)
                for output in outputs:
                    assert grammar.accepts(output), (target, kind, output)
                    for closer in filter(None, closers):
                        assert not grammar.accepts(output.replace(closer, "")), (target, kind, output)


def test_the_old_name_of_a_target_is_the_structural_tag() -> None:
    tools = [tool("f", {"a": TEXT})]
    fmt = toolgram.get_format("qwen3_coder")
    assert fmt.export("xgrammar", tools).text == fmt.export("structural_tag", tools).text
