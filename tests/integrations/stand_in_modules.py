"""Modules in the place of a package that is not installed: what the stand-ins for vLLM, SGLang and llama.cpp share."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


@contextmanager
def in_place(contents: Mapping[str, Mapping[str, Any]], ours: Sequence[str]) -> Iterator[None]:
    """Modules with these attributes for as long as the block runs, and none of the real package.

    `ours` are the modules of `toolgram.integrations` that are imported anew in the block, and are gone after it.
    """
    package = vars(import_module("toolgram.integrations"))
    packages = {name.partition(".")[0] for name in contents}
    names = {f"toolgram.integrations.{name}" for name in ours}

    def taken_out() -> tuple[dict[str, ModuleType], dict[str, Any]]:
        loaded = [name for name in sys.modules if name in names or name.partition(".")[0] in packages]
        attributes = [name for name in ours if name in package]
        return {name: sys.modules.pop(name) for name in loaded}, {name: package.pop(name) for name in attributes}

    modules, attributes = taken_out()
    try:
        for name, values in contents.items():
            made = sys.modules[name] = ModuleType(name)
            vars(made).update(values)
            parent, _, last = name.rpartition(".")
            if parent in sys.modules:
                setattr(sys.modules[parent], last, made)
        yield
    finally:
        taken_out()
        sys.modules.update(modules)
        package.update(attributes)
