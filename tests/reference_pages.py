"""The pages of anomalies and of errors, an address for each: `python -m tests.reference_pages` writes them.

Strategy: what a page says of a kind or a class is the code's own: `anomalies.KINDS`, docstrings. Its example is an
output that a format reads here, or code that raises here. Only these and the remedies are written by hand, in
`reference_pages.yaml`.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import yaml

import toolgram
from toolgram.anomalies import KINDS

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
PACKAGE = Path(toolgram.__file__).parent
WEATHER = {"city": {"type": "string"}, "days": {"type": "integer"}}
TOOLS = [{"name": "get_weather", "parameters": {"type": "object", "properties": WEATHER, "required": ["city"]}}]


@dataclass(frozen=True)
class Anomaly:
    """An output with the anomaly, and what a developer can do about it."""

    format: str
    output: str
    remedy: str
    tools: Any = None
    reason: str | None = None
    ids: Mapping[str, int] | None = None  # of special tokens; the output then comes with those of one


SAID: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "reference_pages.yaml").read_text(encoding="utf-8"))
ANOMALIES = {
    kind: Anomaly(**{**row, "tools": TOOLS if row.get("tools") else None}) for kind, row in SAID["anomalies"].items()
}
DERIVED_ONLY: dict[str, str] = SAID["derived_only"]


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
    shown, remedy = ANOMALIES.get(kind), DERIVED_ONLY.get(kind)
    lines = [f"# {kind}", "", KINDS[kind][0].upper() + KINDS[kind][1:] + ".", ""]
    if shown is not None:
        remedy = shown.remedy
        lines += ["## Example", "", f"[`{shown.format}`](../../specs/{shown.format}.md) reads", ""]
        lines += ["```text", shown.output, "```", "", "as", "", "```json", _message(read(shown)), "```", ""]
        if _message(read(shown, strict=True)) != _message(read(shown)):
            lines += ["With `strict=True` it does not.", ""]
    return "\n".join([*lines, "## What to do", "", str(remedy), "", "[All anomalies](../../anomalies.md)", ""])


def _message(message: toolgram.Message) -> str:
    shown: dict[str, Any] = {"content": message.content}
    if message.reasoning:
        shown["reasoning"] = message.reasoning
    shown["tool_calls"] = [{"name": c.name, "arguments": c.arguments, "status": c.status} for c in message.tool_calls]
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


ERRORS = [Raised(resolve_name(row["error"]), row["remedy"], row.get("code", "")) for row in SAID["errors"]]


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


ERROR_LIST = """# Errors

No output of a model raises an exception. What raises is a mistake that you can correct: a name that does not \
exist, a file that is not consistent, a missing package, a request that is not valid.

| error | raised if |
|---|---|
{rows}

The command line prints the message of an error on standard error. Its exit status is 1 if an input cannot be \
used and 2 if the command itself is wrong. The gateway and the plug-ins answer with the error object of the \
API that was called.
"""


def error_list() -> str:
    """Return the page that lists the classes."""
    rows = []
    for raised in ERRORS:
        says = inspect.cleandoc(raised.error.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        rows.append(f"| [`{raised.error.__name__}`]({raised.error.__name__}.md) | {says} |")
    return ERROR_LIST.format(rows="\n".join(rows))


def pages() -> dict[Path, str]:
    """Return every page with its place."""
    made = {FOLDER / "anomalies" / f"{kind}.md": anomaly_page(kind) for kind in KINDS}
    made |= {FOLDER / "errors" / f"{raised.error.__name__}.md": error_page(raised) for raised in ERRORS}
    return made | {FOLDER / "errors" / "README.md": error_list()}


if __name__ == "__main__":
    for place, text in pages().items():
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8", newline="\n")
