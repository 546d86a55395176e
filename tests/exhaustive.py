"""Every short string over a format's critical alphabet, read whole and character by character.

    python -m tests.exhaustive --length 5 --format hermes

Strategy: the strings are all rows of up to LENGTH symbols (`tests.generators.alphabet`) from the start of an output,
and all rows of up to LENGTH - 2 symbols after each beginning that leads into a state of the machine, which reach what
only long strings reach from the start. Each string has two parsers of its own, one that gets it whole and one that gets
its characters; nothing hides in a copied state. `tests.clauses` says what must be true of each.
"""

import sys
from collections.abc import Iterator

import toolgram
from tests.clauses import Promised, Tally, check, options, tallied, try_all
from tests.generators.alphabet import contexts, critical_alphabet

Task = tuple[str, str, str, int]  # format, beginning, first symbol, symbols after it


def visit(fmt: toolgram.Format, text: str, last: str, left: int, promised: Promised, tally: Tally) -> None:
    """Check `text` and all strings that are it and up to `left` symbols."""
    failure, promised = check(fmt, text, promised)
    tally.texts += 1
    tally.characters += len(text)
    if failure is not None:
        tally.note(failure)
    if left:
        symbols = critical_alphabet(fmt.name)
        for symbol in symbols:
            if last + symbol not in symbols:  # those two are one symbol, and are tried as that
                visit(fmt, text + symbol, symbol, left - 1, promised, tally)


def tasks_from_start(name: str, length: int) -> Iterator[Task]:
    """All strings of up to `length` symbols, by their first one."""
    for symbol in critical_alphabet(name) if length > 0 else ():
        yield name, "", symbol, length - 1


def tasks_after_contexts(name: str, length: int) -> Iterator[Task]:
    """All strings of up to `length` symbols after each context."""
    for context in contexts(name) if length > 0 else ():
        for symbol in critical_alphabet(name):
            yield name, context, symbol, length - 1


def do(task: Task) -> Tally:
    """The strings of one task."""
    name, beginning, symbol, left = task
    tally = Tally()
    fmt = toolgram.get_format(name)
    _, promised = check(fmt, beginning)
    visit(fmt, beginning + symbol, symbol, left, promised, tally)
    return tally


def run(name: str, length: int, after: int, workers: int) -> Tally:
    """All strings of a format, in processes."""
    return tallied(name, do, [*tasks_from_start(name, length), *tasks_after_contexts(name, after)], workers)


def main() -> int:
    """The command; 1 where anything failed."""
    parser = options("tests.exhaustive", __doc__)
    parser.add_argument("--length", type=int, default=5, help="symbols from the start of an output (default 5)")
    parser.add_argument("--after", type=int, help="symbols after each context (default: two fewer)")
    chosen = parser.parse_args()
    after = chosen.length - 2 if chosen.after is None else chosen.after
    return try_all(
        chosen.format or toolgram.format_names(),
        lambda name: run(name, chosen.length, after, chosen.workers),
        lambda name, text: check(toolgram.get_format(name), text)[0],
    )


if __name__ == "__main__":
    sys.exit(main())
