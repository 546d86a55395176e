"""Options of `toolgram parse` that are only for rows."""

from __future__ import annotations

from typing import Annotated

import typer

RowsOutput = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="OUT",
        help="With --jsonl: the file to write; its ending (.jsonl, .jsonl.gz, .jsonl.zst, .parquet) chooses the kind. "
        "It must be none of the inputs. Example: -o calls.parquet",
    ),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD",
        show_default=False,
        help="With --jsonl: a column of the input to pass on. May be repeated. Example: --keep id --keep model",
    ),
]
ToolsColumn = Annotated[
    str | None, typer.Option(metavar="FIELD", help="With --jsonl: the column with the tools of each row.")
]
PrefixColumn = Annotated[
    str | None, typer.Option(metavar="FIELD", help="With --jsonl: the column with the prompt's end of each row.")
]
FormatColumn = Annotated[
    str | None, typer.Option(metavar="FIELD", help="With --jsonl: the column with the name of each row's format.")
]
FinishReasonColumn = Annotated[
    str | None, typer.Option(metavar="FIELD", help="With --jsonl: the column with the finish reason of each row.")
]
Workers = Annotated[
    int,
    typer.Option(metavar="N", min=1, help="With --jsonl: processes that parse. The order stays. Example: --workers 2"),
]
Errors = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="With --jsonl: write the rows that could not be read, with line numbers."),
]
Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="With -o OUT: go on with a run that was ended; what it had finished lies in OUT.parts."
    ),
]
Report = Annotated[
    str | None,
    typer.Option(metavar="X.html", help="With --jsonl: write the summary as a page with bars."),
]
OnRay = Annotated[
    bool, typer.Option("--ray", help="With --jsonl: parse on a Ray cluster, or on one of this machine's processors.")
]
RayAddress = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="The Ray cluster. Example: --ray-address ray://head:10001")
]
