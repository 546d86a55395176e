"""What adapters share: a line in, a line out, within some time; and the parts of a stream, added up."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
SECONDS = 10  # for one request
HERE = Path(__file__).parent


class Skip(Exception):
    """The parser does not claim to read this."""


def load(name: str) -> dict[str, Any]:
    """Return a file of this folder."""
    loaded: dict[str, Any] = json.loads((HERE / f"{name}.json").read_text("utf-8"))
    return loaded


def answer(content: str | None, reasoning: str | None, calls: list[Any]) -> Answer:
    """Return an answer; `calls` are names and arguments, which a client takes for complete if they are an object."""
    made = []
    for name, given in calls:
        arguments = given if isinstance(given, str) else json.dumps(given)
        made.append({"name": str(name or ""), "arguments": arguments, "status": _status(arguments)})
    return {"content": content or None, "reasoning": reasoning or None, "calls": made}


def _status(arguments: str) -> str:
    try:
        return "complete" if isinstance(json.loads(arguments), dict) else "malformed"
    except ValueError:
        return "truncated"


class Heard:
    """The deltas of a stream, added up as a client does."""

    def __init__(self) -> None:
        self.content, self.reasoning = "", ""
        self.calls: dict[int, list[str]] = {}

    def call(self, index: int, name: str | None, arguments: str | None) -> None:
        """Add a part of a call."""
        known = self.calls.setdefault(index, ["", ""])
        known[0] += name or ""
        known[1] += arguments or ""

    def answer(self) -> Answer:
        """Return all of it."""
        return answer(self.content, self.reasoning, [call for _, call in sorted(self.calls.items())])


def _late(*_: Any) -> None:
    raise TimeoutError(f"no answer within {SECONDS} s")


def serve(name: str, read: Callable[[dict[str, Any]], Answer], release: str | None = None) -> None:
    """Answer each line, for the package of this name. What a parser raises is an answer, what it prints is an error."""
    out, sys.stdout = sys.stdout, sys.stderr
    about = {"parser": f"{name} {release or version(name)}"}
    signal.signal(signal.SIGALRM, _late)
    for line in sys.stdin:
        signal.alarm(SECONDS)
        try:
            found = read(json.loads(line))
        except Skip as why:
            found = {"skip": str(why)}
        except Exception as error:
            found = {**answer(None, None, []), "raised": f"{type(error).__name__}: {error}"[:200]}
        signal.alarm(0)
        print(json.dumps({**about, **found}), file=out, flush=True)
