"""The contract, clauses 1 to 7, over every format: what is true of any text, however it is split into deltas.

Strategy: texts come from `tests.strategies` (well-formed, broken, noise, mentions, unicode); each test is one clause.
Clause 5 (prompt) has a file of its own, and so have clause 7 (linear and bounded), and the machine as a model.
"""

import json
from collections.abc import Iterator
from itertools import accumulate

import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import toolgram
from tests import streams
from tests.generators.alphabet import contexts, critical_alphabet
from tests.generators.calls_in_halves import around_value, simple_call
from tests.generators.suite_cases import SUITE, expected
from tests.properties.selection import every_format, is_tagged
from tests.strategies import chunkings, declarations, drawn, outputs, well_formed
from tests.streams import CUT_SIZES, calls_of, check_events, check_message, cut, in_order, merged, run, without_ids
from toolgram.check.reference import gist
from toolgram.check.symbols import parser_of_symbols
from toolgram.events import Content, Dropped, Event, Reasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from toolgram.message import Message
from toolgram.spec.data import TEXT

TOOLS_OF_TURNS = json.loads((SUITE / "tools.json").read_text(encoding="utf-8"))["search"]
REASONS = st.sampled_from([None, "stop", "length", "tool_calls", "content_filter", ""]) | st.text(max_size=8)


# -------------------------------------------- 1 conservation, 2 chunk invariance, 3 the stream is the whole, 6 total


@every_format
@given(data=st.data())
def test_any_output_is_read_the_same_however_it_is_split_and_none_of_it_is_lost(name: str, data: st.DataObject) -> None:
    """One text for these clauses, as to make a text costs more than to read it."""
    fmt, text = toolgram.get_format(name), drawn(data, name)
    tools, reason, strict = data.draw(declarations(name)), data.draw(REASONS), data.draw(st.booleans())
    events, message = run(fmt, [text], tools=tools, finish_reason=reason, strict=strict)
    check_events(events, text)
    check_message(message, events)
    for chunks in [*(cut(text, size) for size in CUT_SIZES[1:]), data.draw(chunkings(text))]:
        streamed, streamed_message = run(fmt, chunks, tools=tools, finish_reason=reason, strict=strict)
        check_events(streamed, text)
        assert (merged(streamed), streamed_message) == (merged(events), message)
    parsed = fmt.parse(text, tools, "", reason, strict)
    assert (parsed.content, parsed.reasoning) == (message.content, message.reasoning)
    assert (parsed.finish_reason, parsed.anomalies) == (message.finish_reason, message.anomalies)
    assert calls_of(parsed) == calls_of(message)
    statuses = [call.status for call in message.tool_calls]
    follows = "length" if "truncated" in statuses else "tool_calls" if "complete" in statuses else "stop"
    assert message.finish_reason == (follows if reason is None else reason)


@every_format
@given(data=st.data())
def test_markers_and_separators_are_one_event_each_however_split(name: str, data: st.DataObject) -> None:
    """A marker that arrives in five pieces is still one Dropped event, unmerged. After the turn, text is dropped as it
    arrives."""
    fmt = toolgram.get_format(name)
    text = data.draw(well_formed(name)).text
    note(f"text: {text!r}")
    whole = _dropped(run(fmt, [text])[0])
    for size in CUT_SIZES[1:]:
        assert _dropped(run(fmt, cut(text, size))[0]) == whole


def _dropped(events: list[Event]) -> list[Event]:
    """What was dropped: each event, and what came after the turn as one."""
    late = [each for each in events if isinstance(each, Dropped) and each.why == "after the turn"]
    return [each for each in events if isinstance(each, Dropped) and each not in late] + merged(late)


# ----------------------------------------------------------------------------------- well-formed output is its message


@every_format
@given(data=st.data())
def test_well_formed_output_is_the_message_it_means(name: str, data: st.DataObject) -> None:
    fmt, output = toolgram.get_format(name), data.draw(well_formed(name))
    note(f"text: {output.text!r}")
    if output.turn is None:  # then Lark's own parse says what it means
        anomalies = fmt.parse(output.text, prefix="").anomalies
        assume(all(anomaly.kind not in ("surplus_closer", "unfinished_marker") for anomaly in anomalies))
        assume(len(output.text) < 200)
        parser = parser_of_symbols(fmt)
        parser.feed(output.text)
        parser.close("stop")
        assert gist(fmt.reference_parse(output.text, prefix="")) == gist(parser.message)
        return
    message = fmt.parse(output.text, TOOLS_OF_TURNS, "", "stop")
    calls = [{"name": c.name, "arguments": json.loads(c.arguments), "status": c.status} for c in message.tool_calls]
    found = {"content": message.content, "reasoning": message.reasoning, "calls": calls}
    assert json.dumps(found) == json.dumps(expected(output.turn))  # a text in which 1, 1.0 and True differ


# ---------------------------------------------------------------------------------------------------------- 4 monotone


@every_format
@given(data=st.data())
def test_what_was_told_stays(name: str, data: st.DataObject) -> None:
    """At every delta the message so far is a beginning of the final one, but for a call that fails: it becomes text."""
    text = drawn(data, name)
    fmt = toolgram.get_format(name)
    _, final = run(fmt, [text])
    parser = fmt.parser(prefix="", call_ids=toolgram.call_ids.random_call_ids(seed=7))
    for piece in cut(text, 1 + len(text) // 40):
        parser.feed(piece)
        so_far = parser.message
        assert (final.reasoning or "").startswith(so_far.reasoning or "")
        early, late = in_order(so_far), in_order(final)
        assert len(early) <= len(late)
        for call, told in zip(early, late, strict=False):
            assert (call.id, call.name) == (told.id, told.name)
            assert told.arguments.startswith(call.arguments)
        if not final.malformed:
            assert (final.content or "").startswith(so_far.content or "")


@every_format
@given(data=st.data())
def test_json_arguments_are_the_models_own_bytes(name: str, data: st.DataObject) -> None:
    """Where a delta's source is an object already, its text is the source: nothing is written anew.

    Between tags, where an object may be Python's as well, it is the same object. A notation of the format's own is
    no JSON.
    """
    if toolgram.get_format(name).spec.notation:
        return
    text = data.draw(well_formed(name)).text
    note(f"text: {text!r}")
    at = 0
    for event in merged(run(toolgram.get_format(name), [text])[0]):
        if isinstance(event, ToolCallDelta) and event.source.startswith("{"):
            as_text = text[at - 1 : at] == '"' or event.arguments.startswith('"')
            assert (
                as_text
                or event.arguments == event.source
                or (
                    # after a value that nothing closes, the end of all arguments follows at once
                    is_tagged(name) and json.JSONDecoder().raw_decode(event.arguments)[0] == json.loads(event.source)
                )
            )
        at += len(event.source)


# ------------------------------------------------------------------------------------------------------------- 6 total


@every_format
@given(data=st.data())
def test_any_prefix(name: str, data: st.DataObject) -> None:
    """The generation prompt, or any tail of any prompt, moves the machine and gives no event, wherever it ends."""
    whole = data.draw(outputs(name)) + drawn(data, name)
    at = data.draw(st.integers(0, len(whole)))
    prefix, text, reason = whole[:at], whole[at:], data.draw(REASONS)
    fmt = toolgram.get_format(name)
    events, message = run(fmt, [text], prefix=prefix, finish_reason=reason)
    check_events(events, text)
    streamed, streamed_message = run(fmt, cut(text, 1), prefix=prefix, finish_reason=reason)
    assert (merged(streamed), streamed_message) == (merged(events), message)


@every_format
def test_every_symbol_after_every_state_that_the_prompt_leads_to(name: str) -> None:
    """What the prompt has begun has no source of its own, in whichever state it ends and whatever follows."""
    fmt = toolgram.get_format(name)
    for prefix in contexts(name):
        for symbol in critical_alphabet(name):
            text = f"{symbol}x:"
            events, _ = run(fmt, [text], prefix=prefix)
            check_events(events, text)
            assert merged(run(fmt, cut(text, 1), prefix=prefix)[0]) == merged(events), (prefix, text)


@every_format
def test_what_the_prompt_says_is_no_text_of_the_turn(name: str) -> None:
    """Also where the end of the prompt might have begun a marker, which the output then refutes."""
    fmt = toolgram.get_format(name)
    initial = fmt.program.initial
    if initial.loops or TEXT not in initial.row:
        return  # text leads nowhere
    for marker in fmt.program.literals.values():
        for at in range(1, len(marker)):
            parser = fmt.parser(prefix=f"Words {marker[:at]}")
            begun = parser.snapshot()
            if begun["state"] == initial.name and begun["buffer"] == marker[:at]:
                parser.feed("\n")
                assert parser.snapshot()["state"] != initial.row[TEXT].dest.name, marker[:at]


@every_format
def test_a_call_that_the_prompt_has_begun(name: str) -> None:
    """A forced tool choice writes the beginning of a call into the prompt; the call is whole all the same."""
    fmt = toolgram.get_format(name)
    text, arguments = simple_call(name)
    (meant,) = fmt.parse(text, prefix="").tool_calls
    before, _ = around_value(name)
    for at in range(len(before) + 1):
        for size in CUT_SIZES:
            events, message = run(fmt, cut(text[at:], size), prefix=text[:at])
            check_events(events, text[at:])
            found = [(each.name, json.loads(each.arguments), each.status) for each in message.tool_calls]
            assert (found, message.content) == ([(meant.name, arguments, "complete")], None), text[:at]


@every_format
@given(data=st.data())
def test_a_call_cut_anywhere_is_never_complete(name: str, data: st.DataObject) -> None:
    """Cut at every position: a call is complete only when all its arguments were there, and then it stays.

    A value between tags that nothing says was cut off ends with the output, so there the output is said to be cut off.
    """
    text = data.draw(well_formed(name)).text
    note(f"text: {text!r}")
    fmt = toolgram.get_format(name)
    whole_events, final = run(fmt, [text])
    reason = "length" if is_tagged(name) else data.draw(st.sampled_from([None, "length"]))
    ends = [at for at, event in _with_ends(whole_events) if isinstance(event, ToolCallEnd)]
    places = {*range(0, len(text), max(1, len(text) // 25)), *ends, *(end - 1 for end in ends if end)}
    for at in sorted(places):
        events, message = run(fmt, [text[:at]], finish_reason=reason)
        check_events(events, text[:at])
        statuses = [call.status for call in message.tool_calls]
        finished = statuses.count("complete")
        assert statuses == ["complete"] * finished + ["truncated"] * (len(statuses) - finished), at
        assert calls_of(message)[:finished] == calls_of(final)[:finished], at
        if len(statuses) > finished + 1:  # in an open thought, which may go on: they are all that it ends with
            assert run(fmt, [text[:at]], finish_reason="stop")[1].tool_calls[finished].status == "complete", at
        elif len(statuses) > finished and not _is_quoted(final, start := _start_of_call(events, finished)):
            # Where a name may be all of a call, one that is cut off is shown, without arguments (P5).
            cut_off = message.tool_calls[finished]
            there = next(each for end, each in _with_ends(whole_events) if start < end)
            if not cut_off.arguments and isinstance(there, Content | Reasoning):
                continue  # what follows the name makes it text
            whole = final.tool_calls[finished]
            assert whole.name == cut_off.name or (whole.name.startswith(cut_off.name) and cut_off.arguments == "{}"), at
            assert whole.arguments.startswith(cut_off.arguments) or cut_off.arguments == "{}", at


def _start_of_call(events: list[Event], index: int) -> int:
    """The place in the output at which the name of a call is."""
    starts = ((end - len(each.source), each) for end, each in _with_ends(events))
    return next(at for at, each in starts if isinstance(each, ToolCallStart) and each.index == index)


def _with_ends(events: list[Event]) -> Iterator[tuple[int, Event]]:
    """Each event, and the place in the output at which it ends."""
    return zip(accumulate(len(each.source) for each in events), events, strict=True)


def _is_quoted(final: Message, at: int) -> bool:
    """Whether the whole output only quotes what is there: the thought went on."""
    quoted = (each for each in final.anomalies if each.kind == "quoted_call")
    return any(each.start <= at < each.start + len(each.text) for each in quoted)


# ------------------------------------------------------------------------------------------------- special tokens by id


@every_format
@given(data=st.data())
def test_no_ids_after_a_delta_are_ids_that_are_no_markers(name: str, data: st.DataObject) -> None:
    """An empty list says that nothing special was emitted, as other ids do; only None leaves it to the text."""
    fmt = toolgram.get_format(name)
    special = {text: 1_000 + at for at, text in enumerate(fmt.program.special.values())}
    text = drawn(data, name)
    chunks = data.draw(chunkings(text))
    told = []
    for ids in ([], [1]):
        parser = fmt.parser(prefix="", special_tokens=special)
        events = [event for chunk in chunks for event in parser.feed(chunk, token_ids=ids)] + parser.close()
        check_events(events, text)
        told.append(without_ids(merged(events)))
    assert told[0] == told[1]


# ------------------------------------------------------------------------------- streams share nothing, ids are theirs


@every_format
@given(data=st.data())
def test_two_streams_do_not_disturb_each_other(name: str, data: st.DataObject) -> None:
    fmt = toolgram.get_format(name)
    texts = data.draw(outputs(name)), data.draw(outputs(name))
    alone = [merged(without_ids(run(fmt, [text])[0])) for text in texts]
    parsers = fmt.parser(prefix=""), fmt.parser(prefix="")
    together: tuple[list[Event], list[Event]] = ([], [])
    for at in range(max(map(len, texts))):
        for text, parser, events in zip(texts, parsers, together, strict=True):
            events += parser.feed(text[at : at + 1])
    for parser, events in zip(parsers, together, strict=True):
        events += parser.close()
    assert [merged(without_ids(events)) for events in together] == alone


LONE_SURROGATES = ('{"\\uDC00"', '{"name": "\\ud800"', '[{"na\\uDFFFme": 1', '{"name": "f", "parameters": "\\uD83D"')


@every_format
@pytest.mark.parametrize("tail", LONE_SURROGATES)
def test_half_a_character_is_no_error(name: str, tail: str) -> None:
    """A lone surrogate, escaped, is JSON by its grammar and no text in UTF-8."""
    fmt = toolgram.get_format(name)
    head = fmt.example.partition("{")[0]
    for text in (tail, head + tail, f"{head}{tail}, 1}}"):
        assert streams.assert_same_however_split(fmt, text).finish_reason in ("stop", "length", "tool_calls")
