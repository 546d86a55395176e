"""How every row is read: plain data that travels to other processes and names a run in its fingerprint."""

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
    """The columns of a row that say how to read it, where it does not go by the options of the run.

    Each is a dotted path, or None. A row in which the value is missing or null is read as the run says.
    """

    tools: str | None = None
    prefix: str | None = None
    format: str | None = None
    finish_reason: str | None = None

    def named(self) -> list[str]:
        """Those that are given."""
        return [path for path in (self.tools, self.prefix, self.format, self.finish_reason) if path is not None]


@dataclass(frozen=True)
class RowOptions:
    """How to read the rows. `field` is the dotted path of the output text, `keep` are columns to pass on.

    `format` may be None where each row names its own (`columns.format`).
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
        """Every path that is looked up in a row."""
        return [self.field, *self.keep, *self.columns.named()]

    def fingerprint(self) -> dict[str, Any]:
        """What the answers depend on, as JSON-able data."""
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
