"""What the source of a template reads: clues, which say what is worth trying.

Strategy: a rendering shows only what was asked for. The source says what may be asked: by which keys a template reads
thoughts, which variables change what it writes, and at which texts it cuts an answer. Only a rendering counts.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from typing import Any

from jinja2 import nodes

from toolgram.derive.comparing import opening_of
from toolgram.limits import MAX_CLUES

_THOUGHT = r"(?:think|thought|reason|analysis|rationale|scratch|(?<![a-z])cot(?![a-z]))"
_KEY = re.compile(rf"\w{{0,32}}{_THOUGHT}\w{{0,32}}", re.IGNORECASE)  # bounded, since texts of any length are tried
_MARKER = re.compile(rf"[<\[][^<>\[\]\s]{{0,32}}{_THOUGHT}[^<>\[\]\s]{{0,32}}[>\]]", re.IGNORECASE)
_CUTS = {"split", "rsplit", "partition", "rpartition"}
_USUAL = {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}


class Clues:
    """What a source has: `names` that it looks up, and those `called`; `keys` of thoughts; `settings` of variables that
    may matter; texts that it `cuts` others at; `thought_ends`, which look like the end of a thought."""

    def __init__(self, parts: Sequence[nodes.Node], known: Container[str]) -> None:
        names = [part for part in parts if isinstance(part, nodes.Name)]
        own = {name.name for name in names if name.ctx != "load"}
        self.names = dict.fromkeys(name.name for name in names if name.ctx == "load")
        calls = [part for part in parts if isinstance(part, nodes.Call)]
        self.called = {call.node.name for call in calls if isinstance(call.node, nodes.Name)}
        free = [name for name in self.names if not (name in _USUAL or name in known or name in self.called)]
        free.sort(key=lambda name: name in own)  # a template may set one that is given
        self.settings = _settings(parts, free)
        keys = [*(part.attr for part in parts if isinstance(part, nodes.Getattr)), *_texts(parts)]
        self.keys = list(dict.fromkeys(filter(_KEY.fullmatch, keys)))[:MAX_CLUES]
        ends = (marker for text in _texts(parts) for marker in _MARKER.findall(text) if opening_of(marker))
        self.thought_ends = list(dict.fromkeys(ends))[:MAX_CLUES]
        cuts = [call for call in calls if isinstance(call.node, nodes.Getattr) and call.node.attr in _CUTS]
        self.cuts = list(dict.fromkeys((*self.thought_ends, *_texts(arg for call in cuts for arg in call.args))))


def _texts(parts: Iterable[nodes.Node]) -> list[str]:
    """Return the texts that are written in the source."""
    found = (part.data if isinstance(part, nodes.TemplateData) else getattr(part, "value", "") for part in parts)
    return [text for text in found if isinstance(text, str)]


def _settings(parts: Sequence[nodes.Node], free: Sequence[str]) -> list[dict[str, Any]]:
    """Return each variable on, off, and with each text that it is compared with; at last, all of them on."""
    compares = [list(part.find_all((nodes.Name, nodes.Const))) for part in parts if isinstance(part, nodes.Compare)]
    names = [(part.name, each) for each in compares for part in each if isinstance(part, nodes.Name)]
    compared = [{name: text} for name, each in names if name in free for text in _texts(each)]
    switched: list[dict[str, Any]] = [{name: value} for name in free for value in (True, False)]
    return [*switched[:MAX_CLUES], *compared[:MAX_CLUES], dict.fromkeys(free, True)]
