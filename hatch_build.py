"""Part of the build: files that are made from the source tree and go into the wheel.

* The shipped formats are read and checked here, and their specifications kept (see `toolgram.spec_cache`). An editable
  install gets them too; they are used until a format is edited.
* With TOOLGRAM_COMPILED=1 in the environment, mypyc compiles the modules that run for every delta. The source is the
  same and stays in the wheel; `make test-compiled` runs all tests on such a wheel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILED = ("events.py", "message.py", "explain.py", "islands/*.py", "runtime/*.py")


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes src/toolgram/specs/, and compiles where that is asked for, before the wheel is put together."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling with "standard" or "editable"."""
        root = Path(self.root)
        build_data["artifacts"] += keep_specs(root)
        if os.environ.get("TOOLGRAM_COMPILED") == "1" and version == "standard":
            self.scratch = Path(tempfile.mkdtemp())
            modules = compile_modules(root, self.scratch)
            build_data["force_include"].update(modules)
            build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """The wheel is there."""
        if hasattr(self, "scratch"):
            shutil.rmtree(self.scratch)


def keep_specs(root: Path) -> list[str]:
    """Read every format of the source tree; the files written, from the root."""
    sys.path.insert(0, str(root / "src"))
    from toolgram.formats import format_names
    from toolgram.spec_cache import keep_spec
    from toolgram.spec_files import read_spec

    grammars, machines = root / "grammars", root / "machines"
    kept = []
    for name in format_names():
        spec = read_spec(grammars / f"{name}.lark", machines / f"{name}.yaml", (str(grammars),))
        kept.append(keep_spec(spec).relative_to(root).as_posix())
    return kept


def compile_modules(root: Path, scratch: Path) -> dict[str, str]:
    """Compile a copy of the package; extension modules by where they belong in the wheel."""
    source = scratch / "src"
    shutil.copytree(root / "src", source, ignore=shutil.ignore_patterns("__pycache__", "specs"))
    package = source / "toolgram"
    files = [path.relative_to(source).as_posix() for pattern in COMPILED for path in sorted(package.glob(pattern))]
    command = [sys.executable, "-m", "mypyc", "--config-file", str(root / "pyproject.toml"), *files]
    result = subprocess.run(command, cwd=source, capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"mypyc could not compile the package:\n{result.stdout}\n{result.stderr}")
    built = [path for pattern in ("*.so", "*.pyd") for path in source.rglob(pattern) if "build" not in path.parts]
    return {str(path): path.relative_to(source).as_posix() for path in built}
