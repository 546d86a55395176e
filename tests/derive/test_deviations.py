"""What models write wrong, in derived formats: they read it as shipped formats do."""

import json

import pytest

import toolgram
from tests import streams
from tests.derive.test_deriving import NAMES
from tests.derive.turns import calls_of, derived, report_of, source
from tests.deviations.test_missing_closing_markers import check_missing, kinds, missed
from tests.examples import examples
from tests.properties.selection import quarter
from tests.streams import assert_same_however_split
from toolgram.observing.probes import TOOLS as DECLARED

SOME = quarter(NAMES, "deviations of derived formats")
# Calls that a marker or a separator divides, and whose other outputs have none: one of the examples misses it.
NOISY = {"python_one_by_one", "semicolon"}
BRACKETED = {"list_pairs"}  # behind the bracket that closes a call, no marker is missed


def synthesised(name: str) -> toolgram.Format:
    fmt = derived(name)
    if report_of(fmt).shipped:
        pytest.skip("a shipped format is taken")
    return fmt


@pytest.mark.parametrize("name", SOME)
def test_a_missing_marker_is_told(name: str) -> None:
    """At the end of the output, before the end of the turn, and before text; the calls are complete all the same."""
    fmt = synthesised(name)
    closers = frozenset().union(*missed(fmt).values())
    if name not in NOISY:
        for text in examples(fmt.program):
            assert "unclosed_envelope" not in kinds(fmt, text, "stop")
    if not closers or name in BRACKETED:
        return
    for example in examples(fmt.program)[-1:]:
        text = min((example.rpartition(closer)[0] for closer in closers if len(closer) > 1), key=len, default="")
        meant = [(name, arguments, "complete") for name, arguments, _ in streams.calls_of(fmt.parse(example))]
        if meant and streams.calls_of(fmt.parse(text)) == meant:  # else the marker closes a value as well
            check_missing(fmt, text, meant)


@pytest.mark.parametrize("name", SOME)
def test_what_a_format_shows_is_read(name: str) -> None:
    """The outputs in its file, by which an export writes: they are what models write, not what a template lost."""
    fmt = synthesised(name)
    if fmt.spec.unproven_types:
        return  # one marker closes the values of one type, so an output that has another type does not come back
    messages = [fmt.parse(text, finish_reason="stop") for text in examples(fmt.program)]
    assert not any(message.malformed for message in messages)
    assert all(call.status == "complete" for message in messages for call in message.tool_calls)
    assert any(call.arguments != "{}" for message in messages for call in message.tool_calls) or not messages


@pytest.mark.parametrize("end", ["", "</call>", "</call> Yes.", "</call><call>g(b=2)</call>", "<stop>"])
def test_a_broken_call_without_a_list_misses_no_bracket(end: str) -> None:
    template = source("python_raw_in_markers").replace("v if v is string else v|tojson", "v|tojson")
    fmt = toolgram.derive_format(template, bos_token="<s>", eos_token="</s>")
    message = assert_same_however_split(fmt, f"<call>f(a=Oslo){end}", finish_reason="stop")
    assert [call.name for call in message.malformed] == ["f"]
    assert [(call.name, call.status) for call in message.tool_calls] == [("g", "complete")] * ("g(" in end)
    assert [each.kind for each in message.anomalies] == ["malformed"]


# Thoughts between two markers that are no words, and content without any.
THINKING = ["blank_lines", "own_eos", "percent_markers", "prompt_opens_thought", "switch_opens", "think_always",
            "thinking_closed_when_off", "thinking_opened", "thought_blocks", "thought_with_level", "turn_per_call",
            "python_after_thought", "quoted_in_tags"]  # fmt: skip


@pytest.mark.parametrize("name", THINKING)
def test_a_thought_that_is_closed_or_opened_once_too_often(name: str) -> None:
    fmt = synthesised(name)
    markers = report_of(fmt).found.markers.stripped()
    opening, closing = markers.reasoning_start, markers.reasoning_end
    message = fmt.parse(f"Hm. {closing} Yes.")  # the prompt is not known
    if name == "prompt_opens_thought":
        assert (message.content, message.reasoning, message.anomalies) == ("Yes.", "Hm.", [])
    else:
        assert (message.content, message.reasoning) == ("Hm. Yes.", None)
        assert [each.kind for each in message.anomalies] == ["unopened_reasoning"]
    message = fmt.parse(f"Hm. {closing} Yes.", prefix="")
    assert (message.content, message.reasoning, message.anomalies) == (f"Hm. {closing} Yes.", None, [])
    message = fmt.parse(f"{opening}One {opening} two.{closing}{closing}Yes.", prefix="")
    assert (message.content, message.reasoning, message.anomalies) == ("Yes.", "One two.", [])


ARGUMENTS = '{"place": "Oslo", "limit": 2}'
MEANT = [("find_city", json.loads(ARGUMENTS))]
REPAIRS = [
    '{"place": "Oslo", "limit": 2,}', "{'place': 'Oslo', 'limit': 2}", '{place: "Oslo", limit: 2}',
    '{"place": "Oslo" "limit": 2}', '{"place": "Oslo", "limit": 2 /* two */}',
]  # fmt: skip
# A marker of less than four characters is found in prose as well, and a name in braces may be anything: only calls of
# declared functions are repaired there.
IN_PROSE = {"braces", "corner_brackets", "double_brackets", "list_pairs", "pipes", "semicolon", "unicode_tri",
            "double_curly_name"}  # fmt: skip


def outputs_with_json() -> dict[str, str]:
    """By fixture, an output of one call with these arguments as JSON."""
    found = {}
    for name in SOME:
        fmt = derived(name)
        shown = [] if report_of(fmt).shipped else fmt.machine_dict["format"].get("canonical", [])
        texts = [each if isinstance(each, str) else each["output"] for each in shown]
        texts = [text for text in texts if ARGUMENTS in text and "docs.search" not in text]
        if texts:
            found[name] = texts[-1]
    return found


OUTPUTS = outputs_with_json()


@pytest.mark.parametrize("name", OUTPUTS)
def test_arguments_that_are_wrong_in_one_place(name: str) -> None:
    for written in REPAIRS:
        text = OUTPUTS[name].replace(ARGUMENTS, written)
        if name not in IN_PROSE:
            message = derived(name).parse(text)
            assert calls_of(message) == MEANT, written
            assert "repaired_json" in {each.kind for each in message.anomalies}
        if name != "double_curly_name":
            assert calls_of(derived(name).parse(text, DECLARED)) == MEANT
        if "'" not in written:  # Python's quotes are what such formats have
            assert "complete" not in [call.status for call in derived(name).parse(text, strict=True).tool_calls]


@pytest.mark.parametrize("name", SOME)
def test_the_closing_marker_closes_arguments_that_lack_brackets(name: str) -> None:
    fmt = synthesised(name)
    imports = fmt.machine_dict["machine"].get("import", ())
    for fragment in (each for each in imports if each["fragment"] == "unclosed_json"):
        closer = fmt.program.literals[fragment.get("CALL_END", "CALL_END")]
        for example in examples(fmt.program):
            before, found, behind = example.rpartition(closer)
            meant = calls_of(fmt.parse(example))
            cut = before.rstrip("}] \n")
            if not found or not meant or not before.rstrip().endswith("}") or cut.endswith(("{", "[")):
                continue
            assert calls_of(fmt.parse(cut + closer + behind)) == meant, cut
            assert "unclosed_arguments" in kinds(fmt, cut + closer + behind, "stop")


def test_the_formats_of_a_run_have_what_is_tried() -> None:
    """Calls as JSON, markers that may be missed, and markers that close arguments."""
    formats = [fmt for fmt in map(derived, SOME) if not report_of(fmt).shipped]
    assert len(OUTPUTS) > len(SOME) / 4
    assert sum(bool(missed(fmt)) for fmt in formats) > len(SOME) / 3
    assert sum("unclosed_json" in fmt.machine_text for fmt in formats) > len(SOME) / 8


# --- text in quotes of its own kind whose closing quote is missing --------------------------------------------------

MARKERS = {"own_quotes": ("<|call>", '<|"|>', "<call|>"), "own_nesting": ("<|tool_call>call:", '<|"|>', "<tool_call|>")}


def written(name: str, arguments: str, function: str = "f") -> str:
    opening, quote, closing = MARKERS[name]
    return f"{opening}{function}{{{arguments}}}{closing}".replace("\1", quote)


@pytest.mark.parametrize("name", MARKERS)
@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ("city:\1x", {"city": "x"}),
        ("n:2,city:\1x", {"n": 2, "city": "x"}),
        ("a:\1x\1,b:\1y", {"a": "x", "b": "y"}),
        # A quote that is missing before the next argument makes no other key.
        ("a:\1x,b:\1y\1", None),
        ("a:\1x,b:\1y\1,n:2", None),
        ("a:\1x\1,b:y\1,n:2", None),
    ],
)
def test_the_end_of_the_call_ends_the_text(name: str, arguments: str, meant: dict[str, object] | None) -> None:
    fmt, text, other = derived(name), written(name, arguments), written(name, "city:\1z\1", "g")
    for whole, calls in ((text, [("f", meant)]), (text + other, [("f", meant), ("g", {"city": "z"})])):
        message = assert_same_however_split(fmt, whole, finish_reason="stop")
        if meant is None:
            assert not any(call.name == "f" and call.status == "complete" for call in message.tool_calls)
            continue
        assert (calls_of(message), message.content) == (calls, None)
        assert [each.kind for each in message.anomalies] == ["unclosed_value"]
        strict = fmt.parse(text, strict=True, finish_reason="stop")
        assert "complete" not in [call.status for call in strict.tool_calls]
        assert [call.status for call in assert_same_however_split(fmt, text).tool_calls] == ["truncated"]
