"""What CONTRIBUTING says of all files: their length, words that are no terms of the field, and the targets of make."""

import json
import re
import shutil
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from tests import prose
from tests.complexity import CEILINGS, MOST_COMPLEX, functions, lines
from toolgram import limits

MOST = 600  # lines
# Parts that have reached their ceiling, and stay below it.
WITHIN = (
    ("islands",), ("derive",), ("export",), ("spec", "program", "tools"), ("integrations",), ("cli",), ("gateway",),
    ("bulk",),
)  # fmt: skip
LONGEST = 140  # characters of a line in grammars and machines
FOLDERS = (
    "src", "tests", "benchmarks", "examples", "suite", "playground/bridge.py", "playground/build.py",
    "hatch_build.py",
)  # fmt: skip
GONE = re.compile(
    r"\b(wreckage|debris|debts?|borrowed|credits?|doubt|leaps?|habits?|drafts?|wish|talk|misfit|refut\w+)\b"
    r"|every cutting",
    re.I,
)


def _python(root: Path) -> list[Path]:
    places = [root / name for name in FOLDERS]
    return [path for each in places for path in ([each] if each.suffix == ".py" else each.rglob("*.py"))]


def test_files_have_fewer_lines_than_the_limit(root: Path) -> None:
    sizes = {path.relative_to(root).as_posix(): len(path.read_text("utf-8").splitlines()) for path in _python(root)}
    assert len(sizes) > 300
    assert {name: size for name, size in sizes.items() if size >= MOST} == {}


def test_no_modules_import_each_other_types_included() -> None:
    """Import-linter reads the imports that run. Those for types count here as well: they are how a reader gets
    lost. The error names a circle, each module of it before one that imports it."""
    graph = grimp.build_graph("toolgram", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 200
    TopologicalSorter(imports).prepare()


def test_limits_are_defined_once(root: Path) -> None:
    """A constant with the name of a limit elsewhere, or its number in an expression for blanks, is a copy."""
    copies = re.compile(r"^_?(?:MAX|MOST|LONGEST)_(?:BLANKS|DEPTH|DIGITS|WORD) = |\\[rns]\]?\{+[01],64\}", re.M)
    sources = [path for path in (root / "src").rglob("*.py") if path.name != "limits.py"]
    assert {path.name: words for path in sources if (words := copies.findall(path.read_text("utf-8")))} == {}


def test_shared_grammars_have_blanks_of_the_same_number(root: Path) -> None:
    blanks = [
        (path.name, line)
        for path in (root / "grammars" / "common").glob("*.lark")
        for line in re.findall(r"^WS: (?!.*\(\?=).*$", path.read_text("utf-8"), re.M)
    ]
    assert len(blanks) >= 6
    assert [each for each in blanks if each[1] != rf"WS: /[ \t\r\n]{{1,{limits.MOST_BLANKS}}}/"] == []


@pytest.mark.parametrize("parts", WITHIN)
def test_a_part_stays_below_its_ceiling(parts: tuple[str, ...]) -> None:
    assert sum(lines()[part] for part in parts) <= CEILINGS[parts]


def test_the_tests_stay_below_their_ceiling() -> None:
    assert sum(len(path.read_text("utf-8").splitlines()) for path in Path(__file__).parent.rglob("*.py")) <= 30_000


def test_functions_are_less_complex_than_the_limit() -> None:
    measured = {f"{each.file} {each.name}": each.complexity for each in functions()}
    assert len(measured) > 2000
    assert {name: number for name, number in measured.items() if number > MOST_COMPLEX} == {}


def test_lines_of_grammars_and_machines_fit_on_a_screen(root: Path) -> None:
    files = [*(root / "grammars").rglob("*.lark"), *(root / "machines").rglob("*.yaml")]
    lines = [(path.name, line) for path in files for line in path.read_text("utf-8").splitlines()]
    assert len(files) > 140
    assert [(name, line) for name, line in lines if len(line) > LONGEST] == []


def test_names_in_grammars_are_whole(root: Path) -> None:
    """A double underscore separates the parts of a name that Lark makes of an import. No file writes one itself."""
    files = (root / "grammars").rglob("*.lark")
    assert {path.name: found for path in files if (found := re.findall(r"\w*__\w*", path.read_text("utf-8")))} == {}


def test_words_that_are_no_terms_do_not_come_back(root: Path) -> None:
    """In names as well: `_` and capitals part the words of a name."""
    pages = (root / "docs").rglob("*.md")
    declared = [*(root / "machines").rglob("*.yaml"), *(root / "grammars").rglob("*.lark")]
    sources = [path for path in _python(root) if path.is_relative_to(root / "src")]
    found = {}
    for path in [*sources, *declared, *pages, root / "README.md", root / "CONTRIBUTING.md"]:
        text = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", path.read_text("utf-8").replace("_", " "))
        if words := {match.group().lower() for match in GONE.finditer(text)}:
            found[path.relative_to(root).as_posix()] = words
    assert found == {}


def test_every_target_of_make_is_explained_and_every_one_that_is_named_exists(root: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):.*## ", (root / "Makefile").read_text("utf-8"), re.M))
    pages = [*(root / "docs").rglob("*.md"), root / "README.md", root / "CONTRIBUTING.md", root / "CHANGELOG.md"]
    texts = {path.relative_to(root).as_posix(): path.read_text("utf-8") for path in pages}
    named = {name: set(re.findall(r"`make ([a-z-]+)", text)) for name, text in texts.items()}
    assert targets - named["CONTRIBUTING.md"] == set()
    assert {name: gone for name, each in named.items() if (gone := each - targets)} == {}


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_help_says_what_every_target_installs_and_how_long_it_takes(root: Path) -> None:
    made = (root / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z-]+):(?!=)", made, re.M)) - {"test-vllm-if-built"}  # a part of `make ci`
    command = ["make", "--no-print-directory", "help"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    told = dict(re.findall(r"^make ([a-z-]+) +(.*)$", done.stdout, re.M))
    assert set(told) == targets
    assert targets - set(re.findall(r"[a-z-]+", made.partition(".PHONY:")[2].partition("\n")[0])) == set()
    for name, line in told.items():
        installs, runs, does = re.split(r"  +", line, maxsplit=2)
        assert re.search(r"\d (MB|GB)\b", installs) or installs == "nothing" or "C++ build" in installs, name
        assert re.search(r"\b(\d+ (s|min)|minutes|hours|at once)\b", runs), name
        assert does, name


# --- plain English: proselint, and the vocabulary of tests/prose.py -------------------------------------------------


def test_pages_declarations_docstrings_and_comments_use_the_vocabulary() -> None:
    assert [fault for page in prose.pages() for fault in prose.page_faults(page)] == []
    assert len(prose.declared()) > 140
    assert [fault for place in prose.declared() for fault in prose.declaration_faults(place)] == []
    assert +prose.by_part() == Counter()


def test_proselint_has_nothing_to_say_about_the_pages(root: Path, tmp_path: Path) -> None:
    for page in prose.pages():
        place = tmp_path / page.relative_to(root).as_posix().replace("/", "-")
        place.write_text(prose.prose_of(page.read_text(encoding="utf-8")), encoding="utf-8")
    config = root / ".proselintrc.json"
    command = [sys.executable, "-m", "proselint", "check", "--config", str(config), "-o", "json", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    result = json.loads(done.stdout)["result"]
    assert len(result) > 30, done.stderr
    assert {Path(file).name: each["diagnostics"] for file, each in result.items() if each.get("diagnostics")} == {}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("What comes behind the call is text.", ["comes behind", "behind"]),
        ("The server behind a proxy stands alone.", []),
        ("A marker that stands there is told.", ["stands", "is told"]),
        ("`behind` is a name, and it stands for a function.", []),
        ("It is None where there is no thought, and stays where it is.", ["None where", "where there is"]),
    ],
)
def test_the_vocabulary(line: str, words: list[str], tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(line, encoding="utf-8")
    assert sorted(fault.word for fault in prose.page_faults(tmp_path / "page.md")) == sorted(words)


def test_docstrings_begin_with_a_verb(tmp_path: Path) -> None:
    source = 'def f():\n    """The text."""\n\n\ndef g():\n    """Return the text."""  # behind\n'
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    found = [(fault.line, fault.word) for fault in prose.source_faults(tmp_path / "module.py")]
    assert found == [(2, "The"), (6, "behind")]
