"""What is shipped: the two folders of declarations inside the package, and nothing more to install than promised."""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import toolgram
from tests import commits
from tests.release.notes import notes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a wheel and a source distribution, built offline from this tree."""
    pytest.importorskip("hatchling", reason="building needs hatchling: make test sets up an environment that has it")
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder)]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return next(built.glob("*.whl"))


def declarations(root: Path) -> set[str]:
    """Every grammar and machine, as a path below the repository."""
    return {
        path.relative_to(root).as_posix()
        for folder, pattern in (("grammars", "*.lark"), ("machines", "*.yaml"))
        for path in (root / folder).rglob(pattern)
    }


def test_wheel_contains_grammars_and_machines(root: Path, wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {f"toolgram/{name}" for name in declarations(root)}
    assert expected
    assert expected <= names
    assert "toolgram/py.typed" in names
    assert all(name.startswith(("toolgram/", "toolgram-")) for name in names)


def test_source_distribution_contains_them_too(root: Path, built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert declarations(root) <= names
    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "tests/test_packaging.py"} <= names


def test_dependencies_are_the_promised_ones(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    required = metadata.get_all("Requires-Dist", [])
    plain = ["ijson>=3.3", "lark>=1.2.2", "pyyaml>=6", "transitions>=0.9.2"]
    assert sorted(line for line in required if "extra ==" not in line) == plain
    for_cli = ["rich>=13.8; extra == 'cli'", "typer>=0.15; extra == 'cli'"]
    assert sorted(line for line in required if "extra == 'cli'" in line) == for_cli
    assert (metadata["Requires-Python"], metadata["Version"]) == (">=3.11", toolgram.__version__)


def test_wheel_parses_away_from_the_repository(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = (
        "import toolgram\n"
        "for name in toolgram.format_names():\n"
        "    fmt = toolgram.get_format(name)\n"
        "    print(toolgram.__file__, name, fmt.parse(fmt.example).tool_calls[0].status)"
    )
    command, environment = [sys.executable, "-c", code], os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines
    assert all(Path(file).is_relative_to(tmp_path) and status == "complete" for file, _, status in lines)


# --- the table of supported versions --------------------------------------------------------------------------------

HERE = Path(__file__).parent.parent
PAGE = (HERE / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_SHIPPED = {"dev", "docs", "ray", "export"}  # tools, and extras without a package of their own


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def demanded(lines: list[str]) -> dict[str, str]:
    """The packages of a list of requirements, with the oldest version of each."""
    asked = [each for each in map(Requirement, lines) if each.name != "toolgram"]
    return {each.name: one.version for each in asked for one in each.specifier if one.operator in (">=", "==")}


def test_every_package_of_an_extra_has_its_row() -> None:
    extras = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    shipped = {extra: demanded(lines) for extra, lines in extras.items() if extra not in NOT_SHIPPED}
    asked = [[extra, package, floor] for extra, found in shipped.items() for package, floor in found.items()]
    assert sorted(row[:3] for row in rows("Packages of the extras")) == sorted(asked)


def test_clients_and_engines_are_the_versions_that_tests_ask_for() -> None:
    asked = demanded(PROJECT["optional-dependencies"]["dev"])
    asked |= demanded(re.findall(r"^\w+==\S+$", (HERE / "tests/export/requirements.txt").read_text("utf-8"), re.M))
    makefile = (HERE / "Makefile").read_text(encoding="utf-8")
    for package, oldest, newest, where in rows("Clients and engines"):
        if package == "vllm":
            surface = (HERE / "src/toolgram/integrations/vllm_surface.py").read_text(encoding="utf-8")
            assert f'OLDEST = "{oldest.removesuffix(".0")}"' in surface
            assert f"NEWEST_VLLM := {newest}\n" in makefile
            assert f"VLLM={oldest}" in where
        elif where == "make test":
            assert oldest == asked[package]


def test_three_releases_of_each_server_have_a_target_and_a_date() -> None:
    """The newest, whose number the Makefile and the plug-in have as well, and the two before it."""
    makefile = (HERE / "Makefile").read_text(encoding="utf-8")
    found = rows("Releases of servers")
    for server, variable, newest in (("vLLM", "VLLM", "NEWEST_VLLM"), ("SGLang", "SGLANG_RELEASE", "NEWEST_SGLANG")):
        mine = [(*release.split(), target) for release, target, _ in found if release.startswith(server)]
        assert [Version(number) for _, number, _ in mine] == sorted((Version(each[1]) for each in mine), reverse=True)
        assert len(mine) == 3
        assert f"{newest} := {mine[0][1]}\n" in makefile
        assert all(f"{variable}={number} make test-" in target for _, number, target in mine[1:])
        module = (HERE / f"src/toolgram/integrations/{server.lower()}.py").read_text(encoding="utf-8")
        tested = re.search(r"was tested with (?:SGLang )?(\d[\d.]*\d)", module)
        assert tested is not None
        assert mine[0][1].startswith(tested[1])
    assert len(re.findall(r"\d{4}-\d\d-\d\d", " ".join(run for _, _, run in found))) >= 4


@pytest.mark.parametrize(
    "row", rows("Packages of the extras") + [["", *row[:3]] for row in rows("Clients and engines")]
)
def test_what_is_installed_is_not_older_than_the_oldest(row: list[str]) -> None:
    _, package, oldest, newest = row
    assert Version(oldest) <= Version(newest)
    try:
        installed = version(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not in this environment")
    assert Version(installed) >= Version(oldest)


# --- CHANGELOG.md: a line for each change, by release and kind ------------------------------------------------------

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


def test_the_released_version_has_notes_and_one_without_is_no_release() -> None:
    assert notes(toolgram.__version__).startswith("### ")
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
