"""The shipped format of a family is taken for a template that writes its calls, and its recoveries apply."""

from __future__ import annotations

from dataclasses import replace

import pytest

import toolgram
from tests.derive.test_shapes import calls_of, report_of
from toolgram.derive import candidates
from toolgram.derive.analysis import analyse_compiled
from toolgram.derive.candidates import Candidate, Near, choose, near_formats, read_as_is
from toolgram.derive.messages import write_messages
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.result import DiffAnalysisResult, Tokens
from toolgram.derive.text_skeleton import turn_ends


def analysed(source: str) -> DiffAnalysisResult:
    template = ChatTemplate(source, "", "")
    result = analyse_compiled(template)
    result.written = write_messages(template, result)
    return result


END = "<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
HEAD = "{% for m in messages %}<|{{ m.role }}|>{{ m.content if m.content }}"
EACH = "{% for c in m.tool_calls %}@{% endfor %}"
JSON = '{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments|tojson }}}'
HERMES = HEAD + EACH.replace("@", f"<tool_call>\n{JSON}\n</tool_call>") + END
OTHER_BLANKS = HEAD + EACH.replace("@", f"<tool_call>{JSON.replace(': ', ':')}</tool_call>") + END
OTHER_TAGS = HEAD + EACH.replace("@", f"<my_call>{JSON}</my_call>") + END
MISTRAL = (
    HEAD + "{% if m.tool_calls %}" + EACH.replace("@", "[TOOL_CALLS]{{ c.function.name }}[ARGS]"
    "{{ c.function.arguments|tojson }}") + "{% endif %}" + END
)  # fmt: skip
KIMI_CALL = (
    "<|tool_call_begin|>functions.{{ c.function.name }}:{{ loop.index0 }}<|tool_call_argument_begin|>"
    "{{ c.function.arguments|tojson }}<|tool_call_end|>"
)
KIMI = (
    HEAD + "{% if m.tool_calls %}<|tool_calls_section_begin|>" + EACH.replace("@", KIMI_CALL)
    + "<|tool_calls_section_end|>{% endif %}" + END
)  # fmt: skip


@pytest.mark.parametrize(
    ("template", "shipped", "habit"),
    [
        (HERMES, "hermes", "<function=f>\n<parameter=a>\nx\n</parameter>\n</function>"),
        (OTHER_BLANKS, "hermes", "<function=f>\n<parameter=a>\nx\n</parameter>\n</function>"),
        (MISTRAL, "mistral_v11", '[TOOL_CALLS][{"name": "f", "arguments": {"a": "x"}}]'),
        (
            KIMI,
            "kimi_k2",
            '<|tool_call_begin|>f:0<|tool_call_argument_begin|>{"a": "x"}<|tool_call_end|><|tool_calls_section_end|>',
        ),
    ],
)
def test_what_only_the_family_does_is_read(template: str, shipped: str, habit: str) -> None:
    fmt = toolgram.derive_format(template)
    report = report_of(fmt)
    assert report.shipped == shipped
    assert report.ok, str(report)
    assert f"the shipped format {shipped}: it is near the template" in str(report)
    assert calls_of(fmt.parse(habit)) == [("f", {"a": "x"})]


def test_the_template_is_kept() -> None:
    """Its prompt, and the token that ends its turns, which the shipped format does not know."""
    fmt = toolgram.derive_format(HERMES, eos_token="<|finis|>", name="mine")
    assert (fmt.name, report_of(fmt).shipped) == ("mine", "hermes")
    for end in ("<|end|>", "<|finis|>", "<|im_end|>"):
        assert fmt.parse(f"Hello.{end}").content == "Hello."
    assert toolgram.get_format("hermes").parse("Hello.<|end|>").content == "Hello.<|end|>"


def test_no_format_is_near_without_its_markers() -> None:
    result = analysed(OTHER_TAGS)
    assert near_formats(result, turn_ends(result, Tokens())) == []
    report = report_of(toolgram.derive_format(OTHER_TAGS))
    assert (report.shipped, report.asked) == (None, ())


def test_one_that_reads_otherwise_is_not_taken() -> None:
    """An answer in tags of its own, which Hermes takes for text."""
    tagged = HERMES.replace("{{ m.content if m.content }}", "{% if m.content %}<say>{{ m.content }}</say>{% endif %}")
    fmt = toolgram.derive_format(tagged)
    report = report_of(fmt)
    assert report.shipped is None
    assert report.asked[0].startswith("hermes, which is near: content")
    assert "not taken:" in str(report)
    assert report.to_dict()["asked"] == list(report.asked)
    assert fmt.parse("<say>Hello.</say>").content == "Hello."


def test_a_form_that_is_read_by_a_repair_only_is_not_recognised() -> None:
    """Calls without the outer tag are a habit of models; here the template writes them."""
    call = (
        "<function={{ c.function.name }}>\n{% for k, v in c.function.arguments.items() %}<parameter={{ k }}>\n"
        "{{ v if v is string else v|tojson }}\n</parameter>\n{% endfor %}</function>"
    )
    report = report_of(toolgram.derive_format(HEAD + EACH.replace("@", call) + END))
    assert report.shipped is None
    assert any("by a repair, unusual_form" in each for each in report.asked)


def test_the_order_in_which_formats_are_asked() -> None:
    exact = Near("a", written=2, strange_ends=1, names=3)
    blanks = Near("b", written=1, strange_ends=1, names=9)
    known_end = Near("c", written=1, names=1, other_prompt=True)
    other, fewer = Near("d", own=2, strange=3, names=9), Near("e", own=1, names=9)
    ranks = [each.rank for each in (known_end, exact, blanks, other, fewer)]
    assert ranks == sorted(ranks)
    assert replace(exact, names=4).rank < exact.rank < replace(exact, other_prompt=True).rank
    assert replace(other, strange=2).rank < other.rank


def test_where_two_are_level_none_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    result = analysed(HERMES)
    assert chosen(result)[0].shipped == "hermes"
    level = [Near("hermes", written=2), Near("deepseek_r1", written=2)]
    monkeypatch.setattr(candidates, "near_formats", lambda *_: level)
    taken, said = chosen(result)
    assert taken.shipped is None
    assert said == ["hermes and deepseek_r1, as they read all messages alike"]


def test_the_candidate_that_reads_most_is_taken() -> None:
    """A shipped format that fails is still taken where the derived one fails more often, and not where it is level."""
    result = analysed(HERMES)
    wrong = replace(result.written[0], output="<tool_call>")
    result.written = (wrong, *result.written[1:])
    assert chosen(result, "mistral_v3")[0].shipped == "hermes"
    assert chosen(result, "hermes")[0].shipped is None


def chosen(result: DiffAnalysisResult, derived: str = "qwen3_coder") -> tuple[Candidate, list[str]]:
    fmt = toolgram.get_format(derived)
    return choose(result, Tokens(), lambda: Candidate(fmt, read_as_is(fmt, result)))


def test_the_files_are_only_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearness asks for texts; formats are loaded for what is near only."""
    result = analysed(HERMES)
    asked: list[str] = []
    monkeypatch.setattr(candidates, "adapted", lambda name, behind: asked.append(name))
    chosen(result)
    assert asked
    assert set(asked) < {"hermes", "deepseek_r1", "ernie45", "kimi_vl", "qwen3_coder", "mimo", "glm45", "glm47"}
