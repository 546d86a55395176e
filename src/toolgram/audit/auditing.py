"""Audit log files: compare the returned calls with the written ones, by model, with examples.

Strategy: the first rows of each file show which format each model writes. Then each batch is compared independently, in
this process or in several, and the results are added up. Only the rows that are shown as examples are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from toolgram.adapters.reading import evidence_in
from toolgram.audit.comparing import KINDS, compare
from toolgram.audit.served import Served, served
from toolgram.bulk.errors import BadFile, BadRow
from toolgram.bulk.inputs import TOO_LONG, Batch, expand, named, read_batches, rows_of
from toolgram.bulk.json_rows import read_row
from toolgram.bulk.running import answer_in_processes
from toolgram.errors import ToolgramError
from toolgram.explain import recognise
from toolgram.explain.explanation import counted
from toolgram.explain.recognising import is_found
from toolgram.formats import format_names, get_format
from toolgram.names import Entry, known_names
from toolgram.showing import reading

MOST_EXAMPLES = 10
MOST_SAMPLED = 40  # outputs of a model from which its format is recognised
_SAMPLED_ROWS = 5_000  # read from each file for the sample
_LONGEST = 20_000  # characters of an example, and of an output in the sample


@dataclass
class Audit:
    """The result of an audit: `models` has counts by model, `examples` some rows of each kind, `formats` each model's
    format."""

    rows: int = 0
    unread: int = 0  # rows of an unknown shape
    models: dict[str, Counter[str]] = field(default_factory=dict)
    examples: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    formats: dict[str, str] = field(default_factory=dict)
    problems: list[BadFile] = field(default_factory=list)

    def add(self, other: Audit) -> None:
        """Add the result of rows that come after these."""
        self.rows += other.rows
        self.unread += other.unread
        for model, counts in other.models.items():
            self.models.setdefault(model, Counter()).update(counts)
        for kind, found in other.examples.items():
            self.examples[kind] += found[: MOST_EXAMPLES - len(self.examples[kind])]

    @property
    def total(self) -> Counter[str]:
        """The counts of all models."""
        return sum(self.models.values(), Counter())

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as JSON-able data."""
        total = self.total
        return {
            "rows": self.rows,
            "unread": self.unread,
            "returned": total["returned"],
            "written": total["written"],
            "unsaid": total["unsaid"],
            "found": {kind: total[kind] for kind in KINDS},
            "models": [
                {"model": model, "format": self.formats.get(model), **counts, "advice": advice(self.formats.get(model))}
                for model, counts in self.models.items()
            ],
            "examples": self.examples,
            "problems": [each.said for each in self.problems],
        }


def advice(name: str | None) -> str:
    """Return how to read the text of a model whose format is `name`."""
    if not name:
        return "no shipped format is recognised in it; with the chat template: toolgram derive"
    parsers = known_names().entries.get(name, Entry()).parsers.get(("vllm", "tool"), ())
    own = f" (vLLM's own parser for it: {', '.join(parsers)})" if parsers else ""
    flags = f"--enable-auto-tool-choice --tool-call-parser toolgram_{name} --reasoning-parser toolgram_{name}"
    return f"vllm serve {flags}{own}; or toolgram serve --format {name}"


def audit(inputs: Sequence[str], fmt: str | None = None, workers: int = 1) -> Audit:
    """Audit files, directories and patterns. `fmt` is the format of all rows, recognised if it is not given.

    Raises ToolgramError for a format that does not ship and if there is no file.
    """
    files = expand(inputs)
    found = Audit()
    found.formats = _recognised(files) if fmt is None else {"": get_format(fmt).name}
    reader, batches = partial(_Reader, found.formats), _batches(files, found)
    for part in answer_in_processes(reader, batches, workers) if workers > 1 else map(reader(), batches):
        found.add(part)
    if found.rows == found.unread and not found.problems:
        found.problems.append(BadFile(_unreadable(inputs, found.rows)))
    found.formats = {model: found.formats.get(model, found.formats.get("", "")) for model in found.models}
    _mark(found)
    return found


def _unreadable(inputs: Sequence[str], rows: int) -> str:
    """Return why nothing could be read, and what can be."""
    why = "there are no rows" if not rows else f"none of {counted(rows, 'row')} can be read"
    return (
        f"{', '.join(map(named, inputs))}: {why}; a row is one line of JSON: the answer of a server, or an object with "
        "the text of the model in `raw`, `output` or `text`. A single output that is no log: toolgram try FILE"
    )


def _batches(files: Sequence[str], found: Audit) -> Iterator[Batch]:
    for path in files:
        try:
            for batch in read_batches(path, ()):
                yield batch._replace(file=named(path))
        except BadFile as error:
            found.problems.append(error)


def _rows(batch: Batch) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a batch with their numbers; a row that cannot be read is None."""
    for number, row in rows_of(batch):
        try:
            yield number, read_row(row) if isinstance(row, bytes) else row
        except BadRow:
            yield number, None


def _recognised(files: Sequence[str]) -> dict[str, str]:
    """Return the format of each model, recognised from its first rows. Only texts with brackets are sampled."""
    samples: dict[str, list[str]] = {}
    for path in files:
        if path == "-":
            raise BadFile("standard input is read once: name the format, --format NAME")
        for _, row in islice(_sampled(path), _SAMPLED_ROWS):
            for answer in served(row):
                sample = samples.setdefault(answer.model, [])
                if (
                    len(sample) < MOST_SAMPLED
                    and answer.text not in sample
                    and any(mark in answer.text for mark in "<[{")
                ):
                    sample.append(answer.text[:_LONGEST])
    formats = {}
    for model, texts in samples.items():
        first = recognise(texts)[0]
        formats[model] = first.name if is_found(first) else ""
    return formats


def _sampled(path: str) -> Iterator[tuple[int, Any]]:
    try:
        for batch in read_batches(path, ()):
            yield from _rows(batch)
    except BadFile:
        return  # this is reported when the rows are compared


class _Reader:
    def __init__(self, formats: Mapping[str, str]) -> None:
        self._formats, self._shipped = formats, frozenset(format_names())

    def __call__(self, batch: Batch) -> Audit:
        """Return the result of a batch."""
        found = Audit(unread=int(batch.kind == TOO_LONG), rows=int(batch.kind == TOO_LONG))
        for number, row in _rows(batch):
            found.rows += 1
            answers = list(served(row))
            found.unread += not answers
            for answer in answers:
                self._count(found, answer, batch.file, number)
        return found

    def _count(self, found: Audit, answer: Served, file: str, number: int) -> None:
        counts = found.models.setdefault(answer.model, Counter())
        counts["answers"] += 1
        counts["unsaid"] += answer.calls is None
        name = (
            answer.format if answer.format in self._shipped else self._formats.get(answer.model, self._formats.get(""))
        )
        if not name:
            counts["returned"] += len(answer.calls or ())
            counts["written"] += len(answer.calls or ())
            return
        compared = compare(answer, get_format(name))
        counts["returned"] += compared.returned
        counts["written"] += compared.written
        for kind, why in compared.findings:
            counts[kind] += 1
            examples = found.examples[kind]
            shown = bool(examples) and (examples[-1]["file"], examples[-1]["row"]) == (file, number)
            if len(examples) < MOST_EXAMPLES and not shown:  # show a row once
                place = {"file": file, "row": number, "id": answer.id, "model": answer.model, "format": name}
                calls = [call._asdict() for call in answer.calls or ()]
                example = {**place, "why": why, "text": answer.text[:_LONGEST], "returned": calls}
                reason = evidence_in(answer.reason) if len(answer.text) <= _LONGEST else None
                examples.append(
                    {**example, "asked": (answer.tools, "" if answer.raw is None else answer.prefix, reason)}
                )


def _mark(found: Audit) -> None:
    """Add to each example how its format reads it, and the advice."""
    for example in (each for examples in found.examples.values() for each in examples):
        fmt, text, (tools, prefix, reason) = get_format(example["format"]), example["text"], example.pop("asked")
        try:
            example["read"] = reading(fmt, text, tools, prefix, finish_reason=reason)
        except ToolgramError:  # the tools have an unknown shape
            example["read"] = reading(fmt, text, None, prefix, finish_reason=reason)
        example["advice"] = advice(example["format"])
