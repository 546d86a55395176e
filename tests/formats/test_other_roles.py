"""A model that goes on as somebody else after the end of its turn says nothing more: what follows is dropped.

Strategy: every format that declares messages of other roles, each of these after each token that ends a turn, with a
call in it, which is quoted in no other way.
"""

from itertools import product

import pytest

import toolgram
from tests.generators.calls_in_halves import simple_call
from tests.properties.selection import quarter, some
from tests.streams import assert_same_however_split, calls_of, cut, run
from tests.tables import table

NAMES = toolgram.format_names()

# Their templates write no such message, or one that the model may write as well.
NONE_DECLARED = set(table(__file__, "none_declared"))
DECLARED = [name for name in NAMES if name not in NONE_DECLARED]


def after_turns(name: str) -> list[tuple[str, str]]:
    """What ends a turn and begins a message of another role, and that message alone."""
    program = toolgram.get_format(name).program
    stops = sorted(program.literals[trigger] for trigger in program.stop)
    roles = program.spec.other_roles
    return [(f"{stop}{blanks}", role) for stop in stops for role in roles for blanks in ("", "\n", " \n\n")]


@pytest.mark.parametrize("name", NAMES)
def test_other_roles_are_declared(name: str) -> None:
    assert (toolgram.get_format(name).program.spec.other_roles == ()) == (name in NONE_DECLARED)


@pytest.mark.parametrize("name", quarter(DECLARED, "other roles"))
@pytest.mark.parametrize("before", ["answer", "call", "fence", "thought", "cut"])
def test_a_message_of_another_role_is_dropped(name: str, before: str) -> None:
    """Also after a call that is cut off, unless the end of the turn is text of an argument."""
    fmt, call = toolgram.get_format(name), simple_call(name)[0].removeprefix("<think>")
    texts = {"answer": "Done.", "call": call, "fence": f"```\n{call}\n```", "thought": "<think>Hm.</think>Done."}
    firsts = [texts[before]] if before in texts else some([call[:at] for at in range(1, len(call))], name)[:9]
    for first, (stop, role) in product(firsts, some(after_turns(name), name)):
        expected, text = fmt.parse(first + stop, prefix="", finish_reason="stop"), f"{first}{stop}{role}\nSee {call}"
        said = [expected, fmt.parse(f"{first}{stop}x", prefix="", finish_reason="stop")]
        calls = [([c.arguments for c in each.tool_calls], [c.arguments for c in each.malformed]) for each in said]
        if before == "cut" and stop.strip() in f"{expected.content}{calls}":
            continue
        for reason in ("stop", "length", None):
            message = assert_same_however_split(fmt, text, finish_reason=reason)
            assert (message.content, message.reasoning) == (expected.content, expected.reasoning), text
            assert calls_of(message) == calls_of(expected), text
            assert "after_turn" in [each.kind for each in message.anomalies], text
            assert run(fmt, [text], finish_reason=reason)[0][-1].type == "dropped"


@pytest.mark.parametrize("name", NAMES)
def test_a_closer_after_the_end_of_a_turn_depends_on_no_deltas(name: str) -> None:
    program, call = toolgram.get_format(name).program, simple_call(name)[0]
    for trigger, closer in product(sorted(program.stop), program.surplus):
        text = f"{call}{program.literals.get(trigger, '')}{closer}"
        assert_same_however_split(toolgram.get_format(name), text, finish_reason="stop")


@pytest.mark.parametrize("name", DECLARED)
def test_without_the_end_of_a_turn_it_is_text(name: str) -> None:
    """And so is the end of a turn that anything else follows."""
    fmt = toolgram.get_format(name)
    for stop, role in after_turns(name):
        for text in (f"I say {role} and go on.", f"I say {stop}and then {role} and go on."):
            _, message = run(fmt, cut(text, 1), finish_reason="stop")
            assert "go on." in (message.content or ""), text
