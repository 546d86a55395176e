"""A program as users write it: mypy and pyright check it against the installed wheel, and it runs."""

import toolgram
from toolgram.events import Content, Event, ToolCallEnd, ToolCallStart


def told(events: list[Event]) -> list[str]:
    """A line for each event that a user sees."""
    lines: list[str] = []
    for event in events:
        match event:
            case Content(text=text):
                lines.append(text)
            case ToolCallStart(name=name):
                lines.append(f"{name}(")
            case ToolCallEnd(status=status):
                lines.append(f") {status}")
            case _:
                pass
    return lines


parser = toolgram.get_format("mistral_v11").parser()
lines = told(parser.feed("Sure.[TOOL_CALLS]add[ARGS]{}")) + told(parser.close())
message: toolgram.Message = parser.message
name: str = message.tool_calls[0].name
assert (lines, name) == (["Sure.", "add(", ") complete"], "add"), lines
