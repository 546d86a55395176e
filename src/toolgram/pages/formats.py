"""The page of a format, made from its two files: `toolgram docs`.

Strategy: a page contains only what the files, the parser and `toolgram check` say, so it is always current.  It is a
pure function of the format, without dates, timings, paths or random ids: the same format gives the same bytes, and
`stale_pages` compares bytes.  It is plain Markdown with tables and one picture, an SVG file beside the page, which
GitHub and MkDocs render alike. If the two would read model text in a table cell differently, the text is escaped as
HTML.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from toolgram.call_ids import random_call_ids
from toolgram.diagrams import trigger_in_words
from toolgram.errors import ToolgramError
from toolgram.events import Event
from toolgram.formats import Format, format_names, get_format
from toolgram.late_imports import install_line
from toolgram.spec.data import END, Spec, State, Transition
from toolgram.spec.declarations import short_name

# What text in a state means; None is structure.
MEANINGS: dict[str | None, str] = {
    "content": "content",
    "reasoning": "reasoning",
    "name": "the name of a call",
    "call_id": "the id of a call",
    "arguments": "arguments",
    "argument_key": "the key of an argument",
    "value": "the value of an argument",
    "ignored": "a value that no call needs",
    "malformed": "malformed",
    None: "structure",
}
DRAWN = str.maketrans({"\n": "\N{SYMBOL FOR NEWLINE}", "\t": "\N{SYMBOL FOR HORIZONTAL TABULATION}"})
DRAWN_BLANKS = DRAWN | {ord(" "): "\N{SYMBOL FOR SPACE}"}


class Finding(Protocol):
    """One result of `toolgram check`."""

    name: str
    ok: bool
    detail: str


Prove = Callable[[Format], Sequence[Finding]]


def proved(fmt: Format) -> Sequence[Finding]:
    """Return the results of `toolgram check`. Raises ToolgramError if the automata library is missing."""
    try:
        from toolgram.check import check_format
    except ModuleNotFoundError as error:
        raise ToolgramError(
            f"a page lists what check proved, and check needs {error.name}\n  remedy: {install_line('automata')}"
        ) from None
    return check_format(fmt).findings


def page(fmt: Format, prove: Prove = proved) -> str:
    """Return the page of a format, as Markdown."""
    sections = (
        _head(fmt),
        _example(fmt),
        _grammar(fmt),
        _machine(fmt),
        _held(fmt.spec),
        _notes(fmt),
        _findings(fmt.spec, prove(fmt)),
    )
    return "\n".join(line for section in sections for line in (*section, "")).rstrip() + "\n"


def page_name(fmt: Format) -> str:
    """Return the file name of the page of a format."""
    return f"{fmt.name}.md"


def picture_name(fmt: Format) -> str:
    """Return the file name of the picture on the page of a format."""
    return f"{fmt.name}.svg"


def write_pages(formats: Iterable[Format], folder: Path, prove: Prove = proved) -> list[Path]:
    """Write a page and its picture for each format, the folder too if need be, and return the paths of the pages.

    Raises OSError, and ToolgramError if a package is missing.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for fmt in formats:
        for name, text in _files(fmt, prove).items():
            (folder / name).write_text(text, encoding="utf-8", newline="\n")
        written.append(folder / page_name(fmt))
    return written


def stale_pages(formats: Iterable[Format], folder: Path, prove: Prove = proved) -> list[Path]:
    """Return the pages and pictures that are missing or out of date."""
    return [
        folder / name
        for fmt in formats
        for name, text in _files(fmt, prove).items()
        if _bytes_of(folder / name) != text.encode("utf-8")
    ]


def _files(fmt: Format, prove: Prove) -> dict[str, str]:
    return {page_name(fmt): page(fmt, prove), picture_name(fmt): fmt.diagram("svg")}


def _bytes_of(place: Path) -> bytes | None:
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return None


# --- the sections -------------------------------------------------------------------------------------------------


def _head(fmt: Format) -> Iterator[str]:
    yield f"# {fmt.title}"
    yield ""
    yield "<!-- Written by `toolgram docs` from the format's two files; what is changed here by hand is lost. -->"
    yield ""
    yield f"Format `{fmt.name}`, read from `{_file(fmt.spec.grammar_path)}` and `{_file(fmt.spec.machine_path)}`."
    if fmt.models:
        yield ""
        yield f"Written by: {', '.join(fmt.models)}."
    if _ships(fmt):
        yield ""
        yield "[How to read this page](README.md)"


def _ships(fmt: Format) -> bool:
    """Return whether its page is in the folder of the README that explains pages."""
    return fmt.name in format_names() and get_format(fmt.name) is fmt


def _example(fmt: Format) -> Iterator[str]:
    if not fmt.example:
        return
    yield "## An output, and the event of each character"
    yield ""
    yield _lined(_fenced(fmt.example, "text"))
    yield ""
    yield "| characters | event | a program gets |"
    yield "|---|---|---|"
    for owner, source, given in _stretches(fmt):
        cells = (
            _code(_drawn(source, owner)) if source else "none",
            owner,
            _code(given.translate(DRAWN)) if given else "",
        )
        yield f"| {' | '.join(cells)} |"


def _stretches(fmt: Format) -> list[tuple[str, str, str]]:
    """Return (kind, characters, what a program gets) of each event; neighbours of one kind are joined."""
    parser = fmt.parser(call_ids=random_call_ids(fmt.spec.call_ids, seed=0))
    stretches: list[tuple[str, str, str]] = []
    for event in parser.feed(fmt.example) + parser.close("stop"):
        owner, given = _owner(event)
        if stretches and stretches[-1][0] == owner:
            _, source, before = stretches[-1]
            stretches[-1] = (owner, source + event.source, before + given)
        elif event.source or given:
            stretches.append((owner, event.source, given))
    return stretches


def _owner(event: Event) -> tuple[str, str]:
    match event.type:
        case "tool_call_start":
            return f"the name of call {event.index + 1}", event.name
        case "tool_call_delta":
            return f"the arguments of call {event.index + 1}", event.arguments
        case "tool_call_end":
            return f"the end of call {event.index + 1}", event.status
        case "dropped":
            return event.why, ""
        case "malformed":
            return f"malformed: {event.why}", event.text
        case _:
            return event.type, event.text


def _grammar(fmt: Format) -> Iterator[str]:
    yield "## Grammar"
    yield ""
    if fmt.spec.declared:
        names = [f"`{name}`" for name in dict.fromkeys(map(short_name, fmt.spec.declared))]
        yield f"Declared here or in an imported file, and defined by what the machine says: {', '.join(names)}."
        if _ships(fmt):
            yield f"`toolgram grammar {fmt.name} --whole` prints the definitions."
        yield ""
    yield _lined(_fenced(fmt.grammar_text, "lark"))


def _machine(fmt: Format) -> Iterator[str]:
    spec = fmt.spec
    yield "## Machine"
    yield ""
    yield "The path of the format's own examples:"
    yield ""
    yield f"![The path of the examples of {fmt.name} through its machine]({picture_name(fmt)})"
    yield ""
    yield f"`{_file(spec.machine_path)}`, as it is written:"
    yield ""
    yield _lined(_fenced(fmt.machine_text, "yaml"))
    yield ""
    yield '<details markdown="1">'
    yield f"<summary>The whole machine: {len(spec.states)} states, {len(spec.transitions)} transitions</summary>"
    yield ""
    if _ships(fmt):
        yield f"`toolgram diagram {fmt.name} --whole -o {fmt.name}.svg` draws it."
    else:
        yield "`toolgram diagram --whole --grammar X.lark --machine X.yaml -o X.svg` draws it."
    yield ""
    yield "| state | text in it is | held | on | symbol | leads to | does |"
    yield "|---|---|---|---|---|---|---|"
    for state in spec.states.values():
        yield from _rows(spec, state)
    yield ""
    yield "</details>"


def _rows(spec: Spec, state: State) -> Iterator[str]:
    """Yield the transitions of a state; those with the same destination and actions share a row."""
    rows: dict[tuple[str, tuple[str, ...]], list[Transition]] = {}
    for transition in spec.transitions:
        if transition.source == state.name:
            rows.setdefault((transition.dest, transition.actions), []).append(transition)
    first = f"| `{state.name}` | {MEANINGS[state.meaning]} | {'held' if state.held else ''} "
    if not rows:
        yield f"{first}| | | | |"
    for (dest, actions), transitions in rows.items():
        words = ", ".join(dict.fromkeys(_in_words(spec, transition) for transition in transitions))
        symbols = ", ".join(f"`{transition.trigger}`" for transition in transitions)
        leads_to = "itself" if dest == state.name else f"`{dest}`"
        yield f"{first}| {words} | {symbols} | {leads_to} | {', '.join(f'`{action}`' for action in actions)} |"
        first = "| | | "


def _held(spec: Spec) -> Iterator[str]:
    held = [state for state in spec.states.values() if state.held]
    yield "## Where text is held back"
    yield ""
    if not held:
        yield "Only what may be the beginning of a marker, and blanks that may be at a seam."
        return
    yield (
        "Everywhere: what may be the beginning of a marker, and blanks that may be at a seam. "
        "Text that may become a call is held from:"
    )
    yield ""
    for source, transitions in _by_source(spec, lambda source, dest: not source.held and dest.held):
        yield f"* `{source}`, on {_listed(spec, transitions)}"
    yield ""
    yield "| held state | waits for | is certain on |"
    yield "|---|---|---|"
    for state in held:
        leaving = [t for t in spec.transitions if t.source == state.name]
        waits = [t for t in leaving if t.trigger != END and spec.states[t.dest].held]
        commits = [t for t in leaving if not spec.states[t.dest].held]
        yield f"| `{state.name}` | {_listed(spec, waits)} | {_listed(spec, commits)} |"
    yield ""
    yield (
        "Anything else rejects it: its characters become text of the state in which holding began. So does "
        "the end of the output, if it is not listed."
    )


def _by_source(spec: Spec, wanted: Callable[[State, State], bool]) -> list[tuple[str, list[Transition]]]:
    found: dict[str, list[Transition]] = {}
    for transition in spec.transitions:
        if wanted(spec.states[transition.source], spec.states[transition.dest]):
            found.setdefault(transition.source, []).append(transition)
    return [(name, found[name]) for name in spec.states if name in found]


def _notes(fmt: Format) -> Iterator[str]:
    yield "## Deviations that are accepted"
    yield ""
    for note in fmt.notes:
        yield f"* {note}"
    if not fmt.notes:
        yield "None are declared."


def _findings(spec: Spec, findings: Sequence[Finding]) -> Iterator[str]:
    yield "## What `toolgram check` proved"
    yield ""
    for finding in findings:
        detail = finding.detail
        for path in (spec.grammar_path, spec.machine_path):
            detail = detail.replace(path, _file(path))
        verdict = "" if finding.ok else "**Not proved:** "
        yield f"* {verdict}{_prose(finding.name)}: {_prose(' '.join(detail.split()))}"


# --- Markdown -----------------------------------------------------------------------------------------------------


def _file(path: str) -> str:
    return Path(path).name


def _listed(spec: Spec, transitions: Iterable[Transition]) -> str:
    return ", ".join(dict.fromkeys(_in_words(spec, transition) for transition in transitions))


def _in_words(spec: Spec, transition: Transition) -> str:
    """Return a trigger in words, or as code if it is text of the model."""
    words = trigger_in_words(spec, transition)
    key = words.removeprefix("key ")
    if key != words:
        return f"key {_code(key)}"
    terminal = transition.trigger in spec.terminals and words != "blanks"
    return _code(words) if terminal or not words.replace(" ", "").isalpha() or words == "null" else words


def _drawn(text: str, owner: str) -> str:
    """Return text with visible line ends, and with visible blanks if they are dropped or at an edge."""
    unseen = text.isspace() or owner in ("marker", "syntax", "whitespace at a seam") or text != text.strip()
    return text.translate(DRAWN_BLANKS if unseen else DRAWN)


def _code(text: str) -> str:
    """Return text as code in a table cell. GitHub and MkDocs disagree on pipes and backticks inside backticks."""
    if not set(text) & set("|`\\"):
        return f"`{text}`"
    return f"<code>{_spelled(text)}</code>"


def _prose(text: str) -> str:
    """Return prose in which only pairs of backticks are Markdown."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _spelled(text)
    return "".join(_code(part) if index % 2 else _spelled(part) for index, part in enumerate(parts))


def _spelled(text: str) -> str:
    """Return text in which no character is Markdown or HTML."""
    return re.sub(r"[^\w\s.,:;()=/'\"-]", lambda char: f"&#{ord(char[0])};", text)


def _fenced(text: str, language: str) -> list[str]:
    """Return text between fences that are longer than any run of backticks in it."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", text.rstrip("\n"), fence]


def _lined(lines: list[str]) -> str:
    return "\n".join(lines)
