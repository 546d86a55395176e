"""The vocabulary of a machine file: every key, tag, trigger and action, each with one line that says what it is.

Strategy: one table.  Reading checks a file against it (`machine_checks`), errors suggest from it, and pages that
explain machine files are made from it.  A key that is not here does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from toolgram.call_ids import STYLES


class Key(NamedTuple):
    """A key of a mapping: what it says, the kind of its value (see `KINDS`), and an entry that can be pasted."""

    says: str
    kind: str
    example: str
    required: bool = False
    one_of: tuple[str, ...] = ()  # the only values


KINDS: Mapping[str, str] = {
    "text": "a text",
    "texts": "a list of texts",
    "text or texts": "a text, or a list of texts",
    "names": "a name, or a list of names",
    "truth": "`true` or `false`",
    "text by text": "a mapping of texts to texts",
    "names by name": "a mapping of names, each to a name or a list of names",
    "outputs": "a list of outputs, each a text or `{prefix: ..., output: ...}`",
    "mapping": "a mapping",
    "entries": "a list of entries",
}

FILE_KEYS: Mapping[str, Key] = {
    "format": Key("What the format is, for people and for the runtime.", "mapping", "format: {title: My format}", True),
    "machine": Key(
        "The states and transitions, as the library `transitions` declares them.", "mapping", "machine: {...}", True
    ),
}

FORMAT_KEYS: Mapping[str, Key] = {
    "title": Key("The name of the format for people.", "text", "title: My format"),
    "models": Key("The models that write it.", "texts", "models: [My model]"),
    "example": Key("An output that shows the format.", "text", "example: 'Hello.'"),
    "notes": Key("What readers of the page should know.", "texts", "notes: ['Text before calls is kept.']"),
    "parser": Key("The parser of Lark that reads the grammar.", "text", "parser: lalr", one_of=("lalr", "earley")),
    "call_ids": Key("How ids are made for calls that have none.", "text", "call_ids: call_24", one_of=tuple(STYLES)),
    "special_tokens": Key(
        "Terminals that are special tokens of the tokenizer.", "texts", "special_tokens: [TOOL_CALL]"
    ),
    "stop": Key("Terminals that end a turn.", "texts", "stop: [EOS]"),
    "closed_by": Key(
        "The closing markers that a call owes: an opening marker, and what closes it after the call.",
        "names by name",
        "closed_by: {TOOL_CALL: END_TOOL_CALL}",
    ),
    "canonical": Key("Outputs whose paths an exported grammar allows.", "outputs", "canonical: ['Hello.']"),
    "calls_begin": Key(
        "What comes before the name of a call that begins with no marker, without blanks: derivation knows such "
        "templates by it.",
        "texts",
        'calls_begin: [\'{"name":"\']',
    ),
    "prompt_shows": Key(
        "Texts, without blanks, that a prompt has if it shows this format and its template prints no calls.",
        "texts",
        "prompt_shows: ['<call>{\"name\"']",
    ),
    "python_json": Key("Whether JSON in Python's spelling is read.", "truth", "python_json: true"),
    "line_calls": Key(
        "The state after the name of a declared function at the beginning of a line, if that begins a call.",
        "text",
        "line_calls: PARSING_LINE_NAME_COMPLETED",
    ),
    "bare_calls": Key(
        "The state in which a JSON object that no marker announces is a call of a declared function, and texts that "
        "models write before it.",
        "texts",
        "bare_calls: [WAITING_FOR_BARE_TOOL, '```json']",
    ),
    "unproven_types": Key("Types of which nobody knows how values are written.", "texts", "unproven_types: [object]"),
    "wrapped": Key(
        "Keys under which models write the object of all arguments, if the function has no such parameter.",
        "texts",
        "wrapped: [arguments]",
    ),
    "not_called": Key("Recipients that name a function only if it is declared.", "texts", "not_called: [user]"),
    "namespaced_names": Key(
        "Whether models write a namespace before a function's name, or its name twice (`f.f`).",
        "truth",
        "namespaced_names: true",
    ),
    "suffix": Key(
        "What every checkpoint writes at the end of its markers in another way: a sign, then letters and digits.",
        "text",
        "suffix: ':opensource'",
    ),
    "longest_match": Key("Whether the longest of several markers wins.", "truth", "longest_match: true"),
    "same_path": Key(
        "Other spellings of JSON paths: a path, and the one that it means.",
        "text by text",
        "same_path: {item.parameters: item.arguments}",
    ),
    "notation": Key(
        "The quotes of notated values: the opening one, the closing one. Of nested elements: what opening and closing "
        "tags begin with, the name of a list's items, and that of the element of any argument, if there is one.",
        "texts",
        "notation: ['<q>', '</q>']",
    ),
    "turn_start": Key("Blanks with which the text of a turn begins.", "text", 'turn_start: " "'),
    "turn_end": Key("Blanks before the token that ends a turn.", "text", 'turn_end: "\\n"'),
    "other_roles": Key("What begins a message of another role.", "texts", 'other_roles: ["<|im_start|>user"]'),
    "own_role": Key("What begins a message of the model in a prompt.", "texts", 'own_role: ["<|im_start|>assistant"]'),
    "generation_prompt": Key(
        "What the prompt has written for the assistant, if a parser gets no prefix.",
        "text",
        'generation_prompt: "<think>\\n"',
    ),
}

MACHINE_KEYS: Mapping[str, Key] = {
    "name": Key("The name of the format; that of the file if it is not given.", "text", "name: my_format"),
    "initial": Key(
        "The state in which an output begins; WAITING_FOR_TOOL_START, of content, if it is not given.",
        "text",
        "initial: WAITING_FOR_TOOL_START",
    ),
    "auto_transitions": Key(
        "Always false: there are no transitions but those in the file.", "truth", "auto_transitions: false"
    ),
    "import": Key(
        "The fragments that the machine is made of: `fragment`, its markers, and new names for its states, one by one "
        "or all with `prefix`.",
        "entries",
        "import: [{fragment: reasoning, OPEN: THINK, CLOSE: END_THINK}]",
    ),
    "home": Key(
        "The state to which a token that ends a turn leads; the initial one if it is not given.",
        "text",
        "home: WAITING_FOR_TOOL_START",
    ),
    "recovered": Key(
        "The state to enter after the rest of a broken call is skipped. Setting it adds the state MALFORMED.",
        "text",
        "recovered: TOOL_COMPLETE",
    ),
    "states": Key("The states.", "entries", "states: [{name: WAITING_FOR_TOOL_START, tags: [content]}]"),
    "transitions": Key("The transitions.", "entries", 'transitions: [{trigger: MARKER, source: A, dest: "="}]'),
}

FRAGMENT_FILE_KEYS: Mapping[str, Key] = {
    "fragment": Key("What the fragment is.", "mapping", "fragment: {about: A call in tags.}", True),
    "import": MACHINE_KEYS["import"],
    **{name: FORMAT_KEYS[name] for name in ("closed_by", "same_path", "other_roles", "own_role")},
    "states": Key("The states.", "entries", "states: [{name: REASONING, tags: [reasoning]}]"),
    "transitions": MACHINE_KEYS["transitions"],
}

FRAGMENT_KEYS: Mapping[str, Key] = {
    "about": Key("What the fragment reads, in one sentence.", "text", "about: A call in tags.", True),
    "markers": Key("The terminals that an import may give other names.", "texts", "markers: [OPEN, CLOSE]"),
    "exits": Key("The states to which it leads and that it does not have.", "texts", "exits: [TOOL_COMPLETE]"),
    "recovered": Key(
        "The state to enter after the rest of a broken call is skipped.", "text", "recovered: TOOL_COMPLETE"
    ),
    "notes": Key("What readers of a page should know.", "texts", "notes: ['Text before calls is kept.']"),
}

STATE_KEYS: Mapping[str, Key] = {
    "name": Key("The state's name.", "text", "name: SOME_STATE"),
    "names": Key("The names of several states that are alike.", "texts", "names: [ONE_STATE, ANOTHER]"),
    "tags": Key("What text inside the state means, and what else is true of it.", "texts", "tags: [content]"),
    "final": Key("Whether the output is over in it.", "truth", "final: true"),
    "text": Key("The state to which free text leads from it.", "text", "text: WAITING_FOR_TOOL_START"),
    "stop": Key("Whether a token that ends a turn is one in it.", "truth", "stop: false"),
}

TRANSITION_KEYS: Mapping[str, Key] = {
    "trigger": Key("What comes: terminals, or events.", "names", "trigger: MARKER", True),
    "source": Key('The states that it leaves; a tag for all that have it, `"*"` for all but the final one.',
                  "names", "source: A", True),
    "dest": Key('The state that it leads to; `"="` for the one that it leaves.', "text", 'dest: "="', True),
    "after": Key("The actions, in order.", "text or texts", "after: end_call"),
    "repair": Key("Whether it repairs what a model got wrong: not for strict parsers.", "truth", "repair: true"),
    "of_calls": Key("Whether its marker belongs to calls: text if none are wanted.", "truth", "of_calls: true"),
}  # fmt: skip

MEANINGS: Mapping[str, str] = {
    "content": "Text for the user.",
    "reasoning": "Text of the model's reasoning.",
    "name": "The name of a function.",
    "call_id": "The id of a call.",
    "arguments": "A JSON object, or Python keyword arguments.",
    "argument_key": "The key of one argument.",
    "value": "The value of one argument.",
    "ignored": "A JSON value that belongs to no call.",
    "malformed": "What is left of a call that could not be read.",
}


class ValueType(NamedTuple):
    """How a state with this tag reads the value of an argument.

    `to_marker` and `alone` name the island (in the table of `islands`) that reads it up to a marker, and the one that
    finds its end by itself; "" if none does. `samples` are texts that `check` puts in its place.
    """

    says: str
    to_marker: str = ""
    alone: str = ""
    samples: tuple[str, ...] = ()


UNTYPED = ValueType("The value is read as its parameter says.", to_marker="tagged", samples=("v", "1"))

VALUE_TYPES: Mapping[str, ValueType] = {
    "text": ValueType("The value is always text.", to_marker="tagged", samples=UNTYPED.samples),
    "json": ValueType("The value is always JSON.", to_marker="tagged", alone="json_value", samples=('"v"', "1")),
    "trimmed": ValueType(
        "The value is read as its parameter says, without the blanks around it.",
        to_marker="tagged",
        samples=UNTYPED.samples,
    ),
    "xml": ValueType(
        "The value is read as its parameter says, without the marks of CDATA sections and with entities decoded.",
        to_marker="escaped",
        samples=UNTYPED.samples,
    ),
    "html": ValueType("The text has entities (`&lt;`), which are decoded.", to_marker="escaped", samples=("v", "1")),
    "url": ValueType("The text is as in a URL: `%20` is decoded.", to_marker="escaped", samples=("v", "1")),
    "string": ValueType("The text is as in a JSON string: `\\n` is decoded.", to_marker="escaped", samples=("v", "1")),
    "notated": ValueType("The value is JSON with the quotes of `notation:`.", alone="notated", samples=('"v"', "1")),
    "elements": ValueType(
        "The value has elements inside, with the tags of `notation:`; the tag that closes its own ends it.",
        alone="elements",
    ),
}


ESCAPED = ("html", "url", "string")  # tags of values, content and reasoning whose text is escaped
AS_DECLARED = ("", "trimmed", "xml", *ESCAPED)  # tags of values that are read as their parameter says


def value_type(tag: str) -> ValueType:
    """Return what a state reads that has this tag for its values, or with "" none."""
    return VALUE_TYPES[tag] if tag else UNTYPED


TRAITS: Mapping[str, str] = {
    "held": "What is read is not certain yet: it is sent, or becomes text, later.",
    "python": "The arguments are Python keyword arguments.",
    "encoded": "The arguments are an object, or one that is encoded as a JSON string.",
    **{tag: kind.says for tag, kind in VALUE_TYPES.items()},
    "echo": "The marker after the value repeats the argument's key.",
    "to_user": "The text of a message to the user: a call in it counts only if it is the whole message.",
}

TAGS: Mapping[str, str] = {**MEANINGS, **TRAITS}

ACTIONS: Mapping[str, str] = {
    "name": "The text is the name of the function.",
    "no_call": "What is held is not a call: its markers are dropped, and text follows.",
    "called_name": "No call, unless functions are declared, and the name is that of one.",
    "declared_name": "No call, unless the name before is that of a declared function, perhaps followed by a number.",
    "call_id": "The text is the id of the call.",
    "call_id_part": "The text is part of the id of the call, after its other parts.",
    "late_call_id": "The text is the id of the call, which has begun with another one.",
    "start_call": "The call is certain.",
    "no_arguments": "The arguments are `{}`.",
    "open_arguments": "Arguments that come one by one begin.",
    "argument_key": "The text is the key of the next argument.",
    "unclosed_value": "The value before has no closing marker.",
    "unclosed_argument": "The marker of the next argument comes before the value is closed: the call is malformed.",
    "unclosed_envelope": "Brackets or markers around the arguments are not closed.",
    "unclosed_arguments": "JSON arguments are closed at this place.",
    "unopened_reasoning": "The marker closes a thought that nothing has opened.",
    "unusual_form": "What comes is written as models of this family write it at times.",
    "close_arguments": "Arguments that come one by one are over.",
    "end_call": "The call is complete.",
    "fail_call": "The open call, if there is one, is malformed.",
}

ISLAND_TRIGGERS: Mapping[str, str] = {
    "object_start": "The arguments begin.",
    "object_end": "The arguments are over.",
    "object_empty": "The parentheses of Python arguments are empty.",
    "value_end": "A value that ends by itself is over.",
}

RECOVERY_TRIGGERS: Mapping[str, str] = {
    "malformed": "The text does not fit.",
    "unclosed": "The text does not fit, and only closers around whole arguments are missing.",
    "recovered": "What is left of a broken call is over.",
}

TEXT, END, UNCLOSED = "TEXT", "end", "unclosed"
STOP = "stop"  # in a machine file: any of the tokens that end a turn
