"""Where a family has a shipped format and a template, given or fetched by `make templates`: derivation takes the
shipped format, or says why not, and it reads what is rendered as the format does that is made from the analysis."""

from __future__ import annotations

import json
from functools import cache

import pytest

import toolgram
from tests.conformance import unseen
from tests.conformance.roundtrip import DATA, Row, by_template, canonical, read_rows, real_templates, run_row
from tests.derive.test_shapes import report_of
from tests.properties.selection import quarter
from toolgram.derive.analysis import analyse
from toolgram.derive.deriving import read_format
from toolgram.derive.errors import TemplateError
from toolgram.derive.result import Tokens
from toolgram.derive.synthesis import synthesise
from toolgram.errors import FormatError
from toolgram.formats import Format

VLLM = "tool_chat_template_"
FAMILIES = {
    "Apertus-8B-Instruct": "apertus", "ByteDance-Seed-OSS": "seed_oss", "GLM-4.6": "glm45", "GLM-4.7-Flash": "glm47",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use": "cohere_command3", "Kimi-K2-Instruct": "kimi_k2",
    "Kimi-K2-Thinking": "kimi_k2", "moonshotai-Kimi-K2": "kimi_k2", "MiniMax-M2": "minimax_m2",
    "Mistral-Small-3.2-24B-Instruct-2506": "mistral_v11", "mistralai-Ministral-3-14B-Reasoning-2512": "mistral_v11",
    "unsloth-mistral-Devstral-Small-2507": "mistral_v11", "mistralai-Mistral-Nemo-Instruct-2407": "mistral_v3",
    "NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": "qwen3_coder", "Qwen3-Coder": "qwen3_coder",
    "StepFun3.5-Flash": "qwen3_coder", "NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use": "hermes",
    "Qwen-QwQ-32B": "hermes", "deepseek-ai-DeepSeek-V3.1": "deepseek_v31",
    "ibm-granite-granite-3.3-2B-Instruct": "granite_3", "meta-llama-Llama-3.1-8B-Instruct": "llama3_json",
    "meta-llama-Llama-3.2-3B-Instruct": "llama3_json", "meta-llama-Llama-3.3-70B-Instruct": "llama3_json",
    "Apriel-1.6-15b-Thinker-fixed": "apriel", "unsloth-Apriel-1.5": "jamba", "Bielik-11B-v3.0-Instruct": "hermes",
    "Cohere2MoE": "cohere_command4", "GigaChat3-10B-A1.8B": "gigachat3", "GigaChat3.1-10B-A1.8B": "gigachat3",
    "Kimi-K3": "kimi_k3", "LFM2-8B-A1B": "lfm2", "LFM2.5-8B-A1B": "lfm2", "LFM2.5-Instruct": "lfm2",
    "MiMo-VL": "hermes", "MiniMax-M1": "minimax_m1", "MiniMax-M3": "minimax_m3",
    "NousResearch-Hermes-3-Llama-3.1-8B-tool_use": "hermes", "NVIDIA-Nemotron-Nano-v2": "nemotron_v2",
    "Qwen-Qwen2.5-7B-Instruct": "hermes", "Qwen-Qwen3-0.6B": "hermes", "Qwen3.5-4B": "qwen3_coder",
    "Reka-Edge": "hermes", "Spark2.5": "spark25", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek_v3",
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek_v3", "deepseek-ai-DeepSeek-V3.2": "deepseek_v32",
    "deepseek-ai-DeepSeek-V4": "deepseek_v4", "deepseek-ai-DeepSeek-V4-Flash-0731": "deepseek_v4",
    "fireworks-ai-llama-3-firefunction-v2": "phi4_mini", "google-gemma-4-31B-it": "gemma4",
    "google-gemma-4-31B-it-interleaved": "gemma4", "ibm-granite-granite-4.0": "hermes",
    "ibm-granite-granite-4.1": "hermes", "inclusionai-ling-3.0-flash": "ling3", "llama-cpp-deepseek-r1": "deepseek_v3",
    "meetkai-functionary-medium-v3.2": "functionary_v3_2", "muse-glimmer": "muse", "openai-gpt-oss-120b": "gpt_oss",
    "openbmb-MiniCPM5-1B": "minicpm5", "poolside-Laguna-S-2.1": "poolside_v1", "poolside-Laguna-XS-2.1": "poolside_v1",
    "poolside-Laguna-XS.2": "poolside_v1", "tencent-Hy3": "hy_v3", "upstage-Solar-Open-100B": "solar_open",
    f"{VLLM}apertus": "apertus", f"{VLLM}deepseekr1": "deepseek_v3", f"{VLLM}deepseekv3": "deepseek_v3",
    f"{VLLM}deepseekv31": "deepseek_v31", f"{VLLM}functiongemma": "functiongemma", f"{VLLM}gemma4": "gemma4",
    f"{VLLM}glm4": "glm45", f"{VLLM}granite": "granite_3", f"{VLLM}granite_20b_fc": "granite_20b_fc",
    f"{VLLM}hermes": "hermes", f"{VLLM}hunyuan_a13b": "hunyuan_a13b", f"{VLLM}internlm2_tool": "internlm2",
    f"{VLLM}llama3.1_json": "llama3_json", f"{VLLM}llama3.2_json": "llama3_json",
    f"{VLLM}llama4_json": "llama3_json", f"{VLLM}phi4_mini": "llama3_json",
    f"{VLLM}llama3.2_pythonic": "llama4_pythonic", f"{VLLM}llama4_pythonic": "llama4_pythonic",
    f"{VLLM}gemma3_pythonic": "llama4_pythonic", f"{VLLM}toolace": "llama4_pythonic",
    f"{VLLM}mistral": "mistral_v3", f"{VLLM}mistral3": "mistral_v3", f"{VLLM}mistral_parallel": "mistral_v3",
    f"{VLLM}qwen3coder": "qwen3_coder", f"{VLLM}xlam_llama": "xlam", f"{VLLM}xlam_qwen": "xlam",
}  # fmt: skip

# Templates whose family is not taken, and what the report says of it.
NOT_TAKEN = {
    "NVIDIA-Nemotron-Nano-v2": "nemotron_v2, which is near: content and a call",
    "LFM2.5-8B-A1B": "lfm2, which is near: code",
    "deepseek-ai-DeepSeek-R1-Distill-Llama-8B": "deepseek_v3, which is near: one call",  # it closes no section of one
    "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B": "deepseek_v3, which is near: content and a call",
    f"{VLLM}deepseekv3": "deepseek_v3, which is near: content and a call",
    f"{VLLM}deepseekv31": "deepseek_v31, which is near: one call",
    f"{VLLM}functiongemma": "functiongemma, which is near: one call",
    f"{VLLM}hunyuan_a13b": "hunyuan_a13b, which is near: content",
    f"{VLLM}glm4": "the template tells the model of tools and prints no calls",
    f"{VLLM}gemma3_pythonic": "the template writes its calls like Python, without all quotes and commas",
    f"{VLLM}llama3.2_pythonic": "the template writes its calls like Python, without all quotes and commas",
    f"{VLLM}llama4_pythonic": "the template writes its calls like Python, without all quotes and commas",
    f"{VLLM}toolace": "the template writes its calls like Python, without all quotes and commas",
    f"{VLLM}xlam_llama": "no marker stands in front of a call",
    f"{VLLM}xlam_qwen": "no marker stands in front of a call",
}

# Templates of which the two read some outputs differently, these, and why: where a family is not taken, for what.
BLANKS = "the template writes blanks before an answer, and the shipped format alone does not know of them"
ANSWERS = ["a_content", "a2_content_markup", "o_content_ends_lt", "o2_content_ends_ws"]
NUMBERS = ["b_one_call", "c_two_calls", "g_nested_args", "g3_types", "k_arg_order", "l2_union_int", "l3_union_null"]
NUMBERS += ["n_no_required"]
ROWS = by_template(read_rows())
APART: dict[str, tuple[str, list[str]]] = {
    "ibm-granite-granite-3.3-2B-Instruct": (
        "the template prints no thought and no call, and models write what the shipped format reads",
        [row.case for row in ROWS.get("ibm-granite-granite-3.3-2B-Instruct", ()) if row.case not in ANSWERS],
    ),
    "NVIDIA-Nemotron-Nano-v2": (BLANKS, [*ANSWERS, "d_reasoning_content"]),
    f"{VLLM}deepseekv3": (BLANKS, [*ANSWERS, "f_content_call"]),
    f"{VLLM}functiongemma": (
        BLANKS + "; every value stands between `<escape>`, which the shipped format takes for text",
        [*ANSWERS, *NUMBERS],
    ),
    f"{VLLM}hunyuan_a13b": ("the template writes a word before an answer", ANSWERS),
}
NOT_SYNTHESISED = {"MiniMax-M3"}  # elements in elements: no skeleton writes them
PATHS = real_templates() if DATA.exists() else {}
families = pytest.mark.parametrize(
    "template", quarter([name for name in sorted(FAMILIES) if name in PATHS], "shipped is derived")
)


def tokens_of(template: str) -> Tokens:
    recorded = ROWS.get(template)
    return Tokens(recorded[0].bos_token, recorded[0].eos_token) if recorded else Tokens("<s>", "</s>")


@cache
def derived(template: str) -> Format:
    tokens = tokens_of(template)
    text = PATHS[template].read_text(encoding="utf-8")
    return toolgram.derive_format(text, bos_token=tokens.bos_token, eos_token=tokens.eos_token)


def rows(template: str) -> list[Row]:
    """What was recorded, or is rendered here; nothing of a template that refuses those messages."""
    if template in ROWS:
        return ROWS[template]
    try:
        return list(unseen.rows_of(PATHS[template]))
    except TemplateError:
        return []


def made_from_analysis(template: str) -> Format | None:
    """The format that is written from the analysis, whatever shipped one was taken."""
    tokens = tokens_of(template)
    text = PATHS[template].read_text(encoding="utf-8")
    builder = synthesise(analyse(text, tokens.bos_token, tokens.eos_token, None), "made", tokens)
    try:
        return read_format(builder)
    except FormatError:
        return None


@families
def test_the_family_is_recognised_or_the_report_says_why_not(template: str) -> None:
    report = report_of(derived(template))
    if template not in NOT_TAKEN:
        assert report.shipped == FAMILIES[template], str(report)
        assert f"the shipped format {report.shipped}" in str(report)
    else:
        assert report.shipped is None, f"{template} is recognised now"
        said = [*report.asked, *report.unexplained]
        assert any(each.startswith(NOT_TAKEN[template]) for each in said), str(report)
        assert NOT_TAKEN[template] in str(report)


@families
def test_the_shipped_format_and_the_derived_one_agree(template: str) -> None:
    """On every output of the template. The shipped format is that behind the template, where one was taken."""
    taken = derived(template)
    shipped = taken if report_of(taken).shipped else toolgram.get_format(FAMILIES[template])
    made = made_from_analysis(template)
    if made is None:
        assert template in NOT_SYNTHESISED
        return
    apart = {}
    for row in rows(template):
        one, other = (run_row(fmt, row).got for fmt in (shipped, made))
        assert one is not None
        assert other is not None
        if canonical(one) != canonical(other):
            apart[row.case] = f"{canonical(one)[:200]} instead of {canonical(other)[:200]}"
    assert apart.keys() == {*APART.get(template, ("", []))[1]}, json.dumps(apart, indent=1)


@pytest.mark.skipif(not PATHS, reason="no templates are here")
def test_every_template_with_calls_has_its_family_named() -> None:
    """Of no shipped family: Command R+ (a list behind a word) and Functionary 3.1."""
    of_none = {"CohereForAI-c4ai-command-r-plus-tool_use", "meetkai-functionary-medium-v3.1"}
    found = set()
    for template, path in PATHS.items():
        if template not in FAMILIES:
            tokens = tokens_of(template)
            try:
                result = analyse(path.read_text(encoding="utf-8"), tokens.bos_token, tokens.eos_token, None)
            except TemplateError:
                continue
            found |= {template} if result.prints_calls == "yes" else set()
    assert found <= of_none


def test_the_table_names_formats_that_ship() -> None:
    assert set(FAMILIES.values()) <= set(toolgram.format_names())
    assert set(NOT_TAKEN) <= set(FAMILIES)
