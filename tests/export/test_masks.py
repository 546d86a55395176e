"""What an engine accepts, its masks allow: behind every character of an output, each token that is the output's next
characters.

An engine is told what may follow a text. Once for each grammar it decides by that which tokens may go beyond the end of
the text. Where it is told wrong, tokens that end a text and begin a marker are missing in masks; whole outputs are
accepted all the same.
"""

from __future__ import annotations

import pytest

import toolgram
from tests.export.engines import END, Llguidance, Xgrammar, vocabulary
from tests.integrations.cases import TOOLS, TURNS, without_stop
from tests.integrations.writers import WRITERS, Turn, can_write
from tests.properties.selection import every_format

for engine in ("llguidance", "tvm_ffi", "numpy"):
    pytest.importorskip(engine, reason="the engines are not here: make test installs them")

LONGEST = 8  # characters of a token
MOST = 400  # characters of an output
ADDED = (
    Turn("text with marks", content="a < b [c] {d}\n\n", calls=(("get_weather", {"city": "a\n<b>[c]{d} e"}),)),
    Turn("two", reasoning="So <it> is.\n", content="Look.", calls=(("get_time", {"zone": ""}), ("get_time", {}))),
)


@pytest.mark.parametrize("target", ["structural_tag", "ebnf", "llguidance"])
@every_format
def test_masks_have_the_tokens_with_which_an_accepted_output_goes_on(name: str, target: str) -> None:
    if name not in WRITERS:
        pytest.skip("nothing writes this format")
    fmt = toolgram.get_format(name)
    turns = [turn for turn in (*TURNS, *ADDED) if can_write(name, turn)]
    texts = [each for each in (without_stop(fmt, WRITERS[name](turn)) for turn in turns) if len(each) < MOST]
    pieces = sorted({text[at : at + size] for text in texts for at in range(len(text)) for size in range(2, LONGEST)})
    vocab = vocabulary([each for each in pieces if each != END])
    ids = {token: number for number, token in enumerate(vocab.tokens)}
    engine = (Llguidance if target == "llguidance" else Xgrammar)(vocab)
    exported = fmt.export(target, TOOLS, "auto", prefix="").text
    made = engine.compile(exported) if isinstance(engine, Llguidance) else engine.compile(target, exported)
    looked = 0
    for text in texts:
        if not engine.accepts(made, text):
            continue
        matcher = engine.matcher(made)
        for at, character in enumerate(text):
            allowed = set(matcher.allowed().tolist())
            forced = target == "llguidance" and len(allowed) == 1  # then it says one token and no others
            for size in range(2, 2 if forced else min(LONGEST, len(text) - at + 1)):
                token = text[at : at + size]
                assert ids[token.encode()] in allowed, (text[:at], token, text[at + size :])
            assert all(map(matcher.take, character.encode())), (text[:at], character)
        looked += 1
    assert looked, "no output is accepted"
