"""Escaped text: what the encoders of templates write comes back, and what is cut off waits."""

import html
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from toolgram.islands.escapes import ESCAPES, escaped

WRITTEN: dict[str, list[Callable[[str], str]]] = {
    "html": [lambda text: str(escape(text)), lambda text: html.escape(text).replace("&#x27;", "&apos;")],
    "xml": [lambda text: str(escape(text))],
    "url": [quote, lambda text: quote(text, safe="").lower() if text.isascii() and text.islower() else quote(text)],
    "string": [lambda text: json.dumps(text)[1:-1], lambda text: json.dumps(text, ensure_ascii=False)[1:-1]],
}
TEXT = st.text(st.sampled_from("&<>\"'%\\/\u00e9\U0001f389\nn#3") | st.characters(exclude_categories=["Cs"]))


@given(TEXT, st.data())
def test_what_is_written_comes_back(text: str, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(WRITTEN)))
    written = data.draw(st.sampled_from(WRITTEN[kind]))(text)
    assert ESCAPES[kind].decoded(written) == text
    for at in range(len(written)):
        cut = ESCAPES[kind].begun(written[:at], 0)
        assert ESCAPES[kind].decoded(written[:cut]) + ESCAPES[kind].decoded(written[cut:]) == text


@given(
    TEXT | st.lists(st.sampled_from(["&", "lt;", "amp;", "<![CDATA[", "]]>"])).map("".join),
    st.sampled_from(["html", "xml"]),
)
def test_what_an_export_writes_comes_back(text: str, kind: str) -> None:
    assert ESCAPES[kind].decoded(escaped(text, kind)) == text


@pytest.mark.parametrize("text", ["&", "&nosuch;", "%", "%zz", "%C3x", "%ED%A0%80", "\\", "\\x", "\\ud83dx"])
def test_what_is_no_token_is_text(text: str) -> None:
    assert [ESCAPES[kind].decoded(text) for kind in ("html", "url", "string")] == [text] * 3
