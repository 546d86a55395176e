"""Derive from templates made of independent pieces, and count the rows that are read: `tests/derive/made.py` has them.

`python -m benchmarks.made_templates [--first N] [--count N] [--rows] [--by AXIS] [--show NUMBER]`
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence

import toolgram
from tests.derive.made import made, outputs, unreadable, wrong_rows
from toolgram.derive.errors import TemplateError


def main(given: Sequence[str] | None = None) -> int:
    """Derive from templates, and read what they render. The exit status is 1 where an error is silent."""
    arguments = argparse.ArgumentParser(prog="python -m benchmarks.made_templates")
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--count", type=int, default=100)
    arguments.add_argument("--rows", action="store_true", help="show rows that are wrong where the report is ok")
    arguments.add_argument("--show", type=int, default=-1, help="show all of this one")
    arguments.add_argument("--reasons", action="store_true", help="show why reports are not ok")
    arguments.add_argument("--by", default="calls", help="the axis by whose pieces lost rows are counted")
    options = arguments.parse_args(given)
    numbers = range(options.first, options.first + options.count) if options.show < 0 else [options.show]
    rows = exact = silent = fine = 0
    reasons: Counter[str] = Counter()
    lost: Counter[str] = Counter()  # rows that are not read and have no certain reading, by the reason
    pieces: Counter[tuple[str, str]] = Counter()  # all rows that are not read, by a piece and the reason
    for number in numbers:
        template = made(number)
        try:
            fmt = toolgram.derive_format(template.source, bos_token="<s>", eos_token="</s>")
            total = len(list(outputs(template)))
        except TemplateError as error:
            print(number, "cannot be derived:", error, template.parts)
            continue
        assert fmt.report is not None
        wrong = wrong_rows(template, fmt)
        rows, exact, fine = rows + total, exact + total - len(wrong), fine + fmt.report.ok
        why = [unreadable(template, name) for name, _, _ in wrong]
        lost.update(filter(None, why))
        pieces.update((template.parts[options.by], each or "another") for each in why)
        silent += len(wrong) * fmt.report.ok
        if not fmt.report.ok:
            problems = [*fmt.report.unexplained, *(f"{each.case}: {each.problem}" for each in fmt.report.failed)]
            reasons[f"{'right' if not wrong else 'wrong'}: {problems[0][:90]}"] += 1
            if options.reasons:
                print(number, f"{len(wrong)} of {total} wrong;", problems[0][:150], template.parts)
        if options.show >= 0:
            print(template.source, fmt.report, sep="\n")
            for row in outputs(template):
                print(row[0], repr(row[2]))
        if wrong and (fmt.report.ok or options.show >= 0):
            print(f"{number} {'SILENT' if fmt.report.ok else ''} {len(wrong)} of {total}: {template.parts}")
            for name, output, problem in wrong[: None if options.rows else 2]:
                print(f"    {name}: {output[:300]!r}\n        {problem[:400]}")
    for reason, count in reasons.most_common(40):
        print(f"{count:4} {reason}")
    for (piece, reason), count in pieces.most_common(20):
        print(f"{count:4} rows lost with {options.by} {piece!r}: {reason}")
    readable = rows - sum(lost.values())
    print(f"{exact} of {rows} rows exact ({exact / rows:.1%}), of {readable} that can be read ({exact / readable:.1%})")
    for reason, count in lost.most_common():
        print(f"{count:4} of the others: {reason}")
    print(f"{fine} of {len(numbers)} templates ok, with {silent} rows silently wrong")
    return int(silent > 0)


if __name__ == "__main__":
    sys.exit(main())
