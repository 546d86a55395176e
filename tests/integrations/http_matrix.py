"""Every kind of request to a real vLLM server: what clients hear beside what the model wrote. `make test-vllm-http`.

Strategy: a turn is written in a model's notation by a writer that knows nothing of toolgram, said by a scripted
engine behind vLLM's own server, and heard through the official clients. What was written is what has to be heard.
Of a call that was cut off, and of one that cannot be read, other things have to hold; `wrong` says which.

Processor time is what this costs. How text is cut into steps, and what a request may ask for, concern the plug-in and
the fragments that a machine is composed of. So where all shipped formats are taken, the first of each family (the same
fragments) says everything in all groupings; its siblings say every turn over every API whole and by three tokens, and
fewer turns with each tool_choice.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import toolgram
from tests.integrations.cases import TOOLS, TURNS
from tests.integrations.http_clients import APIS, CHAT, MESSAGES, RESPONSES, SERVERS_OWN, UNLIMITED, Ask
from tests.integrations.http_shapes import Shape
from tests.integrations.vllm_heard import Heard, bare
from tests.integrations.writers import Turn
from tests.json_prefix import value_of

PACES = (None, 1, 3, 40, 0)  # tokens in a step; None: one message, 0: all at once
FEW = (None, 3, 0)
FEWEST = (None, 3)
BIG = 20_000  # characters of arguments
REFUSED = "<<REFUSED>>"

_WEATHER = ("get_weather", {"city": "Paris"})
MORE = (
    Turn("reasoning, two calls", reasoning="Both.", calls=(_WEATHER, ("get_time", {"zone": "UTC"}))),
    Turn("reasoning, content, call, text", reasoning="Hm.", content="Before.", calls=(_WEATHER,), after="And after."),
    Turn("long arguments", calls=(("write_file", {"path": "a", "content": ("line é 🤔\n" * BIG)[:BIG] + "."}),)),
)
ALL = (*TURNS, *MORE)
CHOSEN = (
    "content", "reasoning, content", "call", "content, call", "reasoning, call", "reasoning, two calls", "two calls",
)  # fmt: skip
CHOSEN_BY_SIBLINGS = ("content", "reasoning, content", "reasoning, call", "two calls")
FORM = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
FORMED = (
    Turn("content", content='{"answer": "It is sunny."}'),
    Turn("reasoning, content", reasoning="Hm.", content='{"answer": "It is sunny."}'),
    Turn("reasoning, call", reasoning="Hm.", calls=(_WEATHER,)),
    Turn("other content", content="It is sunny."),
    Turn("reasoning, other content", reasoning="Hm.", content="It is sunny."),
)
AS_JSON = "an answer as JSON"
BROKEN = '{"city": [1, 2}, "day": }'  # no repair


@dataclass(frozen=True)
class Trial:
    """A request, and what has to be heard."""

    label: str
    kind: str  # of what it tries: a row of the table
    ask: Ask
    content: str | None = None
    reasoning: str | None = None
    calls: tuple[tuple[str, str], ...] = ()
    finish: str = "stop"
    rule: str = "same"  # same | cut | broken | refused | first
    script: tuple[int, ...] = field(default=(), repr=False)
    skips_thought: bool = False  # the prompt leaves the model free to think, and it does not


class Model:
    """A shape with its tokenizer and its folder, where a server finds it."""

    def __init__(self, shape: Shape, tokenizer: Any, folder: Path) -> None:
        self.shape, self.tokenizer, self.folder = shape, tokenizer, folder
        self.scripts: dict[tuple[int, ...], int] = {}
        self.paces: Sequence[int | None] = FEWEST if shape.sibling else PACES
        self.few: Sequence[int | None] = FEWEST if shape.sibling else FEW
        self.chosen = CHOSEN_BY_SIBLINGS if shape.sibling else CHOSEN
        self._states: dict[tuple[bool, str], str] = {}  # where prompts leave reasoning
        self.specials = [*(text for text in tokenizer.all_special_tokens if text), *shape.around_text]

    def prompt(self, tools: Any, template: dict[str, Any]) -> str:
        """The prompt as the template writes it."""
        messages = [{"role": "user", "content": "Say script 0 by 0."}]
        asked = {"tools": tools, "add_generation_prompt": True, "tokenize": False, **template}
        return str(self.tokenizer.apply_chat_template(messages, **asked))

    def script(self, text: str, end: bool = True) -> tuple[int, ...]:
        """The tokens of a text, markers as their tokens."""
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return (*ids, self.tokenizer.eos_token_id) if end else tuple(ids)

    def spelled(self, text: str) -> tuple[int, ...]:
        """The tokens of a text in which markers are quoted: no marker is a token."""
        for marker in (*self.shape.added, *self.shape.special):
            half = len(marker) // 2
            text = text.replace(marker, f"{marker[:half]}\0{marker[half:]}")
        parts = [part for part in text.split("\0") if part]
        return tuple(n for part in parts for n in self.tokenizer.encode(part, add_special_tokens=False))

    def number(self, script: tuple[int, ...]) -> int:
        """The place of a script among those that the server knows."""
        return self.scripts.setdefault(script, len(self.scripts))

    def write(self) -> None:
        """Put the scripts where the engine reads them."""
        (self.folder / "scripts.json").write_text(json.dumps(list(self.scripts)), encoding="utf-8")

    # --- trials

    def trials(self) -> list[Trial]:
        """All of them; each with the number of its script."""
        kinds = [self._said, self._chosen, self._formed, self._cut, self._ended, self._quoted, self._broken]
        return [self._numbered(each) for trials in (*kinds, self._examples) for each in trials()]

    def _numbered(self, trial: Trial) -> Trial:
        may_think = self.shape.reasons and self.state(trial.ask.tools, trial.ask.template) == ""
        ask = replace(trial.ask, script=self.number(trial.script))
        return replace(trial, ask=ask, skips_thought=may_think and not trial.reasoning)

    def state(self, tools: Any, template: dict[str, Any]) -> str:
        """Where the prompt of these leaves reasoning."""
        key = (tools is None, json.dumps(template))
        if key not in self._states:
            self._states[key] = self.shape.prompt_state(self.prompt(tools, template))
        return self._states[key]

    def templates(self) -> dict[str, dict[str, Any]]:
        """Thinking unset, on and off, where the template knows of it."""
        found: dict[str, dict[str, Any]] = {"unset": {}}
        if self.shape.reasons and self.shape.switch in self.shape.template_text():
            for word, value in (("on", True), ("off", False)):
                found[word] = {self.shape.switch: value, **self.shape.told.get(word, {})}
        return found

    def written(self, turn: Turn, tools: Any, template: dict[str, Any]) -> str | None:
        """The text of a turn behind the prompt of these; None where the model cannot say it."""
        return self.shape.write(turn, self.state(tools, template))

    def _ways(self, trial: Trial, paces: Sequence[int | None], apis: Sequence[str] = APIS) -> Iterator[Trial]:
        """A trial over every API, whole and in steps."""
        for api, pace in product(apis, paces):
            named = api == CHAT and trial.ask.choice not in (None, "none", "auto", "required")
            finish = "stop" if named and trial.finish == "tool_calls" else trial.finish
            yield replace(trial, ask=replace(trial.ask, api=api, pace=pace), finish=finish)

    def _said(self) -> Iterator[Trial]:
        """Every turn; thinking unset, on and off."""
        for (thinking, template), turn in product(self.templates().items(), ALL):
            text = self.written(turn, TOOLS, template)
            if text is None or (thinking != "unset" and turn.label not in CHOSEN):
                continue
            paces = self.paces if thinking == "unset" else self.few
            if turn.label == "long arguments":
                paces = [pace for pace in paces if pace in (None, 3, 40)]
            ask, label = Ask(0, tools=TOOLS, template=template), f"{turn.label}, thinking {thinking}"
            yield from self._ways(_exact(label, "auto", turn, ask, self.script(text)), paces)

    def _chosen(self) -> Iterator[Trial]:
        """Without tools, and with every tool_choice."""
        choices = ("no tools", "none", "required", "get_weather", "allowed", "one at a time")
        for (thinking, template), turn, choice in product(self.templates().items(), ALL, choices):
            tools = None if choice == "no tools" else TOOLS
            text = self.written(turn, tools, template) if turn.label in self.chosen else None
            if text is not None:
                ask = Ask(0, tools=tools, template=template)
                made = self._choice(f"{turn.label}, thinking {thinking}", turn, choice, ask, self.script(text))
                yield from self._ways(made, self.few, (RESPONSES,) if choice == "allowed" else APIS)

    def _choice(self, label: str, turn: Turn, choice: str, ask: Ask, script: tuple[int, ...]) -> Trial:
        if choice in ("no tools", "none"):
            assert self.shape.calls is not None
            plain = Turn("", turn.reasoning, self.shape.calls(turn))
            ask = replace(ask, choice="none" if choice == "none" else None)
            return _exact(f"{label}, {choice}", "no calls wanted", plain, ask, script)
        if choice == "one at a time":
            made = _exact(f"{label}, {choice}", choice, turn, replace(ask, parallel=False), script)
            return replace(made, rule="first" if len(turn.calls) > 1 else "same")
        kind = choice if choice in ("required", "allowed") else "named"
        listed = choice == "allowed"
        ask = replace(ask, choice="get_weather" if listed else choice, allowed="required" if listed else "")
        made = _exact(f"{label}, {kind}", kind, turn, ask, script)
        if turn.calls and not turn.content and (choice == "required" or len(turn.calls) == 1):
            return made
        return replace(made, rule="first" if turn.calls and not turn.content else "refused")

    def _formed(self) -> Iterator[Trial]:
        """An answer that has to follow a schema."""
        choices = ("no tools", "none", "auto")
        for (thinking, template), turn, choice in product(self.templates().items(), FORMED, choices):
            tools = None if choice == "no tools" else TOOLS
            text = self.written(turn, tools, template)
            if text is None or (turn.calls and choice != "auto"):
                continue
            ask = Ask(0, tools=tools, choice="none" if choice == "none" else None, template=template, form=FORM)
            label = f"{turn.label}, thinking {thinking}, {choice}"
            rule = "refused" if turn.content == "It is sunny." else "same"
            made = replace(_exact(label, AS_JSON, turn, ask, self.script(text)), rule=rule)
            yield from self._ways(made, self.few)

    def _cut(self) -> Iterator[Trial]:
        """Cut off in reasoning, in a name, in arguments."""
        cut_call = ("write_file", {"path": "/tmp/a", "content": "one two three four five"})
        turn = Turn("cut", content="Let me look.", calls=(_WEATHER, cut_call))
        thought = Turn("cut", reasoning="They want to know about the weather in Paris.", content="It is sunny.")
        places: list[tuple[str, Turn, str]] = []
        if self.shape.can_write(turn):
            places += [("name", turn, "write_f"), ("arguments", turn, "one two"), ("arguments, early", turn, "/tm")]
        places += [("content", Turn("", content="It is sunny in Paris today."), "sunny in")]
        if self.shape.reasons:
            places.append(("reasoning", thought, "about the"))
        for where, said, upto in places:
            text = self.written(said, TOOLS, {})
            if text is None:
                continue
            ids = self.script(text[: text.rindex(upto) + len(upto)], end=False)
            cut = "name in Python" if where == "name" and self._writes_python() else where.partition(",")[0]
            ask, script = Ask(0, tools=TOOLS, limit=len(ids)), (*ids, *self.script(" and so on"))
            made = _exact(f"cut off in {where}", "cut off", said, ask, script)
            yield from self._ways(replace(made, rule=f"cut {cut}", finish="length"), self.paces)

    def _writes_python(self) -> bool:
        """Whether calls are Python: until a next call has begun, the string before it may go on."""
        name = self.shape.parser.removeprefix("toolgram_")
        is_format = name in toolgram.format_names()
        return is_format and any(state.python for state in toolgram.get_format(name).spec.states.values())

    def _ended(self) -> Iterator[Trial]:
        """Ended in a value, by a stop string, or by the limit of a server in a request that has none."""
        many = " ".join(f"word {number}" for number in range(SERVERS_OWN))
        turn = Turn("", content="Let me look.", calls=(_WEATHER, ("write_file", {"path": "/tmp/a", "content": many})))
        text = self.written(turn, TOOLS, {}) if self.shape.can_write(turn) else None
        if text is None:
            return
        ask = Ask(0, tools=TOOLS, stop=["word 20"])
        made = _exact("a stop string in arguments", "cut off", turn, ask, self.script(text))
        yield from self._ways(replace(made, rule="cut arguments", finish="any"), self.few)
        unlimited = replace(made, label="the limit of the server", ask=Ask(0, tools=TOOLS, limit=UNLIMITED))
        unlimited = replace(unlimited, rule="cut arguments", finish="length")
        yield from self._ways(unlimited, self.few, (CHAT, RESPONSES))  # in Messages, every request has a limit

    def _quoted(self) -> Iterator[Trial]:
        """Markers that are spelled and not generated."""
        text = self.written(Turn("", calls=(_WEATHER,)), TOOLS, {})
        markers = [each for each in (*self.shape.added, *self.shape.special) if each not in ("<think>", "</think>")]
        marker = next((each for each in markers if text and each in text), "")
        said = f"A call begins with {marker} here."
        turn = Turn("", content=said, calls=(_WEATHER,))
        whole = self.written(turn, TOOLS, {}) if marker else None
        if whole is None:
            return
        before, _, rest = whole.partition(said)
        script = (*self.script(before, end=False), *self.spelled(said), *self.script(rest))
        made = _exact("marker quoted in content", "quoted markers", turn, Ask(0, tools=TOOLS), script)
        yield from self._ways(made, self.few)

    def _broken(self) -> Iterator[Trial]:
        """A call that cannot be read."""
        text = self.written(Turn("", calls=(_WEATHER,)), TOOLS, {})
        if text is None or '{"city": "Paris"}' not in text:
            return
        script = self.script(text.replace('{"city": "Paris"}', BROKEN))
        made = Trial("a call that cannot be read", "malformed", Ask(0, tools=TOOLS), rule="broken", script=script)
        yield from self._ways(made, self.paces)

    def _examples(self) -> Iterator[Trial]:
        """The example outputs of a shipped format, behind a prompt that has begun nothing."""
        for place, text in enumerate(self.shape.examples):
            message = toolgram.get_format(self.shape.parser.removeprefix("toolgram_")).parse(text, TOOLS, "")
            calls = tuple((call.name, call.arguments) for call in message.tool_calls)
            made = Trial(f"example {place}", "auto", Ask(0, tools=TOOLS), message.content, message.reasoning, calls)
            made = replace(made, finish="tool_calls" if calls else "stop", script=self.script(text))
            yield from self._ways(made, self.few)


def _exact(label: str, kind: str, turn: Turn, ask: Ask, script: tuple[int, ...]) -> Trial:
    content = " ".join(part for part in (turn.content, turn.after) if part)
    calls = tuple((name, json.dumps(given, ensure_ascii=False)) for name, given in turn.calls)
    finish = "tool_calls" if calls else "stop"
    return Trial(label, kind, ask, content or None, turn.reasoning or None, calls, finish, script=script)


# --- what is wrong --------------------------------------------------------------------------------------------------


def wrong(heard: Heard, trial: Trial, specials: Sequence[str] = ()) -> str:
    """What is wrong with what was heard, in few words; "" for nothing."""
    if heard.error:
        return f"error: {heard.error}"
    if REFUSED in (heard.content or "") + (heard.reasoning or "") + "".join(a for _, a in heard.calls):
        return "" if trial.rule in ("refused", "first") else "a right answer is refused"
    if trial.rule == "refused":
        return "another form" if trial.ask.form else "calls are not enforced"
    if trial.rule == "broken":
        return _wrong_broken(heard, trial)
    if trial.rule.startswith("cut"):
        return _wrong_cut(heard, trial)
    found = [] if trial.rule == "first" else _wrong_calls(heard, trial)
    for part in ("content", "reasoning"):
        got, wanted = (bare(getattr(each, part), specials) for each in (heard, trial))
        if got != wanted and trial.rule != "first":
            found.append(f"{part} lost" if len(got) < len(wanted) else f"markup in {part}")
    if heard.finish_reason != trial.finish and not found:
        found.append(f"finish reason {heard.finish_reason}")
    return ", ".join(found)


def mistakes(heard: Iterable[tuple[Trial, Heard]], judge: Callable[[Heard, Trial], str]) -> list[str]:
    """A line for each answer that is wrong."""
    return [
        f"{trial.label} over {trial.ask.api} by {trial.ask.pace}: {problem}: {answer.told()} {answer.detail}"
        for trial, answer in heard
        if (problem := judge(answer, trial))
    ]


def _wrong_calls(heard: Heard, trial: Trial) -> list[str]:
    if len(heard.calls) != len(trial.calls):
        return ["call lost" if len(heard.calls) < len(trial.calls) else "call invented"]
    found = []
    for (name, arguments), (wanted, expected) in zip(heard.calls, trial.calls, strict=True):
        if name != wanted:
            found.append("wrong name")
        elif value_of(arguments) != value_of(expected):
            found.append("wrong arguments")
    if len(set(heard.ids)) != len(heard.ids):
        found.append("an id twice")
    return found


def _wrong_cut(heard: Heard, trial: Trial) -> str:
    """Nothing that was cut off looks whole, and nothing else is lost."""
    where = trial.rule.removeprefix("cut ")
    if heard.finish_reason != trial.finish != "any":
        return f"finish reason {heard.finish_reason}"
    if where in ("reasoning", "content"):
        got, other = (heard.reasoning, heard.content) if where == "reasoning" else (heard.content, heard.reasoning)
        meant = trial.reasoning if where == "reasoning" else trial.content
        if not got or not bare(meant).startswith(bare(got)):
            return f"cut-off {where} lost"
        return f"cut-off {where} elsewhere" if other or heard.calls else ""
    whole = heard.calls[:1]
    name = trial.calls[0][0]
    if where == "name in Python" and not whole:  # Messages has no call that was cut off: it is text there
        return "" if trial.ask.api == MESSAGES and name in (heard.content or "") else "the call before is lost"
    if where == "name in Python" and not isinstance(value_of(whole[0][1]), dict):
        return "" if whole[0][0] == name else "the call before is lost"
    told, meant_first = ([(name, value_of(given)) for name, given in each] for each in (whole, trial.calls[:1]))
    if told != meant_first:
        return "the call before is lost"
    if not bare(heard.content).startswith(bare(trial.content)):
        return "content lost"
    for _, arguments in heard.calls[1:]:
        if isinstance(value_of(arguments), dict) and not (trial.ask.api == MESSAGES and trial.ask.pace is not None):
            return "cut-off call looks complete"
    if where == "arguments" and len(heard.calls) < 2 and "write_file" not in (heard.content or ""):
        return "cut-off call lost"
    return ""


def _wrong_broken(heard: Heard, trial: Trial) -> str:
    """In one message the call is text; streamed, nothing of it is lost."""
    if any(isinstance(value_of(arguments), dict) for _, arguments in heard.calls):
        return "broken call looks complete"
    said = (heard.content or "") + "".join(name + arguments for name, arguments in heard.calls)
    if "get_weather" not in said or "[1, 2" not in said or '"day": }' not in said:
        return "broken call lost"
    return "broken call for json.loads" if trial.ask.pace is None and heard.calls else ""
