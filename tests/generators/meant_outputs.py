"""An output together with the message it means, and the prose around its calls.

Strategy: a well-formed output is built from segments whose meaning is known beforehand (prose, reasoning, calls,
blanks beside markers), so the expected message follows from the construction and not from any parser.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

from tests.generators.values import Json


@dataclass(frozen=True)
class Call:
    """A call as it was written: what it means, and where its text stands.

    `end` is where all its text has been written, `certain` where nothing but a call can have been meant.
    """

    name: str
    arguments: dict[str, Json]
    start: int
    end: int
    certain: int
    id: str | None = None  # the id the message must have; None where any will do


@dataclass(frozen=True)
class Output:
    """A well-formed output and the message it means. `known` is False where only the text is known to be good."""

    text: str
    content: str | None = None
    reasoning: str | None = None
    calls: tuple[Call, ...] = ()
    known: bool = True


@dataclass
class Page:
    """An output being written: keeps the text and its meaning side by side."""

    text: str = ""
    segments: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.text += text

    def prose(self, text: str) -> None:
        self.segments.append(text)
        self.text += text

    def think(self, text: str) -> None:
        self.reasoning.append(text)
        self.text += text

    def call(self, text: str, name: str, arguments: dict[str, Json], id: str | None = None) -> None:
        start = len(self.text)
        self.text += text
        self.calls.append(Call(name, arguments, start, len(self.text), len(self.text), id))

    def output(self) -> Output:
        content = " ".join(self.segments)
        return Output(
            self.text,
            content if content.strip() else None,
            " ".join(self.reasoning) or None,
            tuple(self.calls),
        )


_WORDS = (
    "Sure.",
    "Here is",
    "naïve",
    "你好",
    "👍",
    "a;b",
    "x, y",
    '"quoted"',
    "it's",
    "back\\slash",
    "50%",
    "<b>",
    "1 < 2",
    "\t-",
)
_PROSE: dict[str, tuple[str, ...]] = {
    "llama3_json": ("{searchTool}", '{"a": 1}', "{ return {}; }", "[1, 2]", "<|py", '{"name": "Bingo", "age": 30}'),
    "llama4_pythonic": ("[1, 2, 3]", "items[0]", "f(a=1)", "{}", "[link](there)", "<|py", "['f', {'a': 1}]"),
    "mistral_v3": ("v[1, 2]", "x{}", "[TOOL", 'as in {"name": "f", "arguments": {}}', "items[0]"),
    "mistral_v11": ("[1, 2]", "{}", "[TOOL", "[A", "f{}", '{"a": 1}', "[THIN"),
    "functionary_v3_2": (">> 1", "all", "a >> b", '{"a": 1}', "f\n{}", "<|eot", "python\nprint(1)"),
    "gpt_oss": ("<|chan", "functions.f", "analysis", "<|message", '{"a": 1}', "json", "for <|constrain|>"),
    "granite_3": ("[1, 2]", '[{"a": 1}]', "<|tool", "<thin", "an <response>", "{}", "</think"),
    "qwen3_coder": ("<tool", "</tool_call>", "<function=f", "</parameter>", "<param", "</thin", "{}"),
    "hermes": ("<tool", "</tool_call", '{"a": 1}', "[1, 2]", "<interface>", "</thin", "{}"),
    "lfm2": ("[1, 2]", "[f(a=1)]", "<|tool_call", "items[0]", "<interface>", "</thin", "f()"),
}
BLANKS = st.sampled_from(["", " ", "\n", "  ", "\n\n", " \t\r\n"])
LEAST_ONE_BLANK = st.sampled_from([" ", "\n", "\n\n", " \t\r\n"])


def prose(name: str) -> st.SearchStrategy[str]:
    """Text that is content wherever it stands: no blank at its ends, no character that a seam could claim."""
    words = st.sampled_from(_WORDS + _PROSE[name])
    gaps = st.sampled_from([" ", " ", "  ", "\n", ". "])
    rows = st.lists(st.tuples(words, gaps), min_size=1, max_size=5)
    return rows.map(lambda row: "".join(word + gap for word, gap in row).strip())


def opening(name: str) -> st.SearchStrategy[str]:
    """Prose that may begin an output: the blanks before it touch no marker."""
    return st.tuples(BLANKS, prose(name)).map("".join)


# ------------------------------------------------------------------------------------------------------------- writers


def think(draw: st.DrawFn, page: Page, name: str, opening_tag: str, closing_tag: str) -> bool:
    """Perhaps some reasoning in its tags; whether there is any."""
    thinking = draw(st.booleans())
    if thinking:
        page.write(opening_tag + draw(BLANKS))
        page.think(draw(prose(name)))
        page.write(draw(BLANKS) + closing_tag)
    return thinking


def say(draw: st.DrawFn, page: Page, name: str) -> None:
    """Prose: where nothing stands before it, blanks that begin it belong to it; elsewhere they touch a marker."""
    if page.text:
        page.write(draw(BLANKS))
        page.prose(draw(prose(name)))
    else:
        page.prose(draw(opening(name)))
