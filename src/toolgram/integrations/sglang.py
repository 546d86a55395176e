"""The SGLang plug-in: names for SGLang's tables of parsers.

    sglang serve --model-path MODEL --tool-call-parser toolgram --reasoning-parser toolgram

SGLang calls `register`, the entry point `toolgram` of the group `sglang.srt.plugins`, in each of its processes, in the
server before it reads its arguments.

    toolgram            the format is derived from the tokenizer's chat template
    toolgram_<format>   a shipped format

If SGLANG_PLUGINS, SGLang's own list of plug-ins to load, is set, it must include `toolgram`. The tables are not a
public interface: if one is missing, toolgram logs a warning and the server starts without it.
"""

from __future__ import annotations

import logging
from importlib import import_module

from toolgram.integrations import AUTO_NAME, parser_names

DETECTORS = "toolgram.integrations.sglang_detectors"
SERVING = "sglang.srt.entrypoints.openai.serving_chat"

logger = logging.getLogger("sglang.toolgram")


def register() -> None:
    """Add toolgram's names to SGLang's tables. Called by SGLang, any number of times; never raises."""
    try:
        _register()
    except Exception as error:  # a server without toolgram is better than one that does not start
        if not (isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "sglang"):
            logger.warning("toolgram cannot be registered with SGLang; it was tested with 0.5.23: %r", error)


def _register() -> None:
    call_names = import_module("sglang.srt.function_call.parser_names").TOOL_CALL_PARSER_NAMES
    thought_names = import_module("sglang.srt.parser.reasoning_parser_names").REASONING_PARSER_NAMES
    calls = import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser.ToolCallParserEnum
    thoughts = import_module("sglang.srt.parser.reasoning_parser").ReasoningParser.DetectorMap
    detectors = import_module(DETECTORS)
    known = AUTO_NAME in calls
    for name, format_name in parser_names().items():
        for names, table, kind in ((call_names, calls, "ToolDetector"), (thought_names, thoughts, "ReasoningDetector")):
            if name not in names:  # for the command line; the table is for the server
                names.append(name)
            table[name] = detectors.detector(kind, format_name)
    if not known:
        import_module("sglang.srt.plugins.hook_registry").HookRegistry.register(
            f"{SERVING}.OpenAIServingChat._patch_reasoning_skip_special_tokens", detectors.prepare_request
        )
