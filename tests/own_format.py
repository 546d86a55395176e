"""A throw-away format that makes it hard for whoever writes it down: names that are words of a dialect, marker text
that is made of what dialects quote, escape and end a line with."""

from __future__ import annotations

from pathlib import Path

MARKER = '<"a";b|c>&{d}%%:#1;`--\\n[e]'
GRAMMAR = r"""// A format of no model.
%import .common.json (arguments)

start: (TEXT | call)*
call: OPEN NAME COLON WS? arguments

OPEN: "<\"a\";b|c>&{d}%%:#1;`--\\n[e]"
NAME: /[a-z]{1,8}/
COLON: ":"
WS: /[ \t\r\n]{1,8}/
TEXT: /(?:(?!<"a";)[\s\S])+/
"""
MACHINE = """
format:
  title: 'Own | "format"; <b> of mine'
  models: [Nobody]
  special_tokens: [OPEN]
  example: 'Hello <"a";b|c>&{d}%%:#1;`--\\n[e]add:{"a": 1}'
  notes: ['None, `really`.']
machine:
  name: own
  initial: end
  auto_transitions: false
  states:
    - {name: end, tags: [content]}
    - {name: note it, tags: [name, held]}
    - {name: node, tags: [held]}
    - {name: "a:b", tags: [held]}
    - {name: PARSING_ARGUMENTS, tags: [arguments]}
    - {name: RECOVERING, tags: [malformed]}
    - {name: ALL_TOOLS_COMPLETE, final: true}
  transitions:
    - {trigger: TEXT, source: end, dest: "="}
    - {trigger: OPEN, source: end, dest: note it}
    - {trigger: NAME, source: note it, dest: node, after: name}
    - {trigger: COLON, source: node, dest: "a:b"}
    - {trigger: WS, source: "a:b", dest: "="}
    - {trigger: object_start, source: "a:b", dest: PARSING_ARGUMENTS, after: start_call}
    - {trigger: object_end, source: PARSING_ARGUMENTS, dest: end, after: end_call}
    - {trigger: malformed, source: PARSING_ARGUMENTS, dest: RECOVERING, after: fail_call}
    - {trigger: recovered, source: RECOVERING, dest: end}
    - {trigger: end, source: [end, PARSING_ARGUMENTS, RECOVERING], dest: ALL_TOOLS_COMPLETE}
"""


def write_own_format(folder: Path) -> tuple[Path, Path]:
    """Write its two files; returns their paths."""
    grammar, machine = folder / "own.lark", folder / "own.yaml"
    grammar.write_text(GRAMMAR, encoding="utf-8")
    machine.write_text(MACHINE, encoding="utf-8")
    return grammar, machine
