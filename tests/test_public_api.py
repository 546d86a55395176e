"""docs/reference/api.md, `__all__` and the code name the same things as public."""

import ast
import re
from importlib import import_module
from pathlib import Path
from types import FunctionType

import pytest

RESULTS = {"toolgram.export": {"Export"}}  # a private package, of which what its function returns is public
SECTION = re.compile(r"^## (toolgram[\w.]*)\n(.*?)(?=^## |\Z)", re.M | re.S)
NEEDS = {"langchain": "langchain_core", "llama_cpp": "llama_cpp", "transformers": "transformers"}


def sections(root: Path) -> dict[str, list[str]]:
    """Return the names that the page documents, by module."""
    page = (root / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    find = r"^::: {}\.(\w+)$".format
    return {module: re.findall(find(re.escape(module)), text, re.M) for module, text in SECTION.findall(page)}


def source(root: Path, module: str) -> Path:
    folder = root / "src" / Path(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def declared(root: Path, module: str) -> list[str] | None:
    """Return `__all__` of a module, without importing it."""
    for node in ast.parse(source(root, module).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            found = ast.literal_eval(node.value)
            assert isinstance(found, list)
            return found
    return None


def test_the_page_documents_what_the_modules_declare(root: Path) -> None:
    found = sections(root)
    assert len(found) >= 10
    for module, names in found.items():
        listed = declared(root, module)
        assert listed is not None, f"{module} is public and has no __all__"
        assert len(set(names)) == len(names), module
        assert set(names) == RESULTS.get(module, set(listed)), module
        assert set(names) <= set(listed), module


def test_every_public_name_exists_and_says_what_it_is(root: Path) -> None:
    for module, names in sections(root).items():
        if package := NEEDS.get(module.rpartition(".")[2]):
            try:
                import_module(package)
            except ImportError:
                continue  # the module cannot be imported here; its names are compared above
        loaded = import_module(module)
        for name in names:
            value = getattr(loaded, name)
            if isinstance(value, type | FunctionType):
                assert value.__doc__, f"{module}.{name} has no docstring"


@pytest.mark.parametrize("page", ["README.md", "docs"])
def test_pages_import_only_public_names(page: str, root: Path) -> None:
    """Code that readers copy must keep working."""
    public = sections(root)
    events = {"toolgram.events", "toolgram.errors"}  # modules whose names `toolgram` has as well
    place = root / page
    for file in [place] if place.is_file() else sorted(place.rglob("*.md")):
        if "decisions" in file.parts:
            continue
        for block in re.findall(r"^```python\n(.*?)^```", file.read_text(encoding="utf-8"), re.M | re.S):
            for module, names in re.findall(r"^ *from (toolgram[\w.]*) import ([\w, ]+)", block, re.M):
                known = public["toolgram"] if module in events else public.get(module, [])
                packages = {each.rpartition(".")[2] for each in public if each.rpartition(".")[0] == module}
                missing = {each.strip() for each in names.split(",")} - {*known, *packages}
                assert not missing, f"{file.name}: from {module} import {', '.join(sorted(missing))} is private"
