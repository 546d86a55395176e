"""Part of the build: the shipped formats are read and checked once, here, and their specifications go into the wheel.

See `toolgram.spec_cache`. An editable install gets them too; they are used as long as nobody has edited a format.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes src/toolgram/specs/ before the wheel is put together."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Read every format of the source tree."""
        root = Path(self.root)
        sys.path.insert(0, str(root / "src"))
        from toolgram.formats import format_names
        from toolgram.spec_cache import keep_spec
        from toolgram.spec_files import read_spec

        grammars, machines = root / "grammars", root / "machines"
        for name in format_names():
            path = keep_spec(read_spec(grammars / f"{name}.lark", machines / f"{name}.yaml", (str(grammars),)))
            build_data["artifacts"].append(path.relative_to(root).as_posix())
