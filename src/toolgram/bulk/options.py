"""Options for reading every row: plain data that is sent to other processes and identifies a run in its fingerprint."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

import toolgram
from toolgram.formats import Format
from toolgram.spec.as_json import dump_spec


@dataclass(frozen=True)
class Columns:
    """The columns of a row that tell how to read it, instead of the options of the run.

    Each is a dotted path, or None. If the value is missing or null, the row is read with the options of the run.
    """

    tools: str | None = None
    prefix: str | None = None
    format: str | None = None
    finish_reason: str | None = None

    def named(self) -> list[str]:
        """Return the columns that are given."""
        return [path for path in (self.tools, self.prefix, self.format, self.finish_reason) if path is not None]


@dataclass(frozen=True)
class RowOptions:
    """How to read the rows. `field` is the dotted path of the output text, `keep` are columns to pass on.

    `format` may be None if each row names its own (`columns.format`).
    """

    field: str
    format: Format | None = None
    tools: list[Any] | None = None
    prefix: str | None = None
    finish_reason: str | None = None
    strict: bool = False
    keep: tuple[str, ...] = ()
    columns: Columns = Columns()
    validate: bool = False

    def paths(self) -> list[str]:
        """Return every path that is looked up in a row."""
        return [self.field, *self.keep, *self.columns.named()]

    def fingerprint(self) -> dict[str, Any]:
        """Return what the answers depend on, as JSON-able data."""
        spec = None if self.format is None else json.dumps(dump_spec(self.format.spec), sort_keys=True)
        return {
            "toolgram": toolgram.__version__,
            "field": self.field,
            "format": None if spec is None else hashlib.sha256(spec.encode()).hexdigest(),
            "tools": self.tools,
            "prefix": self.prefix,
            "finish_reason": self.finish_reason,
            "strict": self.strict,
            "validate": self.validate,
            "keep": list(self.keep),
            "columns": self.columns.named() and vars(self.columns),
        }
