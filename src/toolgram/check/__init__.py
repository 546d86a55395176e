"""`toolgram check`: what can be proved about a format.

* `languages`: the machine accepts exactly the envelope language of the grammar (automata equivalence),
* `free_text`: free text that a grammar defines by hand is what the parser reads as text,
* `sanity`: each state, trigger, marker and terminal, one by one,
* `examples`: the parser reads the examples of the file,
* `advice`: warnings, which do not fail: what is proved and may still be a mistake,
* `exports`: what a request asks an export for is what the parser reads on every way through its envelope,
* `drivers`: the compiled table does what the real `transitions` machine and Lark do, on all short symbol sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from toolgram.check import advice, drivers, examples, exports, free_text, languages, sanity
from toolgram.errors import FormatError
from toolgram.formats import Format
from toolgram.spec.data import Spec

LENGTH = 6


@dataclass(slots=True)
class Finding:
    """One result: what was checked, whether it holds, and how, or why not."""

    name: str
    ok: bool
    detail: str


@dataclass(slots=True)
class Report:
    """The results of `check` for one format. A warning does not fail it."""

    format: str
    findings: list[Finding]
    warnings: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Return whether everything holds."""
        return all(finding.ok for finding in self.findings)


_SANITY: list[tuple[str, Callable[[Spec], Iterator[str]], str]] = [
    ("every held state has a release", sanity.released, "{held} held states, each with a way to be committed"),
    ("no terminal matches nothing", sanity.terminals_not_empty, "every terminal of the grammar takes a character"),
    ("the grammar has the keys of JSON", sanity.keys_in_grammar, "each key that the machine reads is in the grammar"),
    ("every regular expression is linear", sanity.terminals_linear, "no repetition inside a repetition"),
]


def check_format(fmt: Format, length: int = LENGTH) -> Report:
    """Check a format. Raises nothing: a failure is a finding that says where and why.

    Takes about a second per format; `length` bounds the symbol sequences replayed through both drivers.
    """
    spec = fmt.spec
    held = sum(state.held for state in spec.states.values())
    findings = [_language(spec, "grammar = machine", languages.difference)]
    if any(row.repair for row in spec.transitions):
        findings.append(_language(spec, "grammar = machine, without repairs", languages.strict_difference))
    for name, test, detail in _SANITY:
        problems = list(test(spec))
        findings.append(Finding(name, not problems, "\n".join(problems) or detail.format(held=held)))
    if all(finding.ok for finding in findings):
        findings += [_free_text(fmt), _examples(fmt), _drivers(fmt, length), _exports(fmt)]
    return Report(fmt.name, findings, advice.warnings_of(fmt))


def _language(spec: Spec, name: str, difference: Callable[[Spec], languages.Difference | None]) -> Finding:
    try:
        unlike = difference(spec)
    except FormatError as error:
        return Finding(name, False, str(error))
    if unlike is None:
        symbols = len(languages.machine_automaton(spec).symbols())
        return Finding(name, True, f"the same language over {symbols} symbols, decided by automata equivalence")
    other = "machine" if unlike.accepted_by == "grammar" else "grammar"
    files = f"{spec.grammar_path} and {spec.machine_path}"
    return Finding(
        name,
        False,
        f"{files} differ: the {unlike.accepted_by} accepts {' '.join(unlike.word) or 'nothing at all'}, the {other} "
        f"does not; for example {unlike.example!r}. Add it to the {other}, or take it from the {unlike.accepted_by}",
    )


def _free_text(fmt: Format) -> Finding:
    written = free_text.written_by_hand(fmt.spec)
    problems = list(free_text.differences(fmt, written))
    how = (
        f"{', '.join(sorted(written))} as defined by hand: the same texts at the edges of all classes and markers"
        if written
        else ""
    )
    return Finding("free text is what the parser reads", not problems, "\n".join(problems) or how or "all declared")


def _examples(fmt: Format) -> Finding:
    problems = list(examples.unread(fmt))
    return Finding("the examples are read", not problems, "\n".join(problems) or "no call in them is malformed")


def _exports(fmt: Format) -> Finding:
    problems = list(exports.violations(fmt))
    how = "every way through the envelope of auto, required, named and none, stepped with the parser"
    return Finding("an export writes what was asked for", not problems, "\n".join(problems) or how)


def _drivers(fmt: Format, length: int) -> Finding:
    result = drivers.replay(fmt, length)
    name = f"two drivers, one behaviour (sequences up to {length})"
    if result.problem:
        return Finding(name, False, result.problem)
    return Finding(
        name,
        True,
        f"{result.sequences} steps and {result.messages} complete outputs agree with transitions and Lark",
    )


__all__ = ["Finding", "Report", "check_format"]
