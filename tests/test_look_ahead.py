"""The expressions that say where a marker has begun, and which marker ends a value."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from toolgram.program.expressions import End, firsts_of, may_begin, over_text, over_value
from toolgram.program.look_ahead import partial_pattern

LITERALS = st.lists(st.text("ab<|", min_size=1, max_size=40), min_size=1, max_size=8)


@given(literals=LITERALS, other=st.text("ab<|", max_size=6))
@example(literals=["<a", "<ab", "<abc>", "<b"], other="<a")
@example(literals=["a" * size for size in range(1, 80)], other="a" * 79)
def test_a_literal_has_begun_where_a_proper_beginning_of_it_ends_the_text(literals: list[str], other: str) -> None:
    begun = {literal[:size] for literal in literals for size in range(1, len(literal))}
    pattern = partial_pattern(literals)
    assert bool(pattern) == bool(begun)
    if begun:
        match = re.compile(rf"(?:{pattern})\Z").match
        assert all(match(text) for text in begun)
        assert all(bool(match(text)) == (text in begun) for text in (*literals, other))


def _in_one(firsts: str, begun: list[str], ends: list[End]) -> re.Pattern[str]:
    """What `over_value` says, as one expression."""
    waits = [*begun, *(end.partial for end in ends if end.partial)]
    groups = [rf"(?:{'|'.join(waits)})\Z" if waits else "(?!)", *(end.whole for end in ends)]
    found = "|".join(groups)
    named = "|".join(f"({each})" for each in groups)
    return re.compile(rf"(?:[^{re.escape(firsts)}]++|(?!{found})[\s\S])*+(?:{named})?+")


@given(
    markers=st.lists(st.text("<a/>", min_size=1, max_size=4).map(lambda text: "<" + text), min_size=1, max_size=5),
    follows=st.lists(st.sampled_from(["", "<", "a", "\\Z"]), min_size=5, max_size=5),
    text=st.text("<a/> ", max_size=30),
)
def test_what_ends_a_value_is_found_as_by_one_expression(markers: list[str], follows: list[str], text: str) -> None:
    ends = []
    for marker, follow in zip(markers, follows, strict=False):
        literal = re.escape(marker)
        ends.append(End(literal, f"{literal} {{0,2}}" if follow else "", f"{literal}(?= {{0,2}}(?:{follow}))"))
    begun = [pattern for marker in markers if (pattern := partial_pattern([marker]))]
    found, wanted = over_value(firsts_of(markers), begun, ends)(text), _in_one("<", begun, ends).match(text)
    assert found is not None
    assert wanted is not None
    assert (found.end(), found.lastindex) == (wanted.end(), wanted.lastindex)
    if found.lastindex:
        assert found.start(found.lastindex) == wanted.start(found.lastindex)


@given(
    markers=st.lists(st.text("ab<", min_size=1, max_size=3), min_size=1, max_size=4), text=st.text("ab< ", max_size=12)
)
@example(markers=["<a"], text="<<a")
@example(markers=["<a"], text="b<")
@example(markers=["<a", "<"], text="<b")
def test_a_marker_begins_nowhere_but_where_its_first_two_characters_stand(markers: list[str], text: str) -> None:
    firsts = firsts_of(markers)
    begins = [at for at in range(len(text)) if any(each.startswith(text[at : at + 2]) for each in markers)]
    begins += [at for at in range(len(text)) if text[at] in markers]
    found = re.compile(may_begin(firsts)).search(text)
    assert (found.start() if found is not None else None) == min(begins, default=None)
    ends = [re.escape(each) for each in markers]
    places = [at for at in range(len(text)) if text.startswith(tuple(markers), at)]
    over = re.compile(over_text(firsts, ends)).match(text)
    assert over is not None
    assert (over.start(over.lastindex) if over.lastindex else None) == min(places, default=None)
