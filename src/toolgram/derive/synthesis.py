"""From what was found out about a template to a format: which skeletons, put together how.

Strategy: text (content, reasoning, their wrappers) and calls are written by skeletons that know nothing of each other;
here they are put into one draft.  Nothing of any model is known here: the findings decide, and where they do not
suffice the format reads text only and says so.
"""

from __future__ import annotations

from toolgram.derive.drafts import Draft
from toolgram.derive.json_skeleton import add_json_calls
from toolgram.derive.python_skeleton import add_python_calls, is_python
from toolgram.derive.rebuilding import NotExpressible
from toolgram.derive.result import DiffAnalysisResult, ToolFormat
from toolgram.derive.tag_skeleton import add_tag_calls
from toolgram.derive.text_skeleton import TextSkeleton
from toolgram.spec import Literal


def synthesise(result: DiffAnalysisResult, name: str, eos_token: str) -> Draft:
    """The two files for a template. Raises NotExpressible where its calls cannot be read by any skeleton."""
    draft = Draft(name, title=f"Derived: {name}")
    text = TextSkeleton(draft, result, eos_token)
    leaving: list[str] = []
    if result.calls is not None:
        fields = result.json_fields
        if is_python(result.calls):
            leaving = add_python_calls(draft, result, text.states)
        elif result.tool_format is ToolFormat.JSON_NATIVE and not fields.flat_arguments and _holds_arguments(result):
            leaving = add_json_calls(draft, result, text.states)
        else:
            leaving = add_tag_calls(draft, result, text.states)
    text.finish(leaving, calls=result.calls is not None)
    _describe(draft, result)
    return draft


def without_calls(result: DiffAnalysisResult, name: str, eos_token: str) -> Draft:
    """A format that reads content and reasoning, and takes calls for text."""
    draft = Draft(name, title=f"Derived: {name}")
    TextSkeleton(draft, result, eos_token).finish([], calls=False)
    _describe(draft, result)
    return draft


def _holds_arguments(result: DiffAnalysisResult) -> bool:
    fields = result.json_fields
    return fields.name_is_key or bool(fields.name_field and fields.args_field)


def _describe(draft: Draft, result: DiffAnalysisResult) -> None:
    draft.comment = (
        f"{draft.name}: derived from a chat template.\n"
        f"Reasoning: {result.reasoning_mode.value}. Content: {result.content_mode.value}. "
        f"Calls: {result.tool_format.value}."
    )
    used = {shape.text: name for name, shape in draft.terminals.items() if isinstance(shape, Literal)}
    triggers = {trigger for _, trigger in draft.rows}
    special = [used[token] for token in result.preserved_tokens if used.get(token) in triggers]
    special += [name for name in draft.terminals if name.startswith("TURN_END") and name not in special]
    if special:
        draft.about["special_tokens"] = special
    if result.prompts["unset"].opened:
        draft.about["generation_prompt"] = result.prompts["unset"].opened
    if draft.states.get("PARSING_ARGUMENTS", ("",))[-1:] != ("python",) and "IN_LIST_COMPLETE" in draft.states:
        draft.about["python_json"] = True


__all__ = ["NotExpressible", "synthesise", "without_calls"]
