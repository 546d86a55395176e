"""The pages of anomalies and of errors, an address for each: `python -m tests.reference_pages` writes them.

Strategy: what a page says of a kind or a class is the code's own: `anomalies.KINDS`, docstrings. Its example is an
output that a format reads here, or code that raises here. Only the remedies are written by hand.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import toolgram
from toolgram.anomalies import KINDS
from toolgram.bulk.errors import BadFile, BadTarget, MissingPackage
from toolgram.derive.errors import OutOfBudget, TemplateError
from toolgram.gateway.engine import NoServer
from toolgram.gateway.errors import Refusal

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
TOOLS = [
    {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    }
]


@dataclass(frozen=True)
class Anomaly:
    """An output with the anomaly, and what a developer can do about it."""

    format: str
    output: str
    remedy: str
    tools: Any = None
    reason: str | None = None
    ids: Mapping[str, int] | None = None  # of special tokens; the output then comes with those of one


CALL = '{"name": "get_weather", "arguments": {"city": "Paris"}}'
TAGGED = "<tool_call>\n<function=get_weather>\n<parameter=city>\n%s\n</function>\n</tool_call>"
REPAIR = "Nothing. The call is complete, and there was one way to read it. Pass `strict=True` to refuse repairs."
TELL_THE_MODEL = "Return the anomaly to the model as the result of the call, so that it can correct itself. "
VALIDATE = "`message.validate(tools)` checks every argument and words the errors for the model."
GIVE_PREFIX = (
    "Pass the end of the prompt as `prefix`, so that the parser knows whether reasoning is open: the generation prompt "
    'of the chat template, or `prefix=""` if the prompt ends with nothing for the assistant.'
)
MORE_TOKENS = (
    "Never execute the call. Raise the limit of tokens, or shorten the prompt, and ask again. Pass the server's "
    "`finish_reason` to `parse` or `close`, so that it can tell a finished output from one that was cut off."
)
CONSTRAIN = (
    "Return the error to the model and ask again. If it happens often, [constrain the model](../../guides/"
    "constrain-a-model.md), or see [Why was my call not parsed?](../../guides/why-was-my-call-not-parsed.md)."
)
ANOMALIES = {
    "unclosed_value": Anomaly("qwen3_coder", TAGGED % "Paris" + "<|im_end|>", REPAIR),
    "unclosed_envelope": Anomaly("hermes", f"<tool_call>\n{CALL[:-1]}", REPAIR),
    "unclosed_arguments": Anomaly(
        "deepseek_v31",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
        '{"city": "Paris"<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
        REPAIR,
    ),
    "surplus_closer": Anomaly("hermes", f"<tool_call>\n{CALL}\n</tool_call></tool_call>", REPAIR),
    "unfinished_marker": Anomaly("hermes", f"<tool_call>\n{CALL}\n</tool_", REPAIR),
    "repaired_json": Anomaly("hermes", f"<tool_call>\n{CALL[:-2]},}}}}\n</tool_call>", REPAIR),
    "repaired_python": Anomaly(
        "lfm2", "<|tool_call_start|>[get_weather(city='Paris' days=2)]<|tool_call_end|>", REPAIR
    ),
    "unopened_reasoning": Anomaly("hermes", "</think>Hello.", GIVE_PREFIX),
    "assumed_reasoning": Anomaly("deepseek_r1", "Hello.", GIVE_PREFIX),
    "unusual_form": Anomaly("hermes", '<tool_call>\n{"name": "get_weather", "args": {}}\n</tool_call>', REPAIR),
    "after_turn": Anomaly(
        "hermes",
        "Hello.<|im_end|>\n<|im_start|>user\nHow are you?",
        "Stop generation at the end of the turn: add the token before the dropped text to the server's stop tokens.",
    ),
    "quoted_call": Anomaly(
        "hermes",
        'Write `<tool_call>{"name": "f", "arguments": {}}</tool_call>` to call f.',
        "Nothing: a call in code or in reasoning is not executed. If the model meant it, the anomaly's `calls` has it.",
    ),
    "stray_marker": Anomaly(
        "qwen3_coder",
        TAGGED % "Pa</parameter>ris\n</parameter>",
        "Look at the value: a marker of another argument may be missing. Pass pieces `(text, id)` to `feed` if the "
        "server has the ids of tokens: text that only spells a marker is then never one.",
    ),
    "repeated_argument": Anomaly(
        "hermes",
        f'<tool_call>\n{CALL[:-2]}, "city": "Rome"}}}}\n</tool_call>',
        "Nothing, if the last value is meant: `json.loads` takes it. Otherwise return the anomaly to the model.",
    ),
    "undeclared_argument": Anomaly(
        "qwen3_coder",
        TAGGED % "Paris\n</parameter>\n<parameter=when>\ntoday\n</parameter>",
        TELL_THE_MODEL + VALIDATE,
        TOOLS,
    ),
    "missing_argument": Anomaly(
        "glm45",
        "<tool_call>get_weather\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
        TELL_THE_MODEL + VALIDATE,
        TOOLS,
    ),
    "unexpected_type": Anomaly(
        "qwen3_coder",
        TAGGED % "Paris\n</parameter>\n<parameter=days>\nsoon\n</parameter>",
        TELL_THE_MODEL + VALIDATE,
        TOOLS,
    ),
    "ambiguous_ids": Anomaly(
        "hermes",
        "Write <tool_call> as <tool_call>",
        "Pass pieces to `feed`, the text of each token with its id: "
        '`parser.feed([("Write ", 51), ("<tool_call>", 7)])`.',
        ids={"<tool_call>": 7, "</tool_call>": 8},
    ),
    "unknown_tool": Anomaly(
        "hermes",
        '<tool_call>\n{"name": "get_whether", "arguments": {}}\n</tool_call>',
        "Check the name before you execute a call. " + TELL_THE_MODEL,
        TOOLS,
    ),
    "truncated": Anomaly(
        "hermes", '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par', MORE_TOKENS, reason="length"
    ),
    "malformed": Anomaly(
        "hermes",
        '<tool_call>\n{"name": "get_weather", "arguments": {"city": [1, 2}}}\n</tool_call>',
        "The text of the call is in `message.content`, and `message.malformed` has its parts. " + CONSTRAIN,
    ),
}
# Kinds that no shipped format shows.
DERIVED_ONLY = {
    "unproven_types": "Only derived formats have it. Give [derivation](../../guides/read-any-model.md) a recorded "
    "output, or write how types are spelled into the machine file, under `unproven_types`.",
}


def read(shown: Anomaly, strict: bool = False) -> toolgram.Message:
    """Return the message of an output that a page shows."""
    fmt = toolgram.get_format(shown.format)
    if shown.ids is None:
        return fmt.parse(shown.output, tools=shown.tools, finish_reason=shown.reason, strict=strict)
    parser = fmt.parser(special_tokens=dict(shown.ids), strict=strict)
    parser.feed(shown.output, token_ids=[1, min(shown.ids.values())])
    parser.close()
    return parser.message


def anomaly_page(kind: str) -> str:
    """Return the page of a kind."""
    shown = ANOMALIES.get(kind)
    lines = [f"# {kind}", "", _sentence(KINDS[kind]), ""]
    if shown is None:
        remedy = DERIVED_ONLY[kind]
    else:
        remedy = shown.remedy
        lines += ["## Example", "", f"[`{shown.format}`](../../specs/{shown.format}.md) reads", ""]
        lines += ["```text", shown.output, "```", "", "as", "", "```json", _message(read(shown)), "```", ""]
        if _message(read(shown, strict=True)) != _message(read(shown)):
            lines += ["With `strict=True` it does not.", ""]
    return "\n".join([*lines, "## What to do", "", remedy, "", "[All anomalies](../../anomalies.md)", ""])


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _message(message: toolgram.Message) -> str:
    shown: dict[str, Any] = {"content": message.content}
    if message.reasoning:
        shown["reasoning"] = message.reasoning
    shown["tool_calls"] = [
        {"name": call.name, "arguments": call.arguments, "status": call.status} for call in message.tool_calls
    ]
    shown["anomalies"] = [
        {name: value for name, value in asdict(each).items() if value is not None and name != "why"}
        for each in message.anomalies
    ]
    return json.dumps(shown, indent=2, ensure_ascii=False)


@dataclass(frozen=True)
class Raised:
    """A class of errors: code that raises it, if a line can, and what to do about it."""

    error: type[toolgram.ToolgramError]
    remedy: str
    code: str = ""


ERRORS = (
    Raised(
        toolgram.ToolgramError,
        "Catch it to catch every error of toolgram. The message names what is wrong and what to do. No output of a "
        "model raises one.",
        'toolgram.get_format("hermes").export("bnf")',
    ),
    Raised(
        toolgram.UnknownFormat,
        "Use one of `names`, or `toolgram formats --for MODEL`. If the model is not among them, [derive a format]"
        "(../../guides/read-any-model.md) from its chat template.",
        'toolgram.get_format("hermess")',
    ),
    Raised(
        toolgram.FormatError,
        "Go to the line that the message names and do what its remedy says, then run `toolgram check` again. "
        "[Format files](../format-files.md) lists every key and tag.",
        'toolgram.load_format("my.lark", "absent.yaml")',
    ),
    Raised(
        TemplateError,
        "Give the chat template of the model itself, as in its `tokenizer_config.json`. Templates in Go's language, as "
        "Ollama has them, are not read.",
        'toolgram.derive_format("{% for m in messages %}")',
    ),
    Raised(
        OutOfBudget,
        "The template is unusually expensive. Raise the budget, use `isolate=True` to give derivation a process of its "
        "own, or give the format by name.",
    ),
    Raised(
        NoServer,
        "Start the model's server, or correct `--upstream`. `toolgram serve --wait` says how long to wait for it.",
    ),
    Raised(BadFile, "Check that the file exists, is readable, and has the columns that the command names."),
    Raised(BadTarget, "Write to another file: this one is an input, or another output of the same run."),
    Raised(MissingPackage, "Run the command at the end of the message: it fits how toolgram was installed."),
    Raised(
        Refusal,
        "The gateway answers the request with this status and message, in the error object of its API. Correct the "
        "field that `param` names.",
    ),
)


def error_page(raised: Raised) -> str:
    """Return the page of a class of errors."""
    error = raised.error
    base = next(each.__name__ for each in error.__mro__[1:])
    where = error.__module__ if not hasattr(toolgram, error.__name__) else "toolgram"
    lines = [f"# {error.__name__}", "", f"`{where}.{error.__name__}`, a subclass of `{base}`.", ""]
    lines += [inspect.cleandoc(error.__doc__ or ""), ""]
    if raised.code:
        lines += ["## Example", "", "```text", f">>> {raised.code}", _raise(raised), "```", ""]
    return "\n".join([*lines, "## What to do", "", raised.remedy, "", "[All errors](README.md)", ""])


def _raise(raised: Raised) -> str:
    try:
        eval(raised.code, {"toolgram": toolgram})
    except raised.error as error:
        text = str(error)
        return f"{type(error).__name__}: {text if len(text) < 400 else text[:300] + ' ...'}"
    raise AssertionError(f"{raised.code} does not raise {raised.error.__name__}")


def error_list() -> str:
    """Return the page that lists the classes."""
    lines = [
        "# Errors",
        "",
        "No output of a model raises an exception. What raises is a mistake that you can correct: a name that does not "
        "exist, a file that does not hold together, a missing package, a request that is not valid.",
        "",
        "| error | raised if |",
        "|---|---|",
    ]
    for raised in ERRORS:
        says = inspect.cleandoc(raised.error.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        lines.append(f"| [`{raised.error.__name__}`]({raised.error.__name__}.md) | {says} |")
    lines += [
        "",
        "The command line prints the message of an error on standard error. Its exit status is 1 if an input cannot be "
        "used and 2 if the command itself is wrong. The gateway and the plug-ins answer with the error object of the "
        "API that was called.",
        "",
    ]
    return "\n".join(lines)


def pages() -> dict[Path, str]:
    """Return every page with its place."""
    made = {FOLDER / "anomalies" / f"{kind}.md": anomaly_page(kind) for kind in KINDS}
    made |= {FOLDER / "errors" / f"{raised.error.__name__}.md": error_page(raised) for raised in ERRORS}
    return made | {FOLDER / "errors" / "README.md": error_list()}


if __name__ == "__main__":
    for place, text in pages().items():
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="\n")
