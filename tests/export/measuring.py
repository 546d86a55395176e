"""What an export does in its engine: does it accept what it should, reject what it should, and can it be left alone
with a random sampler?  Tests ask for a few outputs, docs/data/exports.csv for many."""

import json
import os
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jsonschema

import toolgram
from tests.export.engines import Engine, Engines, plain_engines, sample
from tests.export.writing import mutated, random_output
from tests.tables import table
from toolgram.export import TARGETS, export_request, expression
from toolgram.runtime.code_marks import CodeMarks
from toolgram.runtime.stream import LATE_CALL
from toolgram.runtime.surplus_closers import LATE_MEMBER
from toolgram.spec.data import Literal

WRITTEN = tuple(each for each in TARGETS if each != "xgrammar")  # which is the structural tag under another name
DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
SAMPLES = int(os.environ.get("TOOLGRAM_SAMPLES", "300" if DEEP else "8"))
PROMPTS = {"functionary_v3_2": ">>>"}
# Said of arguments that the schema leaves open, of free text that begins or ends as a closer does, and of values whose
# text has a marker in it that neither opens nor closes anything there. A call in code or in a thought is text to the
# parser, and a thought may be all that there is: grammars know neither.
TOLERATED = set(table(__file__, "tolerated"))


def tool(name: str, properties: dict[str, Any], required: Sequence[str] = (), **more: Any) -> dict[str, Any]:
    """An OpenAI tool dict."""
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(required), **more}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


TOOLS = table(__file__, "tools")


@cache
def _loaded(name: str, target: str, asked: str) -> Engine:
    return plain_engines().load(target, toolgram.get_format(name).export(target, **json.loads(asked)).text)


def accepts(name: str, target: str, text: str, tools: Any = TOOLS, **request: Any) -> bool:
    """Whether the export for a request accepts a text; each is made once."""
    return _loaded(name, target, json.dumps({"tools": tools, **request})).accepts(text)


@dataclass
class Figures:
    """Counts of one export in its engine."""

    counts: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)

    def said(self, what: str) -> str:
        """`good/all` of one question."""
        good, bad = self.counts[what], self.counts[f"not {what}"]
        return f"{good}/{good + bad}"


def words_of(fmt: toolgram.Format, tools: Sequence[dict[str, Any]], triggers: Sequence[str]) -> list[str]:
    """Words that help a sampler through this format."""
    literals = [shape.text for shape in fmt.spec.terminals.values() if isinstance(shape, Literal)]
    functions = [each["function"] for each in tools]
    names = [function["name"] for function in functions]
    keys = [key for function in functions for key in function["parameters"].get("properties", {})]
    return [*triggers, *literals, *names, *keys, '": ', '", "', '{"', '"name": "', '"arguments": {', '"parameters": {']


def required_of(tools: Sequence[dict[str, Any]]) -> list[str]:
    """The names of all required arguments."""
    return [key for each in tools for key in each["function"]["parameters"].get("required", ())]


def problem_of(fmt: toolgram.Format, text: str, tools: Sequence[dict[str, Any]], prefix: str | None = None) -> str:
    """What is wrong with an output, as the parser and the schemas see it; "" where nothing is."""
    return problem_in(fmt, text, fmt.parse(text, tools, prefix, "stop"), tools)  # it ends where the model may stop


def problem_in(fmt: toolgram.Format, text: str, message: toolgram.Message, tools: Sequence[dict[str, Any]]) -> str:
    """What is wrong with an output that was read as a message; "" where nothing is."""
    schemas = {each["function"]["name"]: each["function"]["parameters"] for each in tools}
    for call in message.tool_calls:
        if call.status != "complete":
            return f"a call is {call.status}"
        if call.name not in schemas:
            return f"{call.name} is no function"
        try:
            jsonschema.validate(json.loads(call.arguments), schemas[call.name])
        except (jsonschema.ValidationError, ValueError) as error:
            return str(error).splitlines()[0]
        except RecursionError:
            continue  # a sampler nests deeper than the judge can follow
    kinds = {each.kind for each in message.anomalies}
    return next((each.why for each in message.anomalies if not _is_unknown_to_grammars(fmt, text, each, kinds)), "")


def _is_unknown_to_grammars(fmt: toolgram.Format, text: str, anomaly: toolgram.Anomaly, kinds: set[str]) -> bool:
    """Whether a parser sees what a grammar does not know of; `kinds` are those of all anomalies.

    That is text after a call, an object in text that is a call since its function is declared, a marker that comes
    twice, as the text before a call may end in another spelling of what opens it, also one that is not closed then, and
    a marker in code, there or before.
    """
    if anomaly.kind in TOLERATED or anomaly.why in (LATE_CALL, LATE_MEMBER):
        return True
    bare = ("{", *fmt.spec.bare_calls[1:]) if fmt.spec.bare_calls else ()
    spelled = anomaly.text in bare or any(anomaly.text in literal for literal in fmt.program.literals.values())
    if (spelled and anomaly.kind == "unusual_form") or {"unclosed_envelope", "unusual_form"} == kinds:
        return True
    marks, at = CodeMarks(), 0
    markers = re.compile("|".join(map(re.escape, fmt.program.markers)) or "(?!)").finditer(text)
    for place in (found.start() for found in markers if found.start() <= anomaly.start):
        marks.read(text[at:place])
        at = place
        if marks.place:
            return True
    return False


def measure(
    fmt: toolgram.Format, target: str, samples: int, tools: Sequence[dict[str, Any]] = tuple(TOOLS),
    engines: Any = Engines, **request: Any,
) -> Figures:  # fmt: skip
    """Ask everything of one export. Without a `prefix` it is what the format's generation prompt always ends with."""
    request.setdefault("prefix", PROMPTS.get(fmt.name))
    made = exported(fmt, target, tools, **request)
    prefix = request.pop("prefix", None)
    root, _ = expression(fmt, export_request(tools, **request), prefix, lambda words: None)
    begins = made.triggers or tuple(sorted(names_of(root, tools)))
    engine = engines(words_of(fmt, tools, begins)).load(target, made.text)
    one = _Export(fmt, engine, tools, prefix, random.Random(f"{fmt.name} {target}"))
    for _ in range(samples):
        one.write(root)
    for _ in range(samples):
        one.sample(begins)
    return one.figures


def exported(fmt: toolgram.Format, target: str, tools: Sequence[dict[str, Any]], **request: Any) -> Any:
    """The export; with limits on lengths where it does not count an id, because a random walk never ends one."""
    made = fmt.export(target, tools, **request)
    if any("does not count the characters of an id" in note for note in made.notes):
        return fmt.export(target, tools, length_limits=True, **request)
    return made


def names_of(root: Any, tools: Sequence[dict[str, Any]]) -> set[str]:
    """The names of functions with two characters after them, as outputs have them: what begins a call without a
    marker."""
    rng = random.Random(0)
    texts = [random_output(root, rng) for _ in range(20)]
    names = [each["function"]["name"] for each in tools]
    return {text[at : at + len(name) + 2] for text in texts for name in names if (at := text.find(name)) >= 0}


@dataclass
class _Export:
    """One export in its engine, and what is asked of it."""

    fmt: toolgram.Format
    engine: Engine
    tools: Sequence[dict[str, Any]]
    prefix: str | None
    rng: random.Random
    figures: Figures = field(default_factory=Figures)

    def write(self, root: Any) -> None:
        """An output of the expression is accepted, and what is wrong with one is not."""
        text = random_output(root, self.rng)
        problem = self._problem(text)
        if problem:
            self.figures.problems.append(f"written, and {problem}: {text!r}")
        self._count("accepted", self.engine.accepts(text), text)
        for _ in range(3):
            wrong = mutated(text, self.rng)
            if self._problem(wrong):
                self._count("rejected", not self.engine.accepts(wrong), wrong)

    def sample(self, begins: Sequence[str]) -> None:
        """What a random walk under the masks writes is read without a problem."""
        # A random walk may stay in a text that goes on; where the grammar has no way out, every walk does.
        walks = (sample(self.engine, self.rng, begins, required_of(self.tools)) for _ in range(4))
        text = next((each for each in walks if each is not None), None)
        if text is None:
            self._count("finished", False, "a sample without an end")
            return
        problem = self._problem(text)
        self.figures.counts["calls"] += len(self.fmt.parse(text, self.tools, self.prefix).tool_calls)
        self.figures.counts["not valid" if problem else "valid"] += 1
        if problem:
            self.figures.problems.append(f"sampled, and {problem}: {text!r}")

    def _problem(self, text: str) -> str:
        return problem_of(self.fmt, text, self.tools, self.prefix)

    def _count(self, what: str, good: bool, text: str) -> None:
        self.figures.counts[what if good else f"not {what}"] += 1
        if not good:
            self.figures.problems.append(f"not {what}: {text!r}")
