"""Every anomaly and every error has a page of its own, and the page says what happens."""

import importlib
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import toolgram
from tests import reference_pages
from tests.help_page import PAGE, help_page
from toolgram.anomalies import KINDS, Anomaly
from toolgram.bulk.report import report
from toolgram.bulk.summary import Summary
from toolgram.cli.app import app
from toolgram.errors import ToolgramError
from toolgram.gateway.errors import Refusal, error_body
from toolgram.showing import reading


def test_the_pages_are_current() -> None:
    made = reference_pages.pages()
    assert {place for folder in {each.parent for each in made} for place in folder.glob("*.md")} == set(made)
    stale = [place.name for place, text in made.items() if place.read_text(encoding="utf-8") != text]
    assert stale == [], "run make docs"


@pytest.mark.parametrize("kind", sorted(reference_pages.ANOMALIES))
def test_an_example_has_its_anomaly_and_no_other(kind: str) -> None:
    assert [each.kind for each in reference_pages.read(reference_pages.ANOMALIES[kind]).anomalies] == [kind]


def test_every_kind_has_a_page() -> None:
    assert {*reference_pages.ANOMALIES, *reference_pages.DERIVED_ONLY} == set(KINDS)


def classes_of_errors() -> set[type[ToolgramError]]:
    """The class of every error, with all modules imported that define one."""
    defines = re.compile(r"^class \w+\((?:.*\b)?(?:ToolgramError|TemplateError|BadFile)\b.*\):", re.M)
    for path in reference_pages.PACKAGE.rglob("*.py"):
        if defines.search(path.read_text(encoding="utf-8")):
            importlib.import_module(".".join(path.relative_to(reference_pages.PACKAGE.parent).with_suffix("").parts))
    found, left = set(), [ToolgramError]
    while left:
        found.add(each := left.pop())
        left += [every for every in each.__subclasses__() if every.__module__.startswith("toolgram.")]
    return found


def test_every_error_has_a_page_and_names_it(root: Path) -> None:
    """The address is that of the page on the site, where each page is a folder."""
    classes = classes_of_errors()
    assert len(classes) >= 12
    assert classes == {each.error for each in reference_pages.ERRORS}
    for error in classes:
        assert (root / "docs" / f"{error.page.removesuffix('/')}.md").is_file(), error
        raised = error.__new__(error)
        ToolgramError.__init__(raised, "no")
        assert raised.__notes__ == [f"See {error.page}"]
        assert raised.said.endswith(f" (see {error.page})")


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_anomaly_names_its_page(root: Path, kind: str) -> None:
    anomaly = Anomaly(kind, 0, "x", why=KINDS[kind])
    assert (root / "docs" / f"{anomaly.page.removesuffix('/')}.md").is_file()
    assert anomaly.said == f"{KINDS[kind]} (see {anomaly.page})"


def test_where_people_read_an_anomaly_its_page_is_named(root: Path) -> None:
    """Explanations, `parse --pretty`, `try`, the summary and the report of a log, the pane of a text."""
    shown = reference_pages.ANOMALIES["unclosed_envelope"]
    page = "(see reference/anomalies/unclosed_envelope/)"
    fmt = toolgram.get_format(shown.format)
    told = fmt.explain(shown.output)
    assert page in str(told.anomalies[0])
    assert told.to_dict()["anomalies"][0]["page"] == "reference/anomalies/unclosed_envelope/"
    for command in (["explain", "-f", shown.format], ["parse", "-f", shown.format, "--pretty"], ["try"]):
        result = CliRunner().invoke(app, command, input=shown.output, env={"COLUMNS": "200"})
        assert page in " ".join(result.stdout.split()), command
    summary = Summary()
    summary.saw(fmt.parse(shown.output), "log", 1)
    assert page in summary.lines()[2]
    assert page in report(summary, "log")
    assert page in reading(fmt, shown.output)["anomalies"][0]["said"]


def test_where_people_read_an_error_its_page_is_named() -> None:
    result = CliRunner().invoke(app, ["parse", "-f", "hermess"], input="")
    assert result.stderr.endswith("(see reference/errors/UnknownFormat/)\n")
    assert CliRunner().invoke(app, ["parse"], input="").stderr.endswith("(see reference/cli/)\n")
    for api in ("chat", "responses", "messages"):
        assert error_body(api, Refusal("no"))["error"]["message"] == "no (see reference/errors/Refusal/)"


def test_the_page_is_the_help_of_each_command() -> None:
    assert PAGE.read_text(encoding="utf-8") == help_page(), "write it again: python -m tests.help_page"
