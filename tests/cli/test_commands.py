"""Commands as their users type them, a row each of `commands.yaml`: what is printed where, and the exit status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import check_row, rows_beside


@pytest.mark.filterwarnings("ignore:Setuptools is replacing distutils")  # of setuptools, when it looks for pip
@pytest.mark.parametrize("row", rows_beside(__file__), ids=lambda row: row["run"])
def test_a_command(row: dict[str, Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_row(row, root, tmp_path, monkeypatch)
