"""The notes of this release: its part of CHANGELOG.md. `make release` writes them to dist/NOTES.md."""

import re
from pathlib import Path

import toolgram

CHANGELOG = Path(__file__).resolve().parents[2] / "CHANGELOG.md"


def notes(version: str) -> str:
    """Return what the changelog says of a version. Raises SystemExit if it says nothing."""
    text = CHANGELOG.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    if found is None or not found[1].strip():
        raise SystemExit(f"CHANGELOG.md has no notes for {version}")
    return found[1].strip() + "\n"


if __name__ == "__main__":
    print(f"# toolgram {toolgram.__version__}\n\n{notes(toolgram.__version__)}", end="")
