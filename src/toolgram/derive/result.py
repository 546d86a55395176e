"""What the analysis of a chat template says, in the field's terms.

Strategy: the truth is kept exactly as rendered.  A turn is a few *shapes*, one per combination of parts that a message
may have; a call is a *pattern* of constant texts and slots.  The names that people use for such things (reasoning
start, section end) are read off those, in `MarkerRegistry` and `JsonFields`, for whoever writes a grammar.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any, TypeAlias

from toolgram.derive.errors import TemplateError
from toolgram.observing.probes import Call


@dataclass(frozen=True, slots=True)
class Tokens:
    """What a tokenizer says besides its template: the first token, the last, other special ones, others that end."""

    bos_token: str = ""
    eos_token: str = ""
    special: Sequence[str] = ()
    ends: Sequence[str] = ()


class ReasoningMode(Enum):
    """How reasoning is written."""

    NONE = "none"  # the template neither prints it nor opens it in the generation prompt
    TAG_BASED = "tag_based"  # between two markers, which the model writes
    DELIMITER = "delimiter"  # from the beginning of the turn up to a marker
    FORCED_OPEN = "forced_open"  # the generation prompt writes the start marker
    FORCED_CLOSED = "forced_closed"  # the generation prompt writes both when thinking is off, none when it is on
    TOOLS_ONLY = "tools_only"  # printed only together with calls


class ContentMode(Enum):
    """How content is written."""

    PLAIN = "plain"
    ALWAYS_WRAPPED = "always_wrapped"


class ToolFormat(Enum):
    """How a call is written."""

    NONE = "none"  # the template prints no calls
    JSON_NATIVE = "json_native"  # a JSON object holds name and arguments
    TAG_WITH_JSON = "tag_with_json"  # a name in markers, then a JSON object
    TAG_WITH_TAGGED = "tag_with_tagged"  # a name in markers, then each argument in markers
    PYTHON_CALLS = "python_calls"  # name(key=value, ...)


class ArgumentsStyle(Enum):
    """How the arguments of a call are written."""

    JSON = "json"  # an object
    JSON_STRING = "json_string"  # an object, encoded as a JSON string
    PYTHON_DICT = "python_dict"
    TAGGED = "tagged"  # one by one


class ValueEncoding(Enum):
    """How one argument value is written."""

    RAW = "raw"  # text as it is
    JSON = "json"
    PYTHON = "python"  # str() of the Python value
    PYTHON_REPR = "python_repr"  # repr(), with quotes around text
    JSON_ESCAPED = "json_escaped"  # as inside a JSON string, without its quotes
    OMITTED = "omitted"  # the argument is not written at all
    EMPTY = "empty"  # nothing is written in the place of the value
    UNKNOWN = "unknown"


class Slot(Enum):
    """What varies in a call."""

    NAME = "name"
    ARGUMENTS = "arguments"
    ID = "id"
    INDEX = "index"  # a counter over the calls of a turn


class ArgumentSlot(Enum):
    """What varies in a tagged argument."""

    KEY = "key"
    VALUE = "value"


class Part(Enum):
    """A part of an assistant message."""

    REASONING = "reasoning"
    CONTENT = "content"
    CALLS = "calls"


Pattern: TypeAlias = tuple[str | Slot, ...]
ArgumentPattern: TypeAlias = tuple[str | ArgumentSlot, ...]
Parts: TypeAlias = frozenset[Part]


@dataclass(frozen=True, slots=True)
class Shape:
    """A turn with a certain combination of parts: the constant texts and the parts between them, in their order.

    `dropped` are parts that the message has and the template does not print. `texts` is one longer than `parts`; the
    role header is not in them, the turn end is the end of the last.
    """

    parts: tuple[Part, ...]
    texts: tuple[str, ...]
    dropped: Parts = frozenset()


@dataclass(frozen=True, slots=True)
class ValueStyle:
    """A tagged value of one JSON type: its encoding, and the texts right before and after it, up to the next slot."""

    encoding: ValueEncoding
    before: str
    after: str
    escaped: str = ""  # the tag of a value that is escaped besides: "html" or "url"
    wrapped: tuple[str, str] | None = None  # markers around some texts, inside those of a value: `<![CDATA[`, `]]>`


@dataclass(frozen=True, slots=True)
class ArgumentsFormat:
    """How arguments are written: as one value, or tagged, `pattern` after `pattern` with `separator` between. `shown`
    are those of the first probe."""

    style: ArgumentsStyle
    shown: str = ""
    pattern: ArgumentPattern = ()
    separator: str = ""
    values: Mapping[str, ValueStyle] = field(default_factory=dict)  # by JSON type: string, integer, number, ...


@dataclass(frozen=True, slots=True)
class CallsFormat:
    """How the calls of a turn are written: section start, the pattern of each with `separator` between, section end.

    `single` is the (start, end) of a section with one call, if it is not that of a section with several.
    """

    pattern: Pattern
    arguments: ArgumentsFormat
    section_start: str = ""
    section_end: str = ""
    separator: str = ""
    single: tuple[str, str] | None = None
    index_base: int = 0
    parallel: bool = True


def filled(pattern: Pattern, values: Mapping[Slot, str]) -> str:
    """Return one call, with these texts in its slots."""
    return "".join(part if isinstance(part, str) else values[part] for part in pattern)


def shown(pattern: Pattern | ArgumentPattern) -> str:
    """Return a pattern for people: its texts quoted, its slots in braces."""
    return repr([part if isinstance(part, str) else f"{{{part.value}}}" for part in pattern])


def framed(pattern: ArgumentPattern, style: ValueStyle) -> ArgumentPattern:
    """Return the pattern of an argument with the texts that this type has around its value."""
    texts = list(pattern)
    at = texts.index(ArgumentSlot.VALUE)
    after = texts[at + 1 : at + 2]
    texts[at + 1 : at + 1 + sum(isinstance(part, str) for part in after)] = [style.after]
    before = texts[at - 1 : at] if at else []
    texts[at - sum(isinstance(part, str) for part in before) : at] = [style.before]
    return tuple(part for part in texts if part != "")


@dataclass(frozen=True, slots=True)
class MarkerRegistry:
    """The markers, exactly as rendered. `stripped()` gives them without surrounding blanks."""

    reasoning_start: str = ""
    reasoning_end: str = ""
    content_start: str = ""
    content_end: str = ""
    content_lead: str = ""
    tool_section_start: str = ""
    tool_section_end: str = ""
    per_call_start: str = ""
    per_call_end: str = ""
    call_separator: str = ""
    name_end: str = ""
    argument_start: str = ""
    key_end: str = ""
    argument_end: str = ""
    argument_separator: str = ""

    def stripped(self) -> MarkerRegistry:
        """Return the markers without surrounding blanks."""
        return MarkerRegistry(*(getattr(self, each.name).strip() for each in fields(self)))

    def items(self) -> list[tuple[str, str]]:
        """Return the (name, marker) pairs that are not empty."""
        pairs = [(each.name, str(getattr(self, each.name))) for each in fields(self)]
        return [(name, marker) for name, marker in pairs if marker]


@dataclass(frozen=True, slots=True)
class JsonFields:
    """The keys of a JSON call."""

    function_field: str = ""
    name_field: str = ""
    args_field: str = ""
    id_field: str = ""
    gen_id_field: str = ""
    name_is_key: bool = False
    array_wrapped: bool = False
    flat_arguments: bool = False  # the arguments are beside the name in the same object
    constants: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GenerationPrompt:
    """The tail of the prompt that the template writes for the assistant, split into role header and what follows.

    `opened` is what follows: text that belongs to the model's output and that the prompt has already written. `before`
    is what is between the user's text and all of it. `variables` are those with which it is written.
    """

    text: str
    opened: str
    before: str = ""
    variables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MessageForm:
    """How messages must be given to this template, as found by trying."""

    empty_content: str | None = ""  # what is written if there is no content
    reasoning_keys: tuple[str, ...] = ()
    reasoning_in_parts: bool = False  # reasoning is a list of objects with a text
    content_in_blocks: bool = False  # content is a list of blocks of the type "text"
    reasoning_in_blocks: bool = False  # content is a list of blocks, one of them of the type "thinking"
    arguments_as_string: bool = False
    with_user: bool = False  # another message of the user is given after an answer
    tools: str = "typed"  # tools are declared with "typed" parameters, with "text" parameters only, or "none"
    variables: Mapping[str, Any] = field(default_factory=dict)  # variables that the template needs to be defined


@dataclass(frozen=True, slots=True)
class Finding:
    """One fact, the rule that gave it and the renderings that show it."""

    phase: str
    found: str
    rule: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FailedProbe:
    """A rendering that the template refused."""

    phase: str
    asked: str
    error: TemplateError


@dataclass(slots=True)
class Report:
    """What the phases have to say besides their results."""

    findings: list[Finding] = field(default_factory=list)
    failed: list[FailedProbe] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)

    def leave_unexplained(self, what: str) -> None:
        """Record something that the analysis saw and does not explain. It is a warning as well."""
        self.warn(what)
        if what not in self.unexplained:
            self.unexplained.append(what)

    def found(self, phase: str, found: str, rule: str, *evidence: str) -> None:
        """Record a finding."""
        self.findings.append(Finding(phase, found, rule, evidence))

    def warn(self, warning: str) -> None:
        """Record a warning, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)


@dataclass(frozen=True, slots=True)
class Case:
    """A message to be written and read again."""

    name: str
    content: str | None = None
    reasoning: str | None = None
    calls: tuple[Call, ...] = ()


@dataclass(frozen=True, slots=True)
class Written:
    """A message, the tail of the prompt before it, and how the template writes it; `alike` is another that it writes
    the same way."""

    case: Case
    prompt: str
    prefix: str
    output: str
    alike: Case | None = None


@dataclass(slots=True)
class DiffAnalysisResult:
    """Everything that was found out about a chat template."""

    reasoning_mode: ReasoningMode
    content_mode: ContentMode
    tool_format: ToolFormat
    markers: MarkerRegistry
    json_fields: JsonFields
    header: str  # the role header, as far as generation prompt and turns agree
    shapes: dict[Parts, Shape]
    calls: CallsFormat | None
    prompts: dict[str, GenerationPrompt]  # "unset", and "on" and "off" if there is a switch
    switch: str  # the variable that turns thinking on and off, or ""
    turn_start: str  # blanks that are before content, after the role header
    turn_end: str  # of a turn of content, as the last message
    turn_end_after_calls: str
    form: MessageForm
    preserved_tokens: tuple[str, ...]
    instructions: Mapping[str, str]  # what the prompt says of calls, if no turn shows them
    prints_calls: str  # "yes", "no", or "refused" if it refused every message with calls
    report: Report
    escaped: Mapping[Part, str] = field(default_factory=dict)  # parts whose text is escaped, each with the tag for it
    written: tuple[Written, ...] = ()  # the messages of the proof

    @property
    def call_id(self) -> str:
        """Return where the id of a call is among its name and arguments; "none" if it has none."""
        pattern = self.calls.pattern if self.calls is not None else ()
        if Slot.ID not in pattern:
            return "none"
        before = pattern[: pattern.index(Slot.ID)]
        if Slot.ARGUMENTS in before:
            return "post_args"
        return "between_func_and_args" if Slot.NAME in before else "pre_func_name"
