"""The few functions of upper layers that a method of a lower layer calls.

Strategy: `Format` has methods such as `export` and `diagram` for convenience. Their code is in layers above
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
    """Return the function or class of this name. Raises ImportError if an optional package is missing."""
    module, _, attribute = LATE_IMPORTS[name].partition(":")
    return getattr(import_module(module), attribute)


# packages that are optional -> the extra that has them
_EXTRAS = {
    "typer": "cli", "rich": "cli", "jinja2": "derive", "gguf": "gguf", "automata": "check", "jsonschema_rs": "validate",
    "pyarrow": "bulk", "orjson": "bulk", "ray": "ray", "graphviz": "diagrams",
    "mermaid_render": "diagrams", "httpx": "serve", "uvicorn": "serve", "starlette": "serve", "sse_starlette": "serve",
    "prometheus_client": "serve", "anyio": "serve",
}  # fmt: skip


def install_line(package: str) -> str:
    """Return the command that installs an optional package, from wherever toolgram itself was installed."""
    import sys
    from importlib.util import find_spec

    extra = _EXTRAS.get(package.partition(".")[0])
    pip = f"{sys.executable} -m pip install" if find_spec("pip") else f"uv pip install --python {sys.executable}"
    return f"{pip} {package if extra is None else _requirement(extra)}"


def _requirement(extra: str) -> str:
    """Return toolgram with an extra, as pip and uv take it: from an index, a folder, a file, or a repository."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        source = json.loads(distribution("toolgram").read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        source = {}
    url = source.get("url", "")
    if url.startswith("file://"):
        return f"'{url.removeprefix('file://')}[{extra}]'"
    if vcs := source.get("vcs_info"):
        url = f"{vcs['vcs']}+{url}@{vcs['commit_id']}"
    return f"'toolgram[{extra}] @ {url}'" if url else f"'toolgram[{extra}]'"
