"""toolgram, through its public API: one parser per stream, `feed`, `close`."""

from __future__ import annotations

import toolgram
from benchmarks.contenders import Contender, Heard, Prepared, Stream, as_they_are
from benchmarks.workloads import Workload


def hear(results: list[list[toolgram.Event]]) -> Heard:
    """Events, added up."""
    heard = Heard()
    for event in (event for events in results for event in events):
        match event:
            case toolgram.Content(text):
                heard.content += text
            case toolgram.Reasoning(text):
                heard.reasoning += text
            case toolgram.ToolCallStart(index, _, name):
                heard.call(index, name, None)
            case toolgram.ToolCallDelta(index, arguments):
                heard.call(index, None, arguments)
    return heard


def prepare(workload: Workload, written_as: str) -> Prepared:
    """The format is loaded and compiled once."""
    fmt = toolgram.get_format(written_as)
    tools = workload.tools

    def open_stream() -> Stream:
        parser = fmt.parser(tools=tools)
        return parser.feed, parser.close

    return Prepared(open_stream, as_they_are, hear)


def load(name: str) -> Contender:
    """Nothing to set up."""
    return prepare
