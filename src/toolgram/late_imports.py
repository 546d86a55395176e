"""The few functions of upper layers that a method of a lower layer calls.

Strategy: `Format` has methods such as `export` and `diagram` for convenience. Their code stands in layers above
`formats`, and some of it needs an optional package. This table is the only place where a module names something above
itself. The import happens at the first call, so that only what is used is loaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# the name that callers use -> module:attribute
LATE_IMPORTS = {
    "derive_format": "toolgram.derive.deriving:derive_format",
    "from_gguf": "toolgram.derive.sources:from_gguf",
    "from_pretrained_files": "toolgram.derive.sources:from_pretrained_files",
    "from_tokenizer": "toolgram.derive.sources:from_tokenizer",
    "diagram": "toolgram.diagrams:diagram",
    "explain": "toolgram.explain:explain",
    "export": "toolgram.export:export",
    "observe_paths": "toolgram.observing.paths:observe_paths",
    "reference_grammar": "toolgram.check.reference:reference_grammar",
    "reference_machine": "toolgram.check.reference:ReferenceMachine",
    "reference_parse": "toolgram.check.reference:reference_parse",
    "wrap": "toolgram.wrapping:wrap",
    "with_suffix_of": "toolgram.suffixes:with_suffix_of",
    "validate": "toolgram.tools.validation:validate",
}


def late_import(name: str) -> Any:
    """The function or class of this name in the table. Raises ImportError where an optional package is missing."""
    module, _, attribute = LATE_IMPORTS[name].partition(":")
    return getattr(import_module(module), attribute)
