"""A derived format as data: its specification and its report, for a file or another process.

Strategy: plain JSON, read without trust: data in any other form than the written one is rejected. The analysis with its
renderings is not kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from toolgram.derive.report import DeriveReport
from toolgram.formats import Format, grammar_home
from toolgram.spec.as_json import dump, load, sealed, unsealed
from toolgram.spec.cache import readers_hash
from toolgram.spec.data import Spec


def as_data(fmt: Format) -> dict[str, Any]:
    """Return a derived format as JSON-able data."""
    report = fmt.report
    assert report is not None
    return {
        "code": readers_hash(),
        "machine": fmt.machine_text,
        "spec": dump(fmt.spec),
        "report": dump(replace(report, analysis=None)),
    }


def from_data(data: Mapping[str, Any]) -> Format | None:
    """Return the format from its data; None if this version cannot use it."""
    try:
        if data["code"] != readers_hash():
            return None
        spec = replace(load(Spec, data["spec"]), import_paths=(str(grammar_home()),))
        return Format(spec, data["machine"], load(DeriveReport, data["report"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def save(path: Path, fmt: Format) -> None:
    """Keep a derived format in a file. Do nothing if it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(sealed(as_data(fmt)), encoding="utf-8")
        partial.replace(path)
    except OSError:
        return


def kept(path: Path) -> Format | None:
    """Return the format that was kept in a file; None if there is none that this version can use."""
    try:
        return from_data(unsealed(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return None
