"""How complex the functions of the package are and how long its parts: `python -m tests.complexity` prints it.

Strategy: two measures, because each is blind to something.  Ruff's C901 counts branches; radon counts the words of
conditions as well, and comprehensions.  The ceilings in lines are part of the design: a new mechanism pays for itself
by deleting another.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from radon.complexity import cc_visit

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "toolgram"
MOST_BRANCHES = 10  # by C901
MOST_COMPLEX = 25  # by radon
CEILINGS = {
    ("runtime",): 5_200, ("islands",): 4_800, ("derive",): 6_500, ("export",): 6_000,
    ("spec", "program", "tools"): 6_000, ("integrations",): 3_200, ("cli",): 3_000, ("gateway",): 2_600,
    ("bulk",): 1_900,
}  # fmt: skip
ALL = 43_000


class Function(NamedTuple):
    """A function or a method, with what radon says of it."""

    complexity: int
    file: str  # within the package
    name: str

    def __str__(self) -> str:
        return f"{self.file} {self.name} ({self.complexity})"


def functions() -> list[Function]:
    """Return all functions of the package, the most complex one first."""
    found = [
        Function(block.complexity, path.relative_to(PACKAGE).as_posix(), block.fullname)
        for path in PACKAGE.rglob("*.py")
        for block in cc_visit(path.read_text("utf-8"))
        if block.letter in "FM"  # a class is the sum of its methods
    ]
    return sorted(found, reverse=True)


def branching() -> list[str]:
    """Return the functions above C901's limit, those that the configuration excuses included."""
    command = (sys.executable, "-m", "ruff", "check", "--isolated", "--select", "C901", "--output-format", "json")
    limit = ("--config", f"lint.mccabe.max-complexity={MOST_BRANCHES}")
    result = subprocess.run([*command, *limit, PACKAGE], capture_output=True, text=True)
    return [f"{Path(each['filename']).relative_to(PACKAGE)}: {each['message']}" for each in json.loads(result.stdout)]


def lines() -> dict[str, int]:
    """Return the lines of each part of the package: a folder, or a module at the top."""
    found: dict[str, int] = defaultdict(int)
    for path in PACKAGE.rglob("*.py"):
        found[path.relative_to(PACKAGE).parts[0].removesuffix(".py")] += len(path.read_text("utf-8").splitlines())
    return dict(found)


def main() -> None:
    """Print all measures."""
    measured = functions()
    print(f"functions above {MOST_BRANCHES} by C901: {len(branching())}")
    print(f"functions above {MOST_COMPLEX} by radon: {sum(each.complexity > MOST_COMPLEX for each in measured)}")
    print(f"maximum by radon: {measured[0]}\n")
    parts: dict[str, list[int]] = defaultdict(list)
    for each in measured:
        parts[each.file.partition("/")[0].removesuffix(".py")].append(each.complexity)
    print("mean by radon:")
    for part, numbers in sorted(parts.items()):
        print(f"  {part:14} {sum(numbers) / len(numbers):5.1f}  of {len(numbers):4} functions, at most {max(numbers)}")
    sizes = lines()
    print("\nlines:")
    for names, ceiling in [*CEILINGS.items(), (tuple(sizes), ALL)]:
        size = sum(sizes[name] for name in names)
        shown = " + ".join(names) if ceiling != ALL else "everything"
        print(f"  {shown:24} {size:6,} of {ceiling:6,}{'' if size <= ceiling else f'  ({size - ceiling:+,})'}")


if __name__ == "__main__":
    main()
