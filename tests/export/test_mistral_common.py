"""Against mistral-common's own grammar factory, with its special tokens as tokens: what one accepts the other accepts.

Strategy: one small vocabulary (the bytes, Mistral's special tokens, an end), both grammars in llguidance, the same
sequences of tokens.  The factory is given a tokenizer that says no more than which special tokens there are.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

import toolgram
from tests.export.engines import Llguidance, Vocabulary
from tests.export.measuring import SAMPLES, tool
from tests.export.writing import mutated, random_output
from toolgram.export import export_request, expression

pytest.importorskip("llguidance")
factories = pytest.importorskip("mistral_common.guidance.grammar_factory")
pytest.importorskip("jinja2")

MARKERS = ("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]")
IDS = {marker: 256 + at for at, marker in enumerate(MARKERS)}
TOOLS = [
    tool("add", {"a": {"type": "number"}, "b": {"type": "number"}}, ["a", "b"], additionalProperties=False),
    tool("find", {"city": {"type": "string"}}, additionalProperties=False),
]
for each in TOOLS:
    each["function"]["strict"] = True


def vocabulary() -> Vocabulary:
    """The bytes, the markers as special tokens, and the end."""
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [f"<{marker[1:-1]}>".encode() for marker in MARKERS]
    return Vocabulary((*tokens, b"<eos>"), tuple(range(256, 256 + len(MARKERS) + 1)))


def theirs(choice: str, parallel: bool, tools: list[dict[str, Any]]) -> str:
    """The grammar that mistral-common writes."""
    from mistral_common.protocol.instruct.tool_calls import Tool
    from mistral_common.tokens.tokenizers.base import TokenizerVersion

    class Tokenizer:
        version = TokenizerVersion.v13
        num_special_tokens = 256 + len(MARKERS)

        def id_to_piece(self, token: int) -> str:
            return MARKERS[token - 256] if token >= 256 else f"<byte {token}>"

    factory = factories.GrammarFactory.__new__(factories.GrammarFactory)
    factory._tokenizer = Tokenizer()
    factory._special_token_map = factory._build_special_token_map()
    template = factory.select_jinja_template()
    models = [Tool.model_validate(each) for each in tools]
    grammar = factory.get_lark_from_jinja(template, choice, models, None, parallel, False, False)
    assert isinstance(grammar, str)
    return grammar


def tokens_of(text: str) -> list[int]:
    """Markers as tokens, everything else as bytes."""
    parts = re.split("(" + "|".join(map(re.escape, MARKERS)) + ")", text)
    return [token for part in parts for token in ([IDS[part]] if part in IDS else part.encode())]


def outputs(seed: int, tools: list[dict[str, Any]], **request: Any) -> Iterator[str]:
    """What our grammar writes, and the same with something wrong."""
    rng = random.Random(seed)
    root, _ = expression(toolgram.get_format("mistral_v11"), export_request(tools, **request), None, lambda words: None)
    for _ in range(SAMPLES * 4):
        text = random_output(root, rng)
        yield text
        yield from (mutated(text, rng) for _ in range(4))


def without_call_ids(text: str) -> str:
    """A text without its call ids, which theirs has no place for."""
    return re.sub(r"\[CALL_ID\][0-9A-Za-z]{9}(?=\[ARGS\])", "", text)


def told_apart(text: str) -> bool:
    """Where the two differ on purpose.

    They want some text, thought or call, where we allow silence; they let blanks stand beside markers, where a model
    writes none, and behind arguments more of them than one or two line breaks; and they let text spell the end token,
    which a parser would take for it.
    """
    rest = re.sub(r"\A\[THINK\].*?\[/THINK\]", "", text, flags=re.DOTALL)
    behind = r"(?:\Z|\[TOOL_CALLS\])"
    blanks = re.search(rf"(?:\[TOOL_CALLS\]|\[ARGS\])\s|\s\[ARGS\]|[}}](?!\n{{1,2}}{behind})\s+{behind}", text)
    return not rest or "[THINK][/THINK]" in text or blanks is not None or "</s>" in text


@pytest.mark.parametrize("parallel", [True, False])
@pytest.mark.parametrize("choice", ["auto", "required", "none"])
def test_agrees(choice: str, parallel: bool) -> None:
    fmt = toolgram.get_format("mistral_v11")
    engine = Llguidance(vocabulary())
    # Without parallel calls theirs lets no text stand before a call of any tool but the first: `text? (a) | (b)`.
    tools = TOOLS if parallel else TOOLS[:1]
    made = fmt.export(
        "llguidance", tools, choice, parallel, special_tokens=IDS, text_before_calls=True, length_limits=True
    )
    assert "<[256]>" in made.text or choice == "none"
    ours, other = engine.compile(made.text), engine.compile(theirs(choice, parallel, tools))

    def accepts(grammar: str, tokens: list[int]) -> bool:
        matcher = engine.module.LLMatcher(engine.tokenizer, grammar, log_level=0)
        return bool(matcher.try_consume_tokens(tokens) == len(tokens) and matcher.is_accepting())

    agreed = {True: 0, False: 0}
    for text in outputs(7, tools, tool_choice=choice, parallel_tool_calls=parallel):
        if told_apart(text):
            continue
        mine = accepts(ours, tokens_of(text))
        assert mine == accepts(other, tokens_of(without_call_ids(text))), (mine, text)
        agreed[mine] += 1
    assert agreed[True] > SAMPLES
    assert agreed[False] > 0 or choice == "none"
