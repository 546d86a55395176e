"""transformers' streaming response parser, with a response template for each format.

The templates are as short as the formats allow, since the parser searches every pattern that could match next at every
delta.  They are loaded once: a server would keep them with the tokenizer.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from benchmarks.contenders import Contender, Heard, Prepared, Stream, as_they_are
from benchmarks.workloads import Workload

CONTENT: dict[str, Any] = {"content_args": {"strip": False}}  # no opener: takes what nothing else does
FUNCTION = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
ENVELOPE = {"type": "function", "function": {"name": "{name}", "arguments": "{arguments}"}}
PARAMETERS = {"type": "function", "function": {"name": "{content.name}", "arguments": "{content.parameters}"}}

FIELDS: dict[str, dict[str, Any]] = {
    "mistral_v11": {
        "content": CONTENT,
        "thinking": {"open": "[THINK]", "close": "[/THINK]"},
        "tool_calls": {
            "open_pattern": r"\[TOOL_CALLS\](?P<name>[\w.\-]+)\[ARGS\]",
            "close_pattern": r"(?=\[TOOL_CALLS\])",
            "content": "json",
            "repeats": True,
            "transform": FUNCTION,
        },
    },
    "mistral_v3": {
        "content": CONTENT,
        "tool_calls": {
            "open": "[TOOL_CALLS]",
            "close": "</s>",
            "content": "json",
            "transform": ENVELOPE,
            "transform_each": True,
        },
    },
    "llama3_json": {
        "content": CONTENT,
        "tool_calls": {
            "open_pattern": r'(?=\{"name":)',
            "close": "<|eot_id|>",
            "content": "json",
            "repeats": True,
            "transform": PARAMETERS,
        },
    },
}


def hear(results: list[Any]) -> Heard:
    """The message that `finalize` returns."""
    message, _ = results[-1]
    functions = [call["function"] for call in message.get("tool_calls", [])]
    calls = [(function["name"], json.dumps(function["arguments"])) for function in functions]
    return Heard(message.get("thinking", ""), message.get("content", ""), calls)


def load(name: str) -> Contender:
    """Imports the parser and reads the templates."""
    parsing = import_module("transformers.utils.chat_parsing")
    loading = import_module("transformers.utils.chat_parsing.response_templates")
    templates = {
        format_name: loading.load_response_template({"version": 1, "start_anchor": "[/INST]", "fields": fields})
        for format_name, fields in FIELDS.items()
    }

    def prepare(workload: Workload, written_as: str) -> Prepared:
        template, tools = templates[written_as], workload.tools

        def open_stream() -> Stream:
            parser = parsing.ResponseParser(template, prefix="", tools=tools)
            return parser.feed, parser.finalize

        return Prepared(open_stream, as_they_are, hear)

    return prepare
