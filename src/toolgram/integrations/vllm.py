"""The vLLM plug-in: names for vLLM's registries of parsers.

    vllm serve MODEL --enable-auto-tool-choice --tool-call-parser toolgram --reasoning-parser toolgram

vLLM calls `register`, the entry point `toolgram` of the group `vllm.general_plugins`, in each of its processes before
it looks at the names. Only strings are registered, so no unused format is loaded.

    toolgram            the format is derived from the tokenizer's chat template, or chosen by the version of a Mistral
                        tokenizer
    toolgram_<format>   a shipped format

Environment variables: TOOLGRAM_VLLM_OVERRIDE, a comma-separated list of vLLM's own names that select toolgram's parsers
(`llama3_json,mistral`); VLLM_PLUGINS, vLLM's own list of plug-ins to load: if set, it must include `toolgram`.

If entry points are off, `--tool-parser-plugin toolgram.integrations.vllm` (or `--reasoning-parser-plugin`) imports this
module instead, and that is enough.
"""

from __future__ import annotations

import os
import sys
from multiprocessing import parent_process
from typing import Any

from toolgram.formats import format_names
from toolgram.integrations import parser_names
from toolgram.integrations.observing import logger, warn_once
from toolgram.names import of_server

OVERRIDE_VARIABLE = "TOOLGRAM_VLLM_OVERRIDE"
PARSERS = "toolgram.integrations.vllm_parsers"

# vLLM treats these names specially and adds parts of its own.
NOT_OVERRIDABLE = frozenset({"kimi_k3", "cohere_command3", "cohere_command4", "minicpmv"})

# Logged on registration if vLLM is too old or too new, so that nothing fails later.
NEEDED = "toolgram needs vLLM 0.31 or newer and was tested with 0.33; update vLLM, or use its own parsers"


def _version() -> str:
    return str(getattr(sys.modules.get("vllm"), "__version__", "of unknown version"))


def overridden_format(name: str) -> str:
    """Return the format for one of vLLM's own names."""
    return of_server("vllm", name, format_names()) or "auto"


def register() -> None:
    """Add toolgram's names to vLLM's registries. Called by vLLM, any number of times; never raises."""
    try:
        _register()
    except Exception as error:  # a server without toolgram is better than one that does not start
        missing = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
        if missing.partition(".")[0] != "vllm" or sys.modules.get("vllm") is not None:
            warn_once(f"it cannot be registered with vLLM {_version()}: {error!r}; {NEEDED}")


def _register() -> None:
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParser, ToolParserManager

    if not hasattr(ToolParser, "engine_based_streaming"):
        warn_once(f"it is not registered with vLLM {_version()}; {NEEDED}")
        return
    for name, format_name in parser_names().items():
        ToolParserManager.register_lazy_module(name, PARSERS, f"ToolParser_{format_name}")
        ReasoningParserManager.register_lazy_module(name, PARSERS, f"ReasoningParser_{format_name}")
    for name in filter(None, map(str.strip, os.environ.get(OVERRIDE_VARIABLE, "").split(","))):
        _override(ToolParserManager, ReasoningParserManager, name, overridden_format(name))


def _override(tools: Any, reasoning: Any, name: str, format_name: str) -> None:
    if name in NOT_OVERRIDABLE:
        warn_once(f"vLLM's {name} cannot be overridden; use --tool-call-parser toolgram")
        return
    known = False
    for manager, loaded, kind in (
        (tools, "tool_parsers", "ToolParser"),
        (reasoning, "reasoning_parsers", "ReasoningParser"),
    ):
        if name not in manager.list_registered():
            continue
        known = True
        manager.register_lazy_module(name, PARSERS, f"{kind}_{format_name}")
        getattr(manager, loaded, {}).pop(name, None)  # else a class that is already loaded would be used
    if known:
        logger.info("toolgram: vLLM's %s is read by toolgram (%s)", name, format_name)
    elif parent_process() is None:  # a server's other processes register the names as well
        warn_once(f"{OVERRIDE_VARIABLE} names {name}, which vLLM does not have")


if sys.modules.get("vllm") is not None:  # imported by --tool-parser-plugin, or by the entry point
    register()
