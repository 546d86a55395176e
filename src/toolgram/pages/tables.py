"""Parts of pages that the code writes: the formats that ship, and the vocabulary of machine files.

Strategy: a Markdown file has two comments around each such part. `refreshed` writes what belongs between them, so that
no page differs from the code. A name after the word says which:

    <!-- toolgram formats -->           the table of all formats, with links to the pages beside this one
    <!-- toolgram vocabulary ACTIONS --> a table of `toolgram.spec.vocabulary`: keys, tags, actions, triggers
    <!-- /toolgram formats -->          the end of each, with its own word
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from toolgram.errors import ToolgramError
from toolgram.formats import format_names, get_format
from toolgram.spec import vocabulary
from toolgram.spec.vocabulary import KINDS, Key

_PLACE = re.compile(r"(<!-- toolgram (formats|vocabulary) ?([\w/]*) -->\n).*?(<!-- /toolgram \2 -->)", re.S)


def refreshed(text: str) -> str:
    """Write what belongs into each place of a Markdown text. Raises ToolgramError for a text without a place."""
    if not _PLACE.search(text):
        raise ToolgramError(
            "no place for a table in this file\n"
            "  remedy: write `<!-- toolgram formats -->` and `<!-- /toolgram formats -->` on lines of their own"
        )
    return _PLACE.sub(lambda place: f"{place[1]}\n{_part(place[2], place[3])}\n\n{place[4]}", text)


def _part(what: str, which: str) -> str:
    if what == "formats":
        return "\n".join(_formats())
    table = getattr(vocabulary, which, None) if which.isupper() else None
    if not isinstance(table, Mapping):
        raise ToolgramError(f"{which or 'nothing'}: no table of toolgram.spec.vocabulary, such as ACTIONS")
    return "\n".join(_vocabulary(table))


def _formats() -> Iterator[str]:
    yield "| name | models |"
    yield "|---|---|"
    for name in format_names():
        yield f"| [`{name}`]({name}.md) | {_cell('; '.join(get_format(name).models))} |"


def _vocabulary(table: Mapping[str, Key | str]) -> Iterator[str]:
    keys = any(isinstance(entry, Key) for entry in table.values())
    yield "| key | says | value | an entry |" if keys else "| word | means |"
    yield "|---|---|---|---|" if keys else "|---|---|"
    for word, entry in table.items():
        if isinstance(entry, Key):
            value = f"one of {', '.join(f'`{each}`' for each in entry.one_of)}" if entry.one_of else KINDS[entry.kind]
            required = " (required)" if entry.required else ""
            yield f"| `{word}`{required} | {_cell(entry.says)} | {value} | `{entry.example}` |"
        else:
            yield f"| `{word}` | {_cell(entry)} |"


def _cell(text: str) -> str:
    return re.sub(r"[|*<>\\]", lambda char: f"&#{ord(char[0])};", text)
