"""The templates written for these tests, and which of them other tests leave out."""

import json
import re
from pathlib import Path
from typing import Any

import toolgram
from toolgram.derive.report import DeriveReport
from toolgram.derive.result import DiffAnalysisResult

TEMPLATES = Path(__file__).parent / "templates"
# Derived and read, and exported; but vLLM is not told where their thoughts end.
UNTOLD_ENDS = frozenset({"action_lines", "addressed_parts", "thought_message"})
# Derived and read; but a prompt ends inside a marker, one header begins thoughts, answers and calls alike, or only the
# next argument ends a value. Some exports are refused, and vLLM is not told where their thoughts end.
READ_ONLY = frozenset(
    {
        "header_per_part", "open_values", "python_in_fence", "python_raw_in_markers", "recipient_in_prompt",
        "role_per_call", "url_values",
    }
)  # fmt: skip
# Parts of templates that rows name: for each call and what is in it, and for each of its arguments.
PARTS = {
    "CALLS": "{% for c in m.tool_calls %}", "NAME": "{{ c.function.name }}",
    "ARGUMENTS": "{{ c.function.arguments|tojson }}", "EACH": "{% for k, v in c.function.arguments.items() %}",
    "VALUE": "{{ v if v is string else v|tojson }}", "CONTENT": "{{ m.content if m.content }}", "END": "{% endfor %}",
}  # fmt: skip


def source(name: str) -> str:
    """The text of one of these templates."""
    return (TEMPLATES / f"{name}.jinja").read_text(encoding="utf-8")


def derived(name: str) -> toolgram.Format:
    """The format that is derived from one of them."""
    return toolgram.derive_format(source(name), bos_token="<s>", eos_token="</s>")


def template_of(call: str, content: str = "{{ m.content if m.content }}", before: str = "", after: str = "") -> str:
    """A template of turns: how a call is written, with the parts that it names, content, and what is around calls."""
    calls = f"$CALLS{call}$END"
    if before or after:
        calls = f"{{% if m.tool_calls %}}{before}{calls}{after}{{% endif %}}"
    turn = f"{{% for m in messages %}}<|{{{{ m.role }}}}|>{content}{calls if call else ''}<|end|>$END"
    return filled(turn) + "{% if add_generation_prompt %}<|assistant|>{% endif %}"


def report_of(fmt: toolgram.Format) -> DeriveReport:
    """The report of a derived format."""
    assert fmt.report is not None
    return fmt.report


def analysis_of(fmt: toolgram.Format) -> DiffAnalysisResult:
    """What derivation found in the template."""
    found = report_of(fmt).analysis
    assert found is not None
    return found


def calls_of(message: toolgram.Message) -> list[tuple[str, Any]]:
    """The name and the arguments of each call, all of them complete."""
    assert all(call.status == "complete" for call in message.tool_calls)
    return [(call.name, json.loads(call.arguments)) for call in message.tool_calls]


def filled(text: str) -> str:
    """A template with the parts that it names, as `$NAME`."""
    return re.sub(r"\$(" + "|".join(PARTS) + ")", lambda found: PARTS[found[1]], text)
