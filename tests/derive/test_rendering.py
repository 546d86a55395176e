"""Rendering: what `transformers` renders, and no template that costs more than its bound."""

from __future__ import annotations

import pytest

from tests.tables import table
from tests.work import at_most
from toolgram.derive.errors import TemplateError
from toolgram.derive.rendering import ChatTemplate
from toolgram.limits import MAX_RENDERING, MAX_TEMPLATE


def render(source: str, **kwargs: object) -> str:
    return ChatTemplate(source, "<s>", "</s>", kwargs).render([{"role": "user", "content": "é<b>"}])


@pytest.mark.parametrize(("source", "text"), table(__file__, "renders_as_transformers_does"))
def test_renders_as_transformers_does(source: str, text: str) -> None:
    assert render(source, flag="yes") == text


@pytest.mark.parametrize(
    ("source", "line", "problem"),
    [
        ("\n{% if %}", 2, "Expected an expression"),
        ("{{ 1 | no_such_filter }}", 1, "no_such_filter"),
        ("\n\n{{ a.b.c }}", 3, "'a' is undefined"),
        ("\n{{ raise_exception('roles must alternate') }}", 2, "roles must alternate"),
        ("{% for a in range(99999) if false %}{% endfor %}" * 60, 1, "rounds"),
        ("{% set x = 'a' %}" + "{% set x %}{{ x }}{{ x }}{% endset %}" * 60, 1, "longer"),
        ("{% set l = [1, 2] %}" + "{% set _ = l.extend(l) %}" * 60, 1, "beyond"),
        ("{{ 'a' * 10 ** 10 }}", 1, "longer"),
        ("{{ [0] * 10 ** 10 }}", 1, "longer"),
        ("{{ 'a'.ljust(10 ** 10) }}", 1, "pads"),
        ("{{ 'a' | center(10 ** 10) }}", 1, "pads"),
        ("{{ [('a' * 10 ** 5)] * 10 ** 5 | join }}", 1, ""),
        ("{{ 'x' * 150000 }}" * 12, 1, "renders more than"),
        ("{{ messages.__class__.__mro__ }}", 1, ""),
    ],
)
def test_says_what_is_wrong_and_where_and_soon(
    source: str, line: int, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit of rounds is met, whatever the clock says: a slow machine would meet the limit of time first."""
    for module in ("rendering", "sandbox") if problem == "rounds" else ():
        monkeypatch.setattr(f"toolgram.derive.{module}.CLOCK", lambda: 0.0)
    with at_most(calls=5_000_000), pytest.raises(TemplateError) as caught:
        render(source)
    assert problem in caught.value.problem
    assert caught.value.line == line


def test_bounds_are_bounds() -> None:
    with pytest.raises(TemplateError, match="characters"):
        ChatTemplate("x" * (MAX_TEMPLATE + 1), "", "")
    assert len(render("{{ 'x' * " + str(MAX_RENDERING) + " }}")) == MAX_RENDERING


def test_a_template_that_changes_its_input_changes_a_copy() -> None:
    messages = [{"role": "user", "content": "a"}]
    template = ChatTemplate("{% set _ = messages.append(1) %}{{ messages | length }}", "", "")
    assert template.render(messages) == "2"
    assert messages == [{"role": "user", "content": "a"}]


def test_the_same_rendering_is_done_once() -> None:
    template = ChatTemplate("{{ messages[0].content }}", "", "")
    assert [template.render([{"content": word}]) for word in "aab"] == ["a", "a", "b"]
    assert template.renders == 2
