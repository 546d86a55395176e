"""Families whose values stand in tags, held to what peers' tests expect of them (see `family_cases`), whole and split.

Every row is read as one of the peers reads it, or differs by a rule of ours that is written down with its reason.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import toolgram
from tests.conformance.family_cases import REASONS, Reading, Row, Rule, judge, read, rows

# The classes of vLLM and SGLang and the families of Dynamo that are of a format, the markers of its thoughts, and
# whether the prompt of a row about reasoning has opened one.
THINK = ("<think>", "</think>")
SEED, CHANNEL = ("<seed:think>", "</seed:think>"), ("<|channel>", "<channel|>")
MM = ("<mm:think>", "</mm:think>")
KIMI = ("<|open|>think<|sep|>", "<|close|>think<|sep|>")
FAMILIES: dict[str, tuple[str, tuple[str, str], bool]] = {
    "Glm4MoeDetector": ("glm45", THINK, False),
    "Glm47MoeDetector": ("glm47", THINK, False),
    "Glm47MoeModelToolParser": ("glm47", THINK, False),
    "Glm47MoeParser": ("glm47", THINK, False),
    "Glm47MoeParserReasoningAdapter": ("glm47", THINK, True),
    "glm47": ("glm47", THINK, False),
    "DeepSeekV32EngineToolParser": ("deepseek_v32", THINK, False),
    "DeepSeekV32Parser": ("deepseek_v32", THINK, False),
    "deepseek_v3_2": ("deepseek_v32", THINK, False),
    "DeepSeekV4EngineToolParser": ("deepseek_v4", THINK, False),
    "DeepSeekV4Parser": ("deepseek_v4", THINK, False),
    "deepseek_v4": ("deepseek_v4", THINK, False),
    "DeepSeekV41Parser": ("deepseek_v41", THINK, False),
    "MinimaxM2Parser": ("minimax_m2", THINK, False),
    "MiniMaxM2ReasoningParser": ("minimax_m2", THINK, True),
    "minimax_m2": ("minimax_m2", THINK, False),
    "SeedOssParser": ("seed_oss", SEED, False),
    "SeedOssParserReasoningAdapter": ("seed_oss", SEED, False),
    "MiMoParser": ("mimo", THINK, False),
    "Gemma4EngineToolParser": ("gemma4", CHANNEL, False),
    "Gemma4Parser": ("gemma4", CHANNEL, False),
    "Gemma4ParserReasoningAdapter": ("gemma4", CHANNEL, False),
    "gemma4": ("gemma4", CHANNEL, False),
    "MinimaxM3Parser": ("minimax_m3", MM, False),
    "MinimaxM3ToolParser": ("minimax_m3", MM, False),
    "MiniMaxM3ReasoningParser": ("minimax_m3", MM, False),
    "MiniCPM5XMLToolParser": ("minicpm5", THINK, False),
    "BeamParser": ("beam", THINK, False),
    "FunctionGemmaToolParser": ("functiongemma", THINK, False),
    "Ling3ToolParser": ("ling3", THINK, False),
    "Ling3ParserReasoningAdapter": ("ling3", THINK, True),
    "PoolsideV1ToolParser": ("poolside_v1", THINK, False),
    "KimiK3ReasoningParser": ("kimi_k3", KIMI, False),
    "Qwen3CoderDetector": ("qwen3_coder", THINK, False),
    "Qwen3EngineToolParser": ("qwen3_coder", THINK, False),
    "qwen3_coder": ("qwen3_coder", THINK, False),
}


def _unclosed(row: Row, ours: Reading, theirs: Reading) -> bool:
    """The peer leaves out a value that is not closed."""
    if [name for name, _ in ours.calls] != [name for name, _ in theirs.calls]:
        return False
    pairs = [(mine, other) for (_, mine), (_, other) in zip(ours.calls, theirs.calls, strict=True) if mine != other]
    return all(other == {} and isinstance(mine, dict) for mine, other in pairs)


def _untyped(row: Row, ours: Reading, theirs: Reading) -> bool:
    """The peer gives text where nothing is declared; here a literal is one."""
    mine, other = ([(name, _as_text(arguments)) for name, arguments in each.calls] for each in (ours, theirs))
    return not row.tools and mine == other


def _as_text(value: object) -> object:
    """Values as text at any depth: numbers without zeros before them, nothing as an empty text."""
    if isinstance(value, dict):
        return {key: _as_text(each) for key, each in value.items()} or ""
    if isinstance(value, list):
        return [_as_text(each) for each in value] or ""
    text = value if isinstance(value, str) else json.dumps(value)
    return text.lstrip("0") or text


def _items(row: Row, ours: Reading, theirs: Reading) -> bool:
    """The peer gives an object with `item` where all elements of a value are items."""
    return not row.tools and '"item"' in json.dumps(theirs.calls) and '"item"' not in json.dumps(ours.calls)


def _kept(row: Row, ours: Reading, theirs: Reading) -> bool:
    """The peer keeps what stands before the place where a call breaks."""
    return len(ours.calls) < len(theirs.calls) and set(map(str, ours.calls)) <= set(map(str, theirs.calls))


def _undeclared(row: Row, ours: Reading, theirs: Reading) -> bool:
    """The peer drops arguments that are not declared."""
    pairs = zip(ours.calls, theirs.calls, strict=False)
    return all(mine[0] == other[0] and mine[1].items() >= other[1].items() for mine, other in pairs)


def _renamed(row: Row, ours: Reading, theirs: Reading) -> bool:
    """The peer has a table of functions that a model is known to mistake for others."""
    declared = {tool["function"]["name"] for tool in row.tools or ()}
    return bool(ours.calls) and not declared & {name for name, _ in ours.calls}


def _seams(row: Row, ours: Reading, theirs: Reading) -> bool:
    return ours.calls == theirs.calls and "".join(ours.content.split()) == "".join(theirs.content.split())


def _stand_ins(row: Row, ours: Reading, theirs: Reading) -> bool:
    """As in `family_cases`, where the tokens stand inside of what they cut in two."""
    return "<bos>" in row.text and ours.calls in (theirs.calls, ())


def _broken(row: Row, ours: Reading, theirs: Reading) -> bool:
    """The peer makes a call of what has no name that could be read, or of a string that is not closed."""
    return ours.calls != theirs.calls and set(map(str, ours.calls)) < set(map(str, theirs.calls))


OURS: tuple[tuple[Rule, str], ...] = (
    (_unclosed, "a value that is not closed ends where its call does; peers drop it"),
    (_untyped, "where nothing is declared, a value that is a literal is one; peers give text"),
    (_seams, "text before and after a call is joined by one space"),
    (
        _stand_ins,
        "`<bos>` and `<eos>` are tokens of the test's own tokenizer, which no model of the family has",
    ),
    (_broken, "what has no name, or a string that is not closed, is no complete call"),
    (_items, "where nothing is declared, elements that are all called `item` are a list"),
    (_kept, "a call that breaks is no complete call"),
    (_undeclared, "an argument that is not declared is given as it is written"),
    (_renamed, "a name that no tool has is given as it is written"),
)


def prompt(row: Row, markers: tuple[str, str], opened: bool) -> str:
    """What the prompt has written: the opener of a thought, where the text has only its closer."""
    opener, closer = markers
    begun = closer in row.text and opener not in row.text
    return opener if begun or (opened and row.kind == "reason" and opener not in row.text) else ""


@pytest.mark.parametrize("family", FAMILIES)
def test_every_row_is_read_as_a_peer_reads_it_or_by_a_rule(family: str, shared: Path) -> None:
    name, markers, opened = FAMILIES[family]
    fmt = toolgram.get_format(name)
    verdicts: Counter[str] = Counter()
    for row in rows(shared, {family: name}):
        if row.tools and isinstance(row.tools[0], str):
            continue  # what the recording made of a mock
        prefix = prompt(row, markers, opened)
        ours = read(fmt, row, prefix)
        for by in (1, 3):
            assert read(fmt, row, prefix, by) == ours, row.id
        verdict = judge(row, ours)
        if verdict == "?":
            verdict = next((why for rule, why in OURS for each in row.peers.values() if rule(row, ours, each)), "?")
        verdicts[verdict] += 1
        assert verdict != "?", (row.id, row.text, ours, dict(row.peers))
    assert verdicts, "no row is of this family"
    assert set(verdicts) <= {"", *(reason for _, reason in (*REASONS, *OURS))}
