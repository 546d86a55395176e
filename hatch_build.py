"""Part of the build: files that are made from the source tree and go into the wheel.

The shipped formats are read and checked here, and their specifications kept (see `toolgram.spec.cache`). An editable
install gets them too; they are used until a format is edited.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Writes src/toolgram/specs/ before the wheel is put together."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling with "standard" or "editable"."""
        root = Path(self.root)
        build_data["artifacts"] += keep_specs(root)


def keep_specs(root: Path) -> list[str]:
    """Read every format of the source tree; the files written, from the root."""
    sys.path.insert(0, str(root / "src"))
    from toolgram.formats import format_names
    from toolgram.spec.cache import keep_spec
    from toolgram.spec.files import read_spec

    grammars, machines = root / "grammars", root / "machines"
    kept = []
    for name in format_names():
        spec = read_spec(grammars / f"{name}.lark", machines / f"{name}.yaml", (str(grammars),))
        kept.append(Path(keep_spec(spec)).relative_to(root).as_posix())
    return kept
