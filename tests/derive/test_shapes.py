"""Shapes of templates that need more than a comparison: what is read for each of them, and what the report says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import toolgram
from tests.derive.turns import calls_of, derived, report_of, source, template_of
from tests.own_format import load_own
from tests.streams import assert_same_however_split, merged, run, statuses
from tests.tables import table
from toolgram.call_ids import random_call_ids
from toolgram.check import check_format
from toolgram.derive.conversation import EITHER


@pytest.mark.parametrize("name", ["python_bare_words", "python_no_commas", "python_all_quoted"])
def test_python_calls_are_read_as_python_whatever_history_prints(name: str) -> None:
    fmt = derived(name)
    marker = "<|calls|>" if name == "python_all_quoted" else ""
    message = fmt.parse(marker + """[look_up(city="Paris", days=2, tags=['a', True]), ping()]""")
    assert calls_of(message) == [("look_up", {"city": "Paris", "days": 2, "tags": ["a", True]}), ("ping", {})]
    assert message.content is None
    report = report_of(fmt)
    assert not report.ok
    assert any("they are read as Python" in each for each in report.unexplained)
    with pytest.raises(toolgram.FormatError):
        toolgram.derive_format(source(name), strict=True)


@pytest.mark.parametrize(
    ("text", "content"), table(__file__, "blanks_that_the_template_writes_before_content_are_no_content")
)
def test_blanks_that_the_template_writes_before_content_are_no_content(text: str, content: str | None) -> None:
    fmt = derived("blank_before_content")
    assert report_of(fmt).ok
    assert 'turn_start: " "' in fmt.machine_text
    for prefix in (None, "", "user: Hm\nAssistant:"):
        assert fmt.parse(text, prefix=prefix).content == content
        parser = fmt.parser(prefix=prefix)
        events = [event for character in text for event in parser.feed(character)] + parser.close()
        assert (parser.message.content, "".join(event.source for event in events)) == (content, text)


def test_blanks_before_content_in_a_snapshot() -> None:
    fmt = derived("blank_before_content")
    (parser := fmt.parser()).feed(" ")
    again = fmt.restore(json.loads(json.dumps(parser.snapshot())))
    again.feed("Hello")
    assert (again.close(), again.message.content) == ([], "Hello")


def test_what_ends_the_users_message_is_no_part_of_the_answer() -> None:
    fmt = derived("separated_turns")
    assert (report_of(fmt).ok, report_of(fmt).found.content, fmt.parse("\nFine.").content) == (True, "plain", "Fine.")


def test_tags_that_are_made_of_several_tokens() -> None:
    """What closes the turn behind the last part is no content, whether or not the server has cut its last token."""
    fmt = derived("tags_of_tokens")
    report = report_of(fmt)
    assert report.ok, str(report)
    assert report.found.markers.reasoning_end == "<|end|>musing<|mid|>"
    assert report.found.markers.content_start == "<|begin|>reply<|mid|>"
    thought = "Hm.<|end|>musing<|mid|>"
    reply = "<|begin|>reply<|mid|>Yes.<|end|>reply<|mid|>"
    uses = (
        '<|begin|>uses<|mid|><|begin|>use tool="f"<|mid|>{"a": 1}<|end|>use<|mid|><|end|>uses<|mid|><|end|>turn<|mid|>'
    )
    for end in ("", "<|over|>"):
        message = fmt.parse(thought + reply + uses + end)
        assert (message.reasoning, message.content, calls_of(message)) == ("Hm.", "Yes.", [("f", {"a": 1})])
    off = fmt.parse("Yes.<|end|>reply<|mid|><|end|>turn<|mid|>", prefix="<|begin|>reply<|mid|>")
    assert (off.reasoning, off.content) == (None, "Yes.")


@pytest.mark.parametrize("call", table(__file__, "calls_that_are_nearly_json_are_read_as_they_are_printed"))
def test_calls_that_are_nearly_json_are_read_as_they_are_printed(call: str) -> None:
    fmt = toolgram.derive_format(template_of(re.sub("NAME|ARGUMENTS", r"$\g<0>", call)))
    assert report_of(fmt).ok, str(report_of(fmt))
    assert calls_of(fmt.parse(call.replace("NAME", "f").replace("ARGUMENTS", '{"a": 1}'))) == [("f", {"a": 1})]


STRINGS = table(__file__, "strings")
VALUES: list[dict[str, Any]] = [{}, {"a": 1, "b": 'x "y" \\ \n\u00e9'}, {"a": {"b": ["<call>", {}]}}]


@pytest.mark.parametrize("call", STRINGS)
def test_arguments_as_a_json_string_outside_json(call: str) -> None:
    """They become the object, however the text is split; an object as it is, is read as well."""
    shape = call.replace("NAME", "$NAME").replace("ARGUMENTS", "{{ c.function.arguments|tojson|tojson }}")
    fmt = toolgram.derive_format(template_of(shape))
    assert report_of(fmt).ok, str(report_of(fmt))
    assert check_format(fmt, 4).ok
    for value in VALUES:
        for written in (*(json.dumps(json.dumps(value, ensure_ascii=each)) for each in EITHER), json.dumps(value)):
            text = "Yes.\n" + call.replace("NAME", "f.g").replace("ARGUMENTS", written).replace("{{ c.id }}", "x1") * 2
            message = assert_same_however_split(fmt, text)
            assert (message.content, calls_of(message)) == ("Yes.", [("f.g", value)] * 2), written
            assert message.anomalies == []
            assert calls_of(fmt.reference_parse(text)) == [("f.g", value)] * 2


@pytest.mark.parametrize(("written", "status"), table(__file__, "a_string_that_is_cut_off_or_wrong"))
def test_a_string_that_is_cut_off_or_wrong(written: str, status: str | None) -> None:
    fmt = derived("string_behind_name")
    text = f"[TOOL] f: {written}"
    message = assert_same_however_split(fmt, text)
    assert [each for _, each in statuses(message)] == ([status] if status else [])
    assert (message.content is None) == (status in ("truncated", "complete"))
    whole = merged(run(fmt, [text])[0])
    for at in range(len(text)):
        parser = fmt.parser(call_ids=random_call_ids(seed=7))
        begun = parser.feed(text[:at])
        again = fmt.restore(json.loads(json.dumps(parser.snapshot())), call_ids=random_call_ids(seed=7))
        assert merged([*begun, *again.feed(text[at:]), *again.close()]) == whole, at


# --- shapes that were gaps: each is read, or its reason is in the report, in the words of the page -----------------

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "read-any-model.md"


def derived_of(row: dict[str, Any]) -> toolgram.Format:
    """The format that is derived from the template of a row of `test_shapes.yaml`."""
    content = row.get("turn", row.get("content", "$CONTENT"))
    template = template_of(row.get("call", ""), content, row.get("before", ""), row.get("after", ""))
    return toolgram.derive_format(template, eos_token="<|end|>")


def rows(kind: str) -> pytest.MarkDecorator:
    """The parameters of a test: the rows of this kind."""
    found = table(__file__, kind)
    return pytest.mark.parametrize("row", found.values(), ids=found.keys())


@rows("escaped")
def test_what_is_escaped_comes_back(row: dict[str, str], tmp_path: Path) -> None:
    """The two files say how it is escaped; they load, and `check` has nothing to say."""
    fmt = derived_of(row)
    report = report_of(fmt)
    assert report.ok, (report.failed, report.unexplained)
    assert f"tags: [{row['tags']}]" in fmt.machine_text
    checked = check_format(load_own(tmp_path, fmt.grammar_text, fmt.machine_text))
    assert checked.ok, [each for each in checked.findings if not each.ok]


@rows("failing")
def test_what_is_encoded_does_not_come_back(row: dict[str, str]) -> None:
    assert report_of(derived_of(row)).failed


@rows("read")
def test_a_shape_that_was_a_gap_is_read(row: dict[str, Any]) -> None:
    fmt = derived_of(row)
    assert report_of(fmt).ok, (report_of(fmt).failed, report_of(fmt).unexplained)
    for text, *meant in row.get("outputs", ()):
        message = assert_same_however_split(fmt, text)
        assert [message.content, message.reasoning, [call.name for call in message.tool_calls]] == meant


@rows("named")
def test_a_shape_that_is_not_read_has_its_reason_in_the_report_and_on_the_page(row: dict[str, str]) -> None:
    report = report_of(derived_of(row))
    assert any(row["reason"] in each for each in report.unexplained), report.unexplained
    assert row["reason"] in " ".join(PAGE.read_text(encoding="utf-8").split())
