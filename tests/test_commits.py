"""What `make commits` asks of a commit."""

from __future__ import annotations

import pytest

from tests.commits import LONGEST, faults


@pytest.mark.parametrize(
    ("subject", "body", "words"),
    [
        ("Close values at the next opener", "Values without a closer took the next call.", []),
        ("x" * (LONGEST + 1), "Why.", ["more than 72"]),
        ("Close values.", "Why.", ["ends with a period"]),
        ("Close values", "\n", ["no body"]),
    ],
)
def test_a_commit(subject: str, body: str, words: list[str]) -> None:
    found = faults("abc", subject, body)
    assert len(found) == len(words)
    assert all(word in fault for word, fault in zip(words, found, strict=True))
