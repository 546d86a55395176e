"""CHANGELOG.md: by release and kind, one line for each change, and notes for the version that is released."""

import re
from pathlib import Path

import pytest

import toolgram
from tests import commits
from tests.release.notes import notes

KINDS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
LONGEST = 160  # characters of a line


def test_every_change_is_one_short_line_below_a_release_and_a_kind(root: Path) -> None:
    lines = (root / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("## "))
    for line in filter(None, lines[first:]):
        known = re.fullmatch(r"## (Unreleased|\d+\.\d+\.\d+( - \d{4}-\d\d-\d\d)?)|### (\w+)|- .+[.:;]", line)
        assert known, line
        assert known[3] is None or known[3] in KINDS, line
        assert len(line) <= LONGEST, line


def test_the_released_version_has_notes() -> None:
    assert notes(toolgram.__version__).startswith("### ")


def test_a_version_without_notes_is_no_release() -> None:
    with pytest.raises(SystemExit, match="no notes for 9"):
        notes("9.9.9")


# --- what `make commits` asks of a commit ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subject", "body", "words"),
    [
        ("Close values at the next opener", "Values without a closer took the next call.", []),
        ("x" * (commits.LONGEST + 1), "Why.", ["more than 72"]),
        ("Close values.", "Why.", ["ends with a period"]),
        ("Close values", "\n", ["no body"]),
    ],
)
def test_a_commit(subject: str, body: str, words: list[str]) -> None:
    found = commits.faults("abc", subject, body)
    assert len(found) == len(words)
    assert all(word in fault for word, fault in zip(words, found, strict=True))
