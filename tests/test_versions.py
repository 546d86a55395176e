"""The table of supported versions against the project's files and what is installed."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "reference" / "versions.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
NOT_SHIPPED = {"dev", "docs", "ray", "export"}  # tools, and extras without a package of their own


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def demanded(lines: list[str]) -> dict[str, str]:
    """The packages of a list of requirements, with the oldest version of each."""
    found = {}
    for line in lines:
        requirement = Requirement(line)
        if requirement.name != "toolgram":
            for each in requirement.specifier:
                if each.operator in (">=", "=="):
                    found[requirement.name] = each.version
    return found


def test_every_package_of_an_extra_has_its_row() -> None:
    extras = {"": PROJECT["dependencies"], **PROJECT["optional-dependencies"]}
    asked = [
        [extra, package, floor]
        for extra, lines in extras.items()
        if extra not in NOT_SHIPPED
        for package, floor in demanded(lines).items()
    ]
    assert sorted(row[:3] for row in rows("Packages of the extras")) == sorted(asked)


def test_clients_and_engines_are_the_versions_that_tests_ask_for() -> None:
    asked = demanded(PROJECT["optional-dependencies"]["dev"])
    asked |= demanded(re.findall(r"^\w+==\S+$", (ROOT / "tests/export/requirements.txt").read_text("utf-8"), re.M))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for package, oldest, newest, where in rows("Clients and engines"):
        if package == "vllm":
            surface = (ROOT / "src/toolgram/integrations/vllm_surface.py").read_text(encoding="utf-8")
            assert f'OLDEST = "{oldest.removesuffix(".0")}"' in surface
            assert f"NEWEST_VLLM := {newest}\n" in makefile
            assert f"VLLM={oldest}" in where
        elif where == "make test":
            assert oldest == asked[package]


def test_three_releases_of_each_server_have_a_target_and_a_date() -> None:
    """The newest, whose number the Makefile and the plug-in have as well, and the two before it."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    found = rows("Releases of servers")
    for server, variable, newest in (("vLLM", "VLLM", "NEWEST_VLLM"), ("SGLang", "SGLANG_RELEASE", "NEWEST_SGLANG")):
        mine = [(*release.split(), target) for release, target, _ in found if release.startswith(server)]
        assert [Version(number) for _, number, _ in mine] == sorted((Version(each[1]) for each in mine), reverse=True)
        assert len(mine) == 3
        assert f"{newest} := {mine[0][1]}\n" in makefile
        assert all(f"{variable}={number} make test-" in target for _, number, target in mine[1:])
        module = (ROOT / f"src/toolgram/integrations/{server.lower()}.py").read_text(encoding="utf-8")
        tested = re.search(r"was tested with (?:SGLang )?(\d[\d.]*\d)", module)
        assert tested is not None
        assert mine[0][1].startswith(tested[1])
    said = " ".join(run for _, _, run in found)
    assert len(re.findall(r"\d{4}-\d\d-\d\d", said)) >= 4


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
