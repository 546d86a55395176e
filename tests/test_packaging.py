"""What is shipped: the two folders of declarations inside the package, and nothing more to install than promised."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import toolgram

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
    assert sorted(line for line in required if "extra ==" not in line) == [
        "ijson>=3.3",
        "lark>=1.2.2",
        "pyyaml>=6",
        "transitions>=0.9.2",
    ]
    assert sorted(line for line in required if "extra == 'cli'" in line) == [
        "rich>=13.8; extra == 'cli'",
        "typer>=0.15; extra == 'cli'",
    ]
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Version"] == toolgram.__version__


def test_wheel_parses_away_from_the_repository(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = (
        "import toolgram\n"
        "for name in toolgram.format_names():\n"
        "    fmt = toolgram.get_format(name)\n"
        "    print(toolgram.__file__, name, fmt.parse(fmt.example).tool_calls[0].status)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "site")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines
    assert all(Path(file).is_relative_to(tmp_path) and status == "complete" for file, _, status in lines)
