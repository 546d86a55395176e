"""The rows of the bench: what outputs are made, and which calls were made in them.

Strategy: a row puts a text that is found on this machine, a quoted call or a cut where the truth about the calls stays
known. What follows a quoted call is half of the time a real one, so that a parser that is too strict loses something.
"""

import json
import os
import random
import re
import site
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import toolgram
from tests.certain import samples
from tests.certain.samples import TOOLS, Calls, Sample, complete_calls, ids_in, one_form, quoted, read, shown, tokens_in
from tests.generators.suite_cases import special_ids
from tests.json_prefix import is_object
from toolgram.program.state import CALL, HEADER

SUITE = Path(__file__).resolve().parents[2] / "suite" / "cases"
SHARED = Path(os.environ.get("SHARED_DATA") or Path(__file__).resolve().parents[3] / "shared")
REAL = {"glm4": "glm4", "granite_20b_fc": "granite_20b_fc", "hermes": "hermes", "pythonic": "llama4_pythonic"}
MESSAGES = {"beam", "gpt_oss", "inkling", "kimi_k3", "muse", "muse_glimmer", "solar_open"}  # a call is a message here
WHOLE = {"glm4"}  # a call is the whole output here
USER_MESSAGES = {"muse": " to=user<|message|>", "muse_glimmer": " to=user<|message|>"}


@lru_cache(maxsize=1)
def code_lines() -> tuple[str, ...]:
    """Return the lines of the standard library with a double quote in them."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    lines = (line.strip() for file in files for line in file.read_text("utf-8", "replace").splitlines())
    return tuple(dict.fromkeys(line for line in lines if '"' in line and 8 <= len(line) <= 100))


@lru_cache(maxsize=1)
def documents() -> tuple[Path, ...]:
    """Return the Markdown and reStructuredText files of the packages, and the modules of the standard library."""
    names = re.compile(r"(?:.*\.(?:md|rst)|METADATA|README\w*(?:\.txt)?)").fullmatch
    found = [path for folder in site.getsitepackages() for path in sorted(Path(folder).rglob("*"))]
    modules = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    return (*(path for path in found if names(path.name)), *modules)


def lines(python: bool, rng: random.Random, size: float) -> Iterator[Sample]:
    """A line of real code as a string argument, its quotes not escaped (or one, in JSON); often an argument follows."""
    found = [(name, output) for name in toolgram.format_names() for output in shown(name).outputs]
    written = 'city="Paris"' if python else '"city": "Paris"'
    following = ', unit="C"' if python else ', "unit": "C"'
    fitting = {name: (prefix, text) for name, (prefix, text) in reversed(found) if written in text}
    for name, (prefix, text) in sorted(fitting.items()):
        calls = complete_calls(read(Sample(name, text, prefix=prefix, tools=TOOLS)))
        for line in rng.sample(code_lines(), max(3, int(size * (2_000 if python else 500)))):
            more, one = rng.random() < 0.5, not python and rng.randrange(line.count('"') + 1)  # 0: all of them
            parts = json.dumps(line, ensure_ascii=False)[1:-1].split('\\"')
            bare = '"'.join(map('\\"'.join, (parts[:one], parts[one:])) if one else parts)
            value = written.replace("Paris", bare) + following * more
            if is_object(f"{{{value}}}"):
                continue  # it is JSON that says something else
            first, made = next(at for at, call in enumerate(calls) if "Paris" in call[1]), list(calls)
            arguments = {**json.loads(calls[first][1]), "city": line, **({"unit": "C"} if more else {})}
            made[first] = (calls[first][0], one_form(arguments))
            yield Sample(name, text.replace(written, value, 1), tuple(made), prefix=prefix, tools=TOOLS)


def cuts(rng: random.Random, size: float) -> Iterator[Sample]:
    """Every example, cut at every character; the calls whose arguments were closed before the cut were made."""
    for name in toolgram.format_names():
        for prefix, text in shown(name).outputs:
            ends, calls = _closed_at(name, prefix, text)
            for at in range(1, len(text)):
                if size < 1 and rng.random() > size:
                    continue
                made = tuple(call for end, call in zip(ends, calls, strict=True) if end <= at)
                for reason in (None, "length"):
                    yield Sample(name, text[:at], made, reason, prefix, TOOLS)


def _closed_at(name: str, prefix: str, text: str) -> tuple[list[int], Calls]:
    """Return where the list of arguments of each call is closed: the first place after which they are whole."""
    fmt = toolgram.get_format(name)
    is_python = any(state.python for state in fmt.spec.states.values())
    parser = fmt.parser(tools=TOOLS, prefix=prefix)
    ends: dict[int, int] = {}
    arguments: dict[int, str] = {}
    for at, character in enumerate(text, 1):
        for event in parser.feed(character):
            if isinstance(event, toolgram.ToolCallDelta):
                arguments[event.index] = arguments.get(event.index, "") + event.arguments
                if event.index not in ends and is_object(arguments[event.index]):
                    closed = max(text.rfind(")", 0, at), text.rfind("}", 0, at)) + 1
                    ends[event.index] = closed if is_python else at
    calls = complete_calls(read(Sample(name, text, prefix=prefix, tools=TOOLS)))
    return [ends.get(number, len(text)) for number in range(len(calls))], calls


def thoughts(rng: random.Random, size: float) -> Iterator[Sample]:
    """A call that a thought rehearses, and a call with which it ends."""
    for name in toolgram.format_names():
        parts = shown(name)
        if parts.thought is None or name in MESSAGES:
            continue
        prefix, opening, closing = parts.thought
        rehearsed = f"{opening}perhaps {quoted(parts.calls)} but no.{closing}"
        last = f"{opening}I will look.\n{parts.calls}"
        sample = Sample(name, "", prefix=prefix, tools=TOOLS)
        for reason in ("stop", None, "length"):
            yield replace(sample, text=rehearsed + "Hello!", reason=reason)
            yield replace(sample, text=f"{rehearsed}Hello!\n{parts.calls}", reason=reason, made=parts.made)
        yield replace(sample, text=last, made=parts.made)
        yield from unmade(replace(sample, text=last))


def unmade(last: Sample) -> Iterator[Sample]:
    """A call that ends an output, if nothing says that it was made."""
    yield from (replace(last, reason="length"), replace(last, reason=None), replace(last, tools=samples.OTHER_TOOLS))


def ids(rng: random.Random, size: float) -> Iterator[Sample]:
    """A call that is written out and a real one, in one delta and token by token: only the real one has the ids."""
    for name in toolgram.format_names():
        calls, made = shown(name).calls, shown(name).made
        if not any(token in calls for token in special_ids(name)) or "\n\n" in calls:  # an empty line ends a span
            continue
        mark = "`" if complete_calls(read(Sample(name, calls, tools=TOOLS, ids=(7,)))) else ""
        text = f"One writes {mark}{quoted(calls)}{mark} for that.\n"
        yield Sample(name, text + calls, made, tools=TOOLS, ids=(7, 7, *ids_in(name, calls)))
        yield Sample(name, text, (), tools=TOOLS, ids=(7, 7))
        written = tuple((text[at : at + 4], 7) for at in range(0, len(text), 4))
        yield Sample(name, text + calls, made, tools=TOOLS, tokens=(*written, *tokens_in(name, calls)))


def spans(rng: random.Random, size: float) -> Iterator[Sample]:
    """A call in an inline code span, then prose, then perhaps a real one."""
    for name in toolgram.format_names():
        calls = shown(name).calls
        if "\n\n" not in calls:  # an empty line ends a span
            yield from _and_then(name, f"Write `{quoted(calls)}` for that.\n")


def fences(rng: random.Random, size: float) -> Iterator[Sample]:
    """A call in a fence within prose, then perhaps a real one; and a call in a fence that ends the output."""
    for name in toolgram.format_names():
        calls = shown(name).calls
        if "```" in calls or name in WHOLE:
            continue
        yield from _and_then(name, f"Like this:\n\n```\n{quoted(calls)}\n```\n\nThat is all.\n")
        if _ends_message(name, calls):
            continue
        last = Sample(name, f"So:\n\n```\n{calls}\n```", tools=TOOLS)
        yield replace(last, made=shown(name).made)
        yield from unmade(last)


def _ends_message(name: str, calls: str) -> bool:
    """Whether calls begin with a marker that ends the message before them, and so the code in it."""
    program = toolgram.get_format(name).program
    texts = program.literals
    found = [each for each in program.initial.symbols if calls.startswith(texts.get(each.trigger, calls + "."))]
    first = max(found, key=lambda each: len(program.literals[each.trigger]), default=None)
    return first is not None and first.opens not in (CALL, HEADER)


def _and_then(name: str, text: str) -> Iterator[Sample]:
    """The text alone, and with a real call after it."""
    calls, made = shown(name).calls, shown(name).made
    for reason in ("stop", None):
        yield Sample(name, text, (), reason, tools=TOOLS)
        if name not in WHOLE:
            yield Sample(name, text + calls, made, reason, tools=TOOLS)


def turns(rng: random.Random, size: float) -> Iterator[Sample]:
    """A call after a token that ends the turn, all ids given; and a call in a message to the user."""
    for name in toolgram.format_names():
        spec, parts, special = toolgram.get_format(name).spec, shown(name), special_ids(name)
        for token in spec.stop or ():
            stop = getattr(spec.terminals[token], "text", "")
            inner = any(stop in output.removesuffix(stop) for _, output in parts.outputs)
            if stop in special and not inner:
                text = f"Done.{stop}\n{quoted(parts.calls)}"
                yield Sample(name, text, tools=TOOLS, ids=ids_in(name, text))
    for name, message in USER_MESSAGES.items():
        inside = quoted(shown(name).calls)
        inside = inside[inside.index("<atem:function_calls>") : inside.index("<|eo")]
        yield Sample(name, f"{message}One writes {inside} for that.<|eot|>", tools=TOOLS)


def markdown(rng: random.Random, size: float) -> Iterator[Sample]:
    """Documents of packages and modules of Python, which call nothing."""
    files = documents()
    for path in rng.sample(files, min(len(files), max(2, int(600 * size)))):
        text = path.read_text("utf-8", "replace")[:20_000]
        for name in toolgram.format_names():
            yield Sample(name, text, tools=TOOLS)


def suite_cases(rng: random.Random, size: float) -> Iterator[Sample]:
    """The cases of the suite in `suite/`, whose calls were written down there."""
    tools = json.loads((SUITE.parent / "tools.json").read_text("utf-8"))
    for path in sorted(SUITE.glob("[!m]*.jsonl")):  # generated ones are `made-*`, and have their own test
        for case in map(json.loads, path.read_text("utf-8").splitlines()):
            if "pieces" in case or "prompt" not in case:
                continue
            calls = [call for call in case["expect"]["calls"] if call["status"] == "complete"]
            made = tuple((call["name"], one_form(call["arguments"])) for call in calls)
            asked = case["finish_reason"], case["prompt"], tools.get(case.get("tools"))
            yield Sample(case["family"], case["text"], made, *asked)


def real_outputs(rng: random.Random, size: float) -> Iterator[Sample]:
    """Outputs of real models; the calls that are known to be made in them are those that were read before."""
    for file, name in REAL.items():
        path = SHARED / "data" / "real-outputs" / f"{file}.jsonl"
        rows = [json.loads(line)["output"] for line in path.read_text("utf-8").splitlines()] if path.exists() else []
        for text in rows:
            yield Sample(name, text)


ROWS: dict[str, tuple[str, Callable[[random.Random, float], Iterator[Sample]]]] = {
    "json": ("a line of code, its quotes not escaped, in a JSON string", lambda rng, size: lines(False, rng, size)),
    "python": ("the same in a Python string", lambda rng, size: lines(True, rng, size)),
    "cuts": ("every example, cut at every character, no reason and length", cuts),
    "thoughts": ("a call that a thought rehearses, or ends with", thoughts),
    "ids": ("a quoted call before a real one, ids of the real one given", ids),
    "spans": ("a call in inline code", spans),
    "fences": ("a call in a fence, within prose or at the end", fences),
    "turns": ("a call after the end of the turn, or to the user", turns),
    "suite": ("the cases of `make suite` without token ids", suite_cases),
    "markdown": ("READMEs of packages and Python modules, tools declared", markdown),
}
