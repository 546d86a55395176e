"""The reference reading of a format's two files: Lark parses the text, `transitions` runs the machine.

Strategy: use the libraries as they are.  The reference parser turns Lark's tree of a *complete, well-formed* output
into a message.  The reference machine is the real `transitions` machine; its actions only record their names.  Both
are slow. The property tests and `toolgram check` compare the default driver with them.

A tree is read by names.  `text` and the terminal TEXT are content, THOUGHT is reasoning; in a rule such as `html_text`
they are escaped.  `call`, `bare_call`,
`open_call`, `function`, `envelope` and `bare_envelope` are calls.  Inside a call, `NAME` or `name_field` is its name,
`arguments` or `arguments_field` its arguments, and `ID` or `id_field` its id; in each `argument`, a `KEY` precedes
its value.  Everything else is structure and makes a seam.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput
from transitions.extensions.markup import MarkupMachine
from transitions.extensions.states import Tags, add_state_features

from toolgram.errors import ToolgramError
from toolgram.events import Status
from toolgram.islands import read_whole, value_island, value_kind
from toolgram.islands.escapes import ESCAPES
from toolgram.islands.python_literals import PythonScanner
from toolgram.message import Message, ToolCall
from toolgram.program.free_text import whole_grammar
from toolgram.spec.data import Spec, Transition, rows_of
from toolgram.spec.declarations import short_name
from toolgram.spec.vocabulary import ACTIONS, ESCAPED, value_type

if TYPE_CHECKING:
    from toolgram.islands import MarkedValue

_CALLS = {
    "call",
    "repair_call",
    "repair_tagged",
    "repair_function",
    "repair_open",
    "repair_empty",
    "bare_call",
    "open_call",
    "function",
    "envelope",
    "bare_envelope",
    "inner_envelope",
}
ESCAPED_TEXT = re.compile(f"({'|'.join(ESCAPED)})_(text|thought)")
_MEANINGS = {"text": "content", "thought": "reasoning"}
Node = Tree[Token] | Token


@add_state_features(Tags)
class _TaggedMachine(MarkupMachine):
    """`transitions` with states that carry tags, as the machine files declare them."""


class ReferenceMachine:
    """The real `transitions` machine of a format, as a model that can be driven trigger by trigger.

    `state` is its state, `actions` the actions that its transitions have named, `rows` its transitions by source and
    trigger. `trigger` raises
    `transitions.MachineError` (or AttributeError) if the machine has no such transition. Costs ~1 ms to make and
    ~13 us per trigger.
    """

    state: str

    def __init__(self, spec: Spec) -> None:
        self.rows = rows_of(spec)
        self.actions: list[str] = []
        for action in ACTIONS:
            setattr(self, action, lambda action=action: self.actions.append(action))
        markup = copy.deepcopy(spec.machine_dict["machine"])
        for row in markup["transitions"]:
            for key in ("repair", "of_calls"):  # which `transitions` does not know
                row.pop(key, None)
        self.machine = _TaggedMachine(model=self, **{**markup, "auto_transitions": False})

    def set_state(self, state: str) -> None:
        """Go to `state`, as after rejected held text, for which there is no transition."""
        self.machine.set_state(state, self)

    def triggers(self) -> list[str]:
        """Return the triggers of the current state."""
        return list(self.machine.get_triggers(self.state))

    def trigger(self, name: str) -> bool:  # replaced by transitions on the instance; here for readers and type checkers
        """Follow the transition of this name."""
        raise NotImplementedError(name)


del ReferenceMachine.trigger


def reference_grammar(spec: Spec) -> Lark:
    """Return the grammar as Lark builds it. Earley grammars are slow, so keep texts short."""
    options: dict[str, Any] = {"parser": spec.parser, "propagate_positions": True, "maybe_placeholders": False}
    path = Path(spec.grammar_path)
    return Lark(
        whole_grammar(spec), source_path=str(path), import_paths=[*spec.import_paths, str(path.parent)], **options
    )


def may_end_here(spec: Spec, grammar: Lark, text: str) -> bool:
    """Return whether Lark's interactive parser, stepped through the tokens of `text`, could end there (LALR only).

    Raises ToolgramError if it refuses a token: no output begins with this text.
    """
    parser = grammar.parse_interactive(text)
    try:
        parser.exhaust_lexer()
    except UnexpectedInput as error:
        raise ToolgramError(f"{spec.name}: the grammar refuses this text at {error.line}:{error.column}") from None
    return "$END" in parser.accepts()  # type: ignore[no-untyped-call]


def reference_parse(spec: Spec, grammar: Lark, text: str) -> Message:
    """Return the message of a complete, well-formed output. Raises ToolgramError if the grammar does not accept it."""
    try:
        tree = grammar.parse(text)
    except UnexpectedInput as error:
        raise ToolgramError(
            f"{spec.name}: the grammar does not accept this text at {error.line}:{error.column}"
        ) from None
    content: list[str] = []
    reasoning: list[str] = []
    calls: list[ToolCall] = []
    seam = {"content": False, "reasoning": False}
    for kind, value in _pieces(spec, tree, text):
        if kind == "seam" or kind == "call":
            seam = {"content": True, "reasoning": True}
            for segments in (content, reasoning):
                if segments:
                    segments[-1] = segments[-1].rstrip()
            if isinstance(value, ToolCall):
                calls.append(value)
            continue
        segments = content if kind == "content" else reasoning
        piece = str(value)
        if seam[kind]:
            piece = piece.lstrip()
        if piece and (seam[kind] or not segments):
            segments.append("")
        if piece:
            segments[-1] += piece
            seam[kind] = False
    finish = "tool_calls" if any(call.status == "complete" for call in calls) else "stop"
    return Message(_joined(content), _joined(reasoning), calls, finish_reason=finish)


def gist(message: Message) -> tuple[str | None, str | None, list[tuple[str, str, Status]]]:
    """Return what two readings of one output must agree on: all but the notation of the arguments."""
    calls = [(call.name, _respelled(call.arguments), call.status) for call in message.tool_calls]
    return message.content, message.reasoning, calls


def _respelled(arguments: str) -> str:
    """Return arguments in one notation; those that were cut off stay as they are."""
    try:
        return json.dumps(json.loads(arguments))
    except ValueError:
        return arguments


def _joined(segments: list[str]) -> str | None:
    text = " ".join(segment for segment in segments if segment.strip())
    return text if text.strip() else None


def _pieces(spec: Spec, tree: Tree[Token], text: str) -> Iterator[tuple[str, str | ToolCall]]:
    pending: list[Node] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Token):
            kind = short_name(node.type)
            if kind in ("TEXT", "THOUGHT"):
                yield ("content" if kind == "TEXT" else "reasoning"), str(node)
            else:
                yield "seam", str(node)
        elif short_name(node.data) in _CALLS and not any(node.find_data("wrapped_calls")):
            yield "call", _call(spec, node, text)
        elif short_name(node.data) == "call_list" and not any(
            short_name(each.data) in _CALLS for each in node.iter_subtrees()
        ):
            yield "seam", ""  # an empty list
        elif escaped := ESCAPED_TEXT.fullmatch(short_name(node.data)):
            tokens = [str(token) for token in node.scan_values(lambda value: isinstance(value, Token))]
            yield _MEANINGS[escaped[2]], ESCAPES[escaped[1]].decoded("".join(tokens))
        elif short_name(node.data) == "text":
            yield "content", "".join(str(token) for token in node.scan_values(lambda value: isinstance(value, Token)))
        else:
            pending.extend(reversed(node.children))


def _call(spec: Spec, tree: Tree[Token], text: str) -> ToolCall:
    name = short_name(tree.data)
    cut = name == "bare_call"  # the end of a whole output closes any other
    call = ToolCall("", "", "{}", "truncated" if cut else "complete")
    pending: list[Node] = list(reversed(tree.children))
    members: list[str] = []
    while pending:
        node = pending.pop()
        name = short_name(node.type if isinstance(node, Token) else node.data)
        if isinstance(node, Token):
            if name in ("NAME", "ID"):
                setattr(call, name.lower(), str(node))
        elif name in ("argument", "open_argument"):
            members += _members(spec, node, text)
            call.arguments = f"{{{', '.join(members)}{'' if cut else '}'}"
        elif name in ("arguments", "bare_arguments"):
            call.arguments = _arguments(text[node.meta.start_pos : node.meta.end_pos])
        elif not _take_field(call, name, node):
            pending.extend(reversed(node.children))
    return call


def _take_field(call: ToolCall, name: str, node: Tree[Token]) -> bool:
    """Keep what a member of the JSON of a call says; return False if its parts say it."""
    if name in ("name_field", "id_field"):
        setattr(call, name.removesuffix("_field"), json.loads(_last(node)))
    elif name == "arguments_field" and isinstance(node.children[-1], Token):
        call.arguments = json.loads(_last(node)) or "{}"
    elif name == "function_field" and isinstance(node.children[-1], Token):
        call.name = json.loads(_last(node))
    else:
        return name == "type_field"
    return True


_TAGS = {"raw": "", "literal": "json"}  # rules of values that are not called after their tag


def _members(spec: Spec, tree: Tree[Token], text: str) -> Iterator[str]:
    """Return tagged arguments as members of a JSON object, as if no types were declared."""
    key = ""
    own = {row.trigger for row in _value_rows(spec) if "unclosed_value" not in row.actions}
    for node, following in zip(tree.children, [*tree.children[1:], None], strict=True):
        name = short_name(node.type if isinstance(node, Token) else node.data)
        if isinstance(node, Token):
            key = str(node).rstrip() if name == "KEY" else key
            continue
        source = "" if node.meta.empty else text[node.meta.start_pos : node.meta.end_pos]
        if not (isinstance(following, Token) and short_name(following.type) in own):
            source = source.removesuffix("\n").removesuffix(
                "\r"
            )  # a line end in front of another marker belongs to that
        stem = name.removesuffix("_value")
        tag = _TAGS.get(stem, stem)
        if name != "json_value" and value_type(tag).to_marker:
            marked = cast("MarkedValue", value_island(value_kind(tag, alone=False), tag, None, ()))
            marked.read(source, 0, True)
            source = marked.out + marked.finish()
        elif name != "json_value":
            value = value_island(value_kind(tag, alone=True), "", None, spec.notation, key)
            _, source = read_whole(value, source, 0)
        yield f"{json.dumps(key)}: {source}"


def _value_rows(spec: Spec) -> Iterator[Transition]:
    return (row for row in spec.transitions if spec.states[row.source].meaning == "value")


def _last(tree: Tree[Token]) -> str:
    token = tree.children[-1]
    assert isinstance(token, Token)
    return str(token)


def _arguments(source: str) -> str:
    if source[0] == "{":
        return source
    if source[0] == '"':
        return str(json.loads(source)) or "{}"
    scanner = PythonScanner()
    scanner.read(source, 1)
    return scanner.out
