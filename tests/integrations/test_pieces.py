"""Which token a text comes from, however a server cuts its text and whenever its ids come."""

from collections.abc import Iterable, Iterator, Sequence

import pytest

import toolgram
from tests.streams import CUT_SIZES, calls_of
from toolgram.integrations.pieces import NO_TOKEN, TokenText
from toolgram.runtime.special_tokens import Piece

SPECIAL = {"<tool_call>": 1000, "</tool_call>": 1001, "<|im_end|>": 1002}
BY_ID = {number: text for text, number in SPECIAL.items()}
F, G = (f'<tool_call>{{"name": "{name}", "arguments": {{"a": "ä€😀"}}}}</tool_call>' for name in "fg")
QUOTED = f"Schön: {F} 😀"


class Bytes:
    """A tokenizer with a token for each byte, so that few tokens are whole characters. `trims` is the habit of some to
    leave out the blank with which a text begins."""

    def __init__(self, trims: bool = False) -> None:
        self.trims = trims

    def decode(self, ids: Sequence[int]) -> str:
        said = b"".join(BY_ID[each].encode() if each in BY_ID else bytes([each]) for each in ids)
        text = said.decode(errors="replace")
        return text.removeprefix(" ") if self.trims else text


def spelled(text: str) -> list[int]:
    return [*text.encode()]


def meant(text: str) -> list[int]:
    """The ids of a call, whose markers are tokens."""
    return [SPECIAL["<tool_call>"], *spelled(text[11:-12]), SPECIAL["</tool_call>"]]


IDS = [*spelled(QUOTED), *meant(G), *spelled("\n"), SPECIAL["<|im_end|>"]]
Deltas = Iterable[tuple[str, list[int]]]


def served(ids: Sequence[int], size: int, held: int = 0) -> Iterator[tuple[str, list[int]]]:
    """The deltas of a server that says `size` tokens at once, and holds back half a character and `held` more."""
    said, text = 0, ""
    for at in range(0, len(ids), size):
        text = Bytes().decode(ids[: at + size])
        certain = len(text.removesuffix("\N{REPLACEMENT CHARACTER}")) - held
        yield text[said : max(said, certain)], [*ids[at : at + size]]
        said = max(said, certain)
    yield text[said:], []


def read(deltas: Deltas, tokens: TokenText) -> toolgram.Message:
    """The message of a stream, as a plug-in reads it."""
    parser = toolgram.get_format("hermes").parser(special_tokens=SPECIAL)
    for text, ids in deltas:
        pieces = tokens.cut(text, ids)
        parser.feed(text, ids) if pieces is None else parser.feed(pieces)
    parser.close("stop")
    return parser.message


@pytest.mark.parametrize("held", [0, 1, 5, 12, 40])
@pytest.mark.parametrize("size", [*CUT_SIZES[1:], 17, 60, 10_000])
def test_only_the_token_is_a_marker(size: int, held: int) -> None:
    """Half characters, text that is held back, and a quoted call beside a real one."""
    tokens = TokenText(BY_ID, Bytes().decode)
    tokens.at_once = not held
    message = read(served(IDS, size, held), tokens)
    assert message.content == QUOTED
    assert [(call.name, call.status) for call in message.tool_calls] == [("g", "complete")]
    assert not message.anomalies


def test_a_marker_that_comes_alone_is_not_decoded() -> None:
    tokens = TokenText(BY_ID, lambda _: pytest.fail("it was decoded"))
    tokens.at_once = True
    pieces = [tokens.cut(text, ids) for text, ids in served(meant(G), 1)]
    opened, closed, _ = SPECIAL.items()
    assert [each for each in pieces if each] == [[opened], [closed]]


@pytest.mark.parametrize("size", [1, 3, 10_000])
def test_pieces_are_the_text(size: int) -> None:
    tokens, found = TokenText(BY_ID, Bytes().decode), []
    for text, ids in served(IDS, size, held=7):
        pieces = tokens.cut(text, ids)
        pieces = [(text, NO_TOKEN)] if pieces is None else pieces
        assert "".join(part for part, _ in pieces) == text
        found += [(part, number) for part, number in pieces if number != NO_TOKEN and part]
    whole: list[Piece] = []
    for part, number in found:
        if whole and whole[-1][1] == number and number in BY_ID and whole[-1][0] != BY_ID[number]:
            part = whole.pop()[0] + part
        whole.append((part, number))
    assert whole == [(BY_ID[number], number) for number in IDS if number in BY_ID]


@pytest.mark.parametrize("size", [1, 4, 10_000])
def test_tokens_that_a_server_leaves_out_call_nothing(size: int) -> None:
    """Without the text of special tokens, a quoted call is none, whatever ids came."""
    ids = [*meant(G), *spelled(QUOTED)]
    parts = [ids[at : at + size] for at in range(0, len(ids), size)]
    deltas = [(Bytes().decode([each for each in part if each not in BY_ID]), part) for part in parts]
    message = read(deltas, TokenText(BY_ID, Bytes().decode))
    assert message.content == "".join(text for text, _ in deltas)
    assert not message.tool_calls


def test_what_cannot_be_decoded_is_read_by_its_ids() -> None:
    """A tokenizer that says nothing: the ids count where they are unambiguous."""
    for text, ids, calls in ((G, meant(G), ["g"]), (QUOTED + G, IDS[:-2], [])):
        message = read([(text, ids)], TokenText(BY_ID, lambda _: ""))
        assert [call.name for call in message.tool_calls] == calls
        assert [each.kind for each in message.anomalies] == ([] if calls else ["ambiguous_ids"])


BLANK = [*meant(G), *spelled(f" so {F} and "), *meant(G)]


@pytest.mark.parametrize(
    ("deltas", "trims"),
    [
        ([*served(BLANK, 10_000)], True),  # text after a special token is decoded with it
        ([("another text", spelled("text")), ("Hi" + G, meant(G)), *served(IDS, 3, held=4)], False),
    ],
    ids=["a tokenizer that leaves out a blank", "ids after a text that is not theirs"],
)
def test_ids_count_again(deltas: Deltas, trims: bool) -> None:
    message = read(deltas, TokenText(BY_ID, Bytes(trims).decode))
    assert [call.name for call in message.tool_calls] == ["g", "g"]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("toolgram.integrations.pieces.MOST_WAITING_TOKENS", 10)
    tokens = TokenText(BY_ID, Bytes().decode)
    for _ in range(100):
        assert tokens.cut("ab", spelled("ab")) is None
        assert len(tokens._ids) <= 10
    assert calls_of(read([(G, meant(G))], tokens)) == calls_of(toolgram.get_format("hermes").parse(G))
