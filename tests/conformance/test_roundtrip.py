"""What `make conformance` prints figures of, as tests: derived formats give back what real templates wrote.

Strategy: a test per template reads its rows, whole and cut; the figures that must be reached over all of them have a
test of their own. A row that is not exact is a failure unless it is known, with a reason that a page tells.
"""

import io
import tarfile
from functools import cache
from pathlib import Path

import pytest

from tests.conformance import roundtrip, rows
from tests.conformance.fetch_templates import SOURCES, STAMP, unpack
from tests.conformance.roundtrip import CORE, Result, difference, run_template
from tests.conformance.rows import HINT, KNOWN, by_template, canonical, read_rows, real_templates
from tests.derive.turns import report_of
from tests.properties.selection import quarter
from tests.streams import ROOT

ROWS = by_template(read_rows())
REAL = real_templates()
needs_rows = pytest.mark.skipif(not ROWS, reason=HINT)


@cache
def result_of(template: str) -> Result:
    return run_template(REAL[template], ROWS[template])


@needs_rows
@pytest.mark.parametrize("template", ROWS)
def test_template(template: str) -> None:
    result = result_of(template)
    assert not result.error
    for outcome in result.outcomes:
        assert outcome.same_streamed, f"{outcome.row.case}: streamed, it is another message"
        assert outcome.conserved, f"{outcome.row.case}: some of its text is in no event"
        if not outcome.row.known:
            assert outcome.exact, "\n".join([outcome.row.case, outcome.row.output, *difference(outcome)])
        else:
            assert not outcome.exact, f"{outcome.row.case} is exact now: it need not be known any more"


@needs_rows
def test_the_figures_are_reached() -> None:
    results = [result_of(template) for template in ROWS]
    exact, total = map(sum, zip(*(result.exact() for result in results), strict=True))
    assert total == 840
    assert exact >= 0.98 * total
    core = [outcome for result in results for outcome in result.outcomes if outcome.row.case in CORE]
    assert len(core) == 260
    assert [outcome.row for outcome in core if not outcome.exact and not outcome.row.known] == []


@needs_rows
def test_the_page_has_these_figures() -> None:
    """Times differ from run to run and are not compared."""
    text = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
    time = roundtrip.COLUMNS.index("ms")
    told = [line.split(" | ") for line in text.splitlines()]
    for row in roundtrip.table([result_of(template) for template in ROWS]):
        expected = f"| {' | '.join(row)} |".split(" | ")
        shown = next((line for line in told if line[0] == expected[0]), [""] * len(expected))
        shown[time] = expected[time] = ""
        assert shown == expected, "docs/conformance.md is not current; run make conformance"


@pytest.mark.skipif(not REAL, reason="no template is here; `make templates` fetches them")
@pytest.mark.parametrize("template", quarter([*REAL], "roundtrip"))
def test_a_real_template_gives_a_format_that_says_what_it_cannot_read(template: str) -> None:
    """Also of templates without recorded outputs, such as `make templates` fetches."""
    report = report_of(roundtrip.derive_anew(REAL[template].read_text(encoding="utf-8"), "<s>", "</s>"))
    assert report.probes
    assert all(any(probe.problem in warning for warning in report.warnings) for probe in report.failed)


def test_rows_that_are_known_have_a_page() -> None:
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "decisions").glob("*.md"))
    for (template, case), reason in KNOWN.items():
        assert reason, f"why can {template} {case} not be read?"
        assert case in pages, f"docs/decisions does not say why {template} {case} cannot be read"
        assert template in pages, f"docs/decisions does not say why {case} of {template} cannot be read"


def test_without_such_a_template_or_the_rows_it_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if ROWS:
        assert roundtrip.main(["--template", "nobody"]) == 2
        assert "no template has 'nobody' in its name" in capsys.readouterr().err
    monkeypatch.setattr(rows, "DATA", tmp_path / "absent.jsonl")
    assert roundtrip.main([]) == 1
    assert "are absent" in capsys.readouterr().err


def test_equal_messages() -> None:
    assert canonical({"a": 1.0, "b": [2]}) == canonical({"b": [2.0], "a": 1})
    assert canonical({"a": 1}) != canonical({"a": True})
    assert canonical({"a": 1.5}) != canonical({"a": "1.5"})


# --- what `make templates` takes out of a distribution --------------------------------------------------------------

SOURCE = SOURCES[0]
INSIDE = SOURCE.inside


def distribution(place: Path, *names: str) -> Path:
    with tarfile.open(place, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
        link = tarfile.TarInfo(f"package-1/{INSIDE}/link.jinja")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return place


def test_templates_and_nothing_else(tmp_path: Path) -> None:
    """A distribution without templates leaves what is there."""
    inside = ("a.jinja", "README.md", "deeper/b.jinja", "../c.jinja")
    names = [*(f"package-1/{INSIDE}/{name}" for name in inside), "package-1/d.jinja"]
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / "old.jinja").touch()
    with pytest.raises(SystemExit, match="has no templates"):
        unpack([(SOURCE, distribution(tmp_path / "x.tar.gz", "package-1/d.jinja"))], folder)
    assert (folder / "old.jinja").is_file()
    assert {place.name for place in tmp_path.iterdir()} == {"templates", "x.tar.gz"}
    unpack([(SOURCE, distribution(tmp_path / "x.tar.gz", *names))], folder)
    assert {place.name for place in folder.iterdir()} == {"a.jinja", STAMP}
    assert (folder / "a.jinja").read_text(encoding="utf-8") == names[0]
    assert {place.name for place in tmp_path.iterdir()} == {"templates", "x.tar.gz"}
