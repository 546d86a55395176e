"""`derive_format`: a chat template in, a format out, with a report that says how.

Strategy: analyse, synthesise, prove.  If a shipped format knows more than any template shows, and reads this
template's messages as well, it is returned instead.  If the calls cannot be expressed, the format reads text, and
says so.  Results are kept in memory by a hash of everything that was given, and on disk if a directory is named.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock
from typing import Any

from toolgram.derive.adapting import named
from toolgram.derive.analysis import analyse
from toolgram.derive.budget import look, within
from toolgram.derive.candidates import Candidate, choose, probe
from toolgram.derive.errors import CostlyTemplate, NotExpressible, OutOfBudget, TemplateError, short
from toolgram.derive.format_builder import FormatBuilder
from toolgram.derive.isolated import derive_apart
from toolgram.derive.keeping import as_data, from_data, kept, save
from toolgram.derive.messages import write_messages
from toolgram.derive.rendering import ChatTemplate
from toolgram.derive.report import DeriveReport, Found, Probe
from toolgram.derive.result import DiffAnalysisResult, Tokens
from toolgram.derive.synthesis import sketch, synthesise, text_alone, without_calls
from toolgram.derive.unexplained import find_unexplained
from toolgram.errors import FormatError
from toolgram.formats import Format, grammar_home
from toolgram.limits import DERIVATION_SECONDS
from toolgram.program.look_ahead import TooManyWays
from toolgram.spec.data import Spec
from toolgram.spec.faults import faults
from toolgram.spec.files import spec_from_texts
from toolgram.spec.grammar_file import OPEN

CACHE_VARIABLE = "TOOLGRAM_CACHE"
_MOST_KEPT = 256
_kept: OrderedDict[tuple[str, bool], Format] = OrderedDict()
_lock = Lock()


def derive_format(
    chat_template: str,
    *,
    bos_token: str = "",
    eos_token: str = "",
    name: str | None = None,
    chat_template_kwargs: Mapping[str, Any] | None = None,
    special_tokens: Sequence[str] = (),
    end_tokens: Sequence[str] = (),
    strict: bool = False,
    cache_dir: str | Path | None = None,
    seconds: float = DERIVATION_SECONDS,
    isolate: bool = False,
) -> Format:
    """Return the format in which a model with this Jinja chat template writes, found by comparing renderings.

    `bos_token` and `eos_token` are the tokenizer's, as text; `chat_template_kwargs` are variables for every rendering.
    `special_tokens` are its other special tokens, which count by id if ids are given, and `end_tokens` those that end
    an output; a template need not show them. `name` is the format's own name. The result has a `report`
    (`DeriveReport`): every finding with its evidence, and the messages that were written and read again as proof.

    Takes some tens of milliseconds the first time and microseconds after that, as results are kept in memory; with
    `cache_dir`, or the environment variable TOOLGRAM_CACHE, on disk as well. Templates are not trusted: rendering is
    sandboxed, and everything stops after so many `seconds` of the processor. With `isolate`, a separate process that
    the system limits does all of it: a template can cost no more, and the report has no `analysis`.

    Raises TemplateError for a template that cannot be rendered or costs too much (CostlyTemplate), and, with `strict`,
    FormatError if a message does not come back or anything is left unexplained (`report.ok` is false).
    """
    if not isinstance(chat_template, str):
        raise TypeError(f"chat_template is the text of a template, not {type(chat_template).__name__}")
    tokens = Tokens(bos_token, eos_token, tuple(special_tokens), tuple(end_tokens))
    given = [chat_template, asdict(tokens), name, dict(chat_template_kwargs or {})]
    key = hashlib.sha256(json.dumps(given, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()
    with _lock:
        fmt = _kept.get((key, isolate))
    if fmt is None:
        directory = cache_dir or os.environ.get(CACHE_VARIABLE)
        path = Path(directory) / f"{key[:32]}.json" if directory else None
        fmt = kept(path) if path else None
        if fmt is None:
            derive = _apart if isolate else _bounded
            fmt = derive(chat_template, tokens, name or f"derived_{key[:8]}", chat_template_kwargs, seconds)
            fmt = named(fmt, name) if name else fmt
            if path:
                save(path, fmt)
        with _lock:
            _kept[key, isolate] = fmt
            while len(_kept) > _MOST_KEPT:
                _kept.popitem(last=False)
    if strict:
        _insist(fmt)
    return fmt


def derive_now(
    chat_template: str, tokens: Mapping[str, Any], name: str, kwargs: Mapping[str, Any] | None, seconds: float
) -> dict[str, Any]:
    """Return a new derived format as data (`keeping`), for a separate process. Raises TemplateError."""
    return as_data(_bounded(chat_template, Tokens(**tokens), name, kwargs, seconds))


def _apart(template: str, tokens: Tokens, name: str, kwargs: Mapping[str, Any] | None, seconds: float) -> Format:
    """Derive in a process of its own."""
    question = {"chat_template": template, "tokens": asdict(tokens), "name": name, "kwargs": dict(kwargs or {})}
    try:
        json.dumps(question)
    except (TypeError, ValueError) as error:
        raise TemplateError(f"in a process of its own, variables are JSON: {error}") from None
    fmt = from_data(derive_apart(question, seconds))
    if fmt is None:
        raise CostlyTemplate("the process that derived gave no format")
    return fmt


def _bounded(template: str, tokens: Tokens, name: str, kwargs: Mapping[str, Any] | None, seconds: float) -> Format:
    """Derive within a budget. What a template makes of the analysis is the template's fault, and one short error."""
    with within(seconds) as budget:
        try:
            return _derive(template, tokens, name, kwargs)
        except OutOfBudget as error:
            raise CostlyTemplate(error.problem, error.line) from None
        except (RecursionError, MemoryError) as error:
            raise CostlyTemplate(f"{type(error).__name__} while {budget.doing}") from None


def _derive(template: str, tokens: Tokens, name: str, kwargs: Mapping[str, Any] | None) -> Format:
    began = time.perf_counter()
    compiled = ChatTemplate(template, tokens.bos_token, tokens.eos_token, kwargs)
    result = analyse(compiled)
    result.written = write_messages(compiled, result)
    taken, said = choose(result, tokens, lambda: _derived(result, name, tokens))
    fmt, report = taken.fmt, result.report
    why = ""
    if taken.shipped:  # nothing in it rests on the analysis
        report.unexplained.clear()
        why = f"it is near the template, and reads {taken.score} of the {len(taken.probes)} messages"
    problems = [f"{each.case} ({each.prompt}): {each.problem}" for each in taken.failed]
    unexplained = find_unexplained(result, taken)
    spec = fmt.spec if taken.shipped else _saying_what_is_open(fmt.spec, [*unexplained, *problems])
    return Format(
        spec,
        fmt.machine_text,
        DeriveReport(
            result, taken.shipped, why, tuple(taken.probes), (*report.warnings, *problems), tuple(unexplained),
            Found.of(result), time.perf_counter() - began, tuple(said),
        ),
    )  # fmt: skip


def _saying_what_is_open(spec: Spec, found: Sequence[str]) -> Spec:
    """Return the specification with a comment in its grammar for each open question; `check` lists them."""
    lines = "".join(f"{OPEN}{short(each)}\n" for each in found)
    return replace(spec, grammar_text=f"{lines}{spec.grammar_text}") if lines else spec


def _derived(result: DiffAnalysisResult, name: str, tokens: Tokens) -> Candidate:
    """Write the derived format, and read with it the messages of the proof and its own files."""
    look("writing the two files")
    fmt = _synthesised(result, name, tokens)
    probes = probe(fmt, result)
    look("probing the files of the format")
    return Candidate(fmt, [*probes, Probe("the two files", "unset", "", next(map(str, faults(fmt.spec)), ""))])


def _synthesised(result: DiffAnalysisResult, name: str, tokens: Tokens) -> Format:
    """Write the format with the most that can be expressed."""
    attempts = (
        (synthesise, "the calls cannot be expressed, and are read as text"),
        (without_calls, "reasoning and content cannot be told apart"),
    )
    for write, lost in attempts:
        try:
            fmt = read_format(write(result, name, tokens))
            _ = fmt.program  # compiled now, so that it is refused now
            return fmt
        except (NotExpressible, TooManyWays, FormatError) as error:
            problem = str(error)
            if isinstance(error, FormatError):
                found = " ".join(sketch(result.calls).split()) if result.calls else "no calls"
                problem = f"what was found gives no format ({error.problem}); it is {found}"
            result.report.leave_unexplained(f"{lost}: {problem}")
    return read_format(text_alone(result, name, tokens))


def read_format(builder: FormatBuilder) -> Format:
    """Read the two files of a format, as `load_format` does. Raises FormatError."""
    names, texts = (f"{builder.name}.lark", f"{builder.name}.yaml"), (builder.grammar(), builder.machine())
    spec = spec_from_texts(texts[0], names[0], texts[1], names[1], (str(grammar_home()),))
    return Format(spec, texts[1])


def _insist(fmt: Format) -> None:
    report = fmt.report
    assert report is not None
    problem = "; ".join(report.unexplained[:3])
    if report.failed:
        count, first = f"{len(report.failed)} of {len(report.probes)}", report.failed[0]
        problem = f"{count} messages that the template writes do not come back, first {first.case}: {first.problem}"
    if not report.ok:
        remedy = "see `fmt.report` (derive without strict), or write the two files by hand"
        raise FormatError(fmt.name, problem, remedy)
