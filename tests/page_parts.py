"""A part of a page that a command writes: what is between two comments of Markdown."""

from pathlib import Path


def part(page: Path, begin: str, end: str) -> str:
    """What is between `begin` and `end` now, without the blanks around it."""
    return page.read_text(encoding="utf-8").partition(begin)[2].partition(end)[0].strip()


def write_part(page: Path, begin: str, end: str, text: str) -> None:
    """Put `text` between `begin` and `end`; the rest of the page stays. ValueError where the page lacks one of them."""
    before, opened, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not opened or not closed:
        raise ValueError(
            f"{page.name} has no place for what is measured: write {begin} and {end} on lines of their own"
        )
    page.write_text(f"{before}{begin}\n\n{text.rstrip()}\n\n{end}{after}", encoding="utf-8", newline="\n")
