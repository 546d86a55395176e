"""A derived format as data: its specification and its report, for a file or another process.

Strategy: plain JSON, read without trust: data in any other form than the written one is rejected. The analysis with its
renderings is not kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from toolgram.derive.adapting import Behind, adapted, behind_of, named
from toolgram.derive.report import DeriveReport, Found, Probe
from toolgram.derive.result import MarkerRegistry
from toolgram.formats import Format, grammar_home
from toolgram.spec.as_json import dump_spec, load_spec, sealed, unsealed
from toolgram.spec.cache import readers_hash


def as_data(fmt: Format) -> dict[str, Any]:
    """Return a derived format as JSON-able data."""
    report = fmt.report
    assert report is not None
    return {
        "code": readers_hash(),
        "name": fmt.name,
        "machine": fmt.machine_text,
        "spec": None if report.shipped else dump_spec(fmt.spec),
        "behind": asdict(behind_of(fmt, report.shipped)) if report.shipped else None,
        "report": report.to_dict(),
    }


def from_data(data: Mapping[str, Any]) -> Format | None:
    """Return the format from its data; None if this version cannot use it."""
    try:
        if data["code"] != readers_hash():
            return None
        said, found = data["report"], data["report"]["found"]
        probes, seconds = tuple(Probe(**each) for each in said["probes"]), float(said["seconds"])
        found = Found(**{**found, "markers": MarkerRegistry(**found["markers"])})
        warnings, unexplained, asked = (tuple(said[key]) for key in ("warnings", "unexplained", "asked"))
        report = DeriveReport(None, said["shipped"], said["why"], probes, warnings, unexplained, found, seconds, asked)
        if report.shipped:
            around: dict[str, Any] = {
                key: each if isinstance(each, str) else tuple(each) for key, each in data["behind"].items()
            }
            shipped = adapted(report.shipped, Behind(**around))
            fmt = named(shipped, str(data["name"])) if shipped is not None else None
            return Format(fmt.spec, fmt.machine_text, report) if fmt is not None else None
        spec = replace(load_spec(data["spec"]), import_paths=(str(grammar_home()),))
        return Format(spec, data["machine"], report)
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


def load(path: Path) -> Format | None:
    """Return the format that was kept in a file; None if there is none that this version can use."""
    try:
        return from_data(unsealed(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, RecursionError):
        return None
