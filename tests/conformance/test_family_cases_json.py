"""Families whose calls are JSON, held to what peers' tests expect of them (see `family_cases`), whole and split.

Every row is read as one of the peers reads it, or differs by a rule of ours that is written down with its reason.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import toolgram
from tests.conformance.family_cases import REASONS, judge, read, rows

# The classes of vLLM and SGLang and the families of Dynamo that are of a format, and what the prompt of a row about
# reasoning has written.
FAMILIES: dict[str, tuple[str, str | None]] = {
    "deepseek_v3": ("deepseek_v3", "<think>"),
    "DeepSeekV3ToolParser": ("deepseek_v3", None),
    "DeepSeekV3ReasoningWithThinkingParser": ("deepseek_v3", "<think>"),
    "deepseek_v3_1": ("deepseek_v31", "<think>"),
    "DeepSeekV31ToolParser": ("deepseek_v31", None),
    "kimi_k2": ("kimi_k2", None),
    "kimi_k25": ("kimi_k2", "<think>"),
    "KimiK2Parser": ("kimi_k2", None),
    "KimiK2ToolParser": ("kimi_k2", None),
    "KimiK2Detector": ("kimi_k2", None),
    "ApertusToolParser": ("apertus", None),
    "BaseReasoningFormatDetector": ("deepseek_r1", None),
    "DeepSeekR1Detector": ("deepseek_r1", None),
    "DeepSeekR1ReasoningParser": ("deepseek_r1", None),
    "deepseek_r1": ("deepseek_r1", None),
    "Ernie45ReasoningParser": ("ernie45", None),
    "Ernie45ToolParser": ("ernie45", None),
    "GigaChat3Detector": ("gigachat3", None),
    "Granite20bFCToolParser": ("granite_20b_fc", None),
    "HunyuanA13BReasoningParser": ("hunyuan_a13b", None),
    "HunyuanA13BToolParser": ("hunyuan_a13b", None),
    "Internlm2ToolParser": ("internlm2", None),
    "JambaToolParser": ("jamba", None),
    "KimiDetector": ("kimi_vl", None),
    "LongcatFlashToolParser": ("longcat", None),
    "InklingParser": ("inkling", None),
    "Olmo3PythonicToolParser": ("olmo3", None),
    "Plamo3Parser": ("plamo3", None),
    "xLAMToolParser": ("xlam", None),
    "nemotron_deci": ("nemotron_v2", None),
    "Phi4MiniJsonToolParser": ("phi4_mini", None),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_row_is_read_as_a_peer_reads_it_or_by_a_rule(family: str, shared: Path) -> None:
    name, thinking = FAMILIES[family]
    fmt = toolgram.get_format(name)
    verdicts: Counter[str] = Counter()
    for row in rows(shared, {family: name}):
        prefix = thinking if row.kind == "reason" else None
        ours = read(fmt, row, prefix)
        for by in (1, 3):
            assert read(fmt, row, prefix, by) == ours, row.id
        verdict = judge(row, ours)
        verdicts[verdict] += 1
        assert verdict != "?", (row.id, row.text, ours, dict(row.peers))
    assert verdicts, "no row is of this family"
    assert set(verdicts) <= {"", *(reason for _, reason in REASONS)}
