"""Where a family has a shipped format and a template, given or fetched by `make templates`: derivation takes the
shipped format, or says why not, and it reads what is rendered as the format does that is made from the analysis."""

import json
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

import toolgram
from tests.conformance.roundtrip import run_row
from tests.conformance.rows import DATA, by_template, canonical, read_rows, real_templates, rendered
from tests.derive.turns import report_of
from tests.properties.selection import quarter
from toolgram.derive.analysis import analyse
from toolgram.derive.deriving import read_format
from toolgram.derive.errors import TemplateError
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import DiffAnalysisResult, Tokens
from toolgram.derive.synthesis import synthesise
from toolgram.errors import FormatError
from toolgram.formats import Format

VLLM = "tool_chat_template_"
_TOLD = json.loads((Path(__file__).parent / "derived_families.json").read_text(encoding="utf-8"))
FAMILIES: dict[str, str] = {template: name for name, known in _TOLD["families"].items() for template in known}

# Templates whose family is not taken, and what the report says of it.
NOT_TAKEN: dict[str, str] = _TOLD["not taken"]

# Templates of which the two read some outputs differently, these, and why: where a family is not taken, for what.
BLANKS = "the template writes blanks before an answer, and the shipped format alone does not know of them"
ANSWERS = ["a_content", "a2_content_markup", "o_content_ends_lt", "o2_content_ends_ws"]
NUMBERS = ["b_one_call", "c_two_calls", "g_nested_args", "g3_types", "k_arg_order", "l2_union_int", "l3_union_null"]
NUMBERS += ["n_no_required"]
ROWS = by_template(read_rows())
APART: dict[str, tuple[str, list[str]]] = {
    "Apriel-1.6-15b-Thinker-fixed": (
        "words of the prompt alone begin a thought, which only the shipped format reads",
        ["d_reasoning_content", "e_reasoning_call", "f2_reason_content_call"],
    ),
    f"{VLLM}gemma4": ("objects in objects have keys without quotes", ["g_nested_args", "l2_union_int"]),
    "ibm-granite-granite-3.3-2B-Instruct": (
        "the template prints no thought and no call, and models write what the shipped format reads",
        [row.case for row in ROWS.get("ibm-granite-granite-3.3-2B-Instruct", ()) if row.case not in ANSWERS],
    ),
    "NVIDIA-Nemotron-Nano-v2": (BLANKS, [*ANSWERS, "d_reasoning_content"]),
    "unsloth-Apriel-1.5": (BLANKS, [*ANSWERS, "d_reasoning_content"]),
    f"{VLLM}deepseekv3": (BLANKS, [*ANSWERS, "f_content_call"]),
    f"{VLLM}functiongemma": (
        BLANKS + "; every value is between `<escape>`, which the shipped format takes for text",
        [*ANSWERS, *NUMBERS],
    ),
    f"{VLLM}hunyuan_a13b": ("the template writes a word before an answer", ANSWERS),
}
NOT_SYNTHESISED = {"MiniMax-M3"}  # elements in elements: no skeleton writes them
PATHS = real_templates() if DATA.exists() else {}
HERE = quarter([name for name in sorted(FAMILIES) if name in PATHS], "shipped is derived")
families = pytest.mark.parametrize("template", HERE)


def tokens_of(template: str) -> Tokens:
    recorded = ROWS.get(template)
    return Tokens(recorded[0].bos_token, recorded[0].eos_token) if recorded else Tokens("<s>", "</s>")


def source(template: str) -> str:
    return PATHS[template].read_text(encoding="utf-8")


def analysed(template: str) -> DiffAnalysisResult:
    tokens = tokens_of(template)
    return analyse(ChatTemplate(source(template), tokens.bos_token, tokens.eos_token))


@cache
def derived(template: str) -> Format:
    tokens = tokens_of(template)
    return toolgram.derive_format(source(template), bos_token=tokens.bos_token, eos_token=tokens.eos_token)


def made_from_analysis(template: str) -> Format | None:
    """The format that is written from the analysis, whatever shipped one was taken."""
    builder = synthesise(analysed(template), "made", tokens_of(template))
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
        assert any(each.startswith(NOT_TAKEN[template]) for each in [*report.asked, *report.unexplained]), str(report)
        assert NOT_TAKEN[template] in str(report)


@families
def test_the_shipped_format_and_the_derived_one_agree(template: str) -> None:
    """On every output of the template. The shipped format is that of the template, if one was taken."""
    taken = derived(template)
    shipped = taken if report_of(taken).shipped else toolgram.get_format(FAMILIES[template])
    made = made_from_analysis(template)
    if made is None:
        assert template in NOT_SYNTHESISED
        return
    apart = {}
    for row in ROWS.get(template) or rendered(PATHS[template]):
        one, other = (run_row(fmt, row).got for fmt in (shipped, made))
        assert one is not None
        assert other is not None
        if canonical(one) != canonical(other):
            apart[row.case] = f"{canonical(one)[:200]} instead of {canonical(other)[:200]}"
    assert apart.keys() == {*APART.get(template, ("", []))[1]}, json.dumps(apart, indent=1)


@pytest.mark.skipif(not PATHS, reason="no templates are here")
def test_every_template_with_calls_has_its_family_named() -> None:
    """Of no shipped family: Command R+ (a list after a word) and Functionary 3.1."""
    found = set()
    for template in PATHS.keys() - FAMILIES.keys():
        with suppress(TemplateError):
            found |= {template} if analysed(template).prints_calls == "yes" else set()
    assert found <= {"CohereForAI-c4ai-command-r-plus-tool_use", "meetkai-functionary-medium-v3.1"}


def test_the_table_names_formats_that_ship() -> None:
    assert set(FAMILIES.values()) <= set(toolgram.format_names())
    assert set(NOT_TAKEN) <= set(FAMILIES)
