"""Answer requests with llama.cpp's own parser: `llama_cpp_chat.cpp`, which `make suite-llama_cpp` builds."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from protocol import Answer, Skip, answer, load, serve
from stand_in import deltas_of, thinks

HOME = Path(os.environ.get("LLAMA_CHAT", ".llama-chat"))
FAMILIES = load("parsers")


class Program:
    """The program that reads, started again if it has ended."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a request."""
        if self.process is None or self.process.poll() is not None:
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            self.process = subprocess.Popen([HOME / "llama_cpp_chat"], text=True, encoding="utf-8", **pipes)
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the program has ended with {self.process.wait()}")
        found: dict[str, Any] = json.loads(line)
        return found


PROGRAM = Program()


def fitted(deltas: list[str], begun: str, opener: str, is_open: bool) -> list[str]:
    """Return deltas as they come after what the template has printed: `begun`. Skips what cannot come after it."""
    text = "".join(deltas)
    ends = (begun[at:] for at in range(len(begun) + 1) if len(begun[at:].strip()) not in (1, 2))  # no part of a word
    overlap = len(next(each for each in ends if text.startswith(each)))
    opens = bool(opener) and begun.rstrip().endswith(opener)
    if opens and not is_open and not overlap:
        raise Skip("the prompt of llama.cpp's template opens a thought, and this output follows another prompt")
    while overlap > len(deltas[0]) and len(deltas) > 1:
        overlap -= len(deltas.pop(0))
    deltas[0] = deltas[0][overlap:]
    return [opener, *deltas] if is_open and not opens else deltas


def read(asked: dict[str, Any]) -> Answer:
    """Return the message of a request: whole, or its deltas as a server streams them."""
    family = FAMILIES.get(asked["family"], {})
    if "llama_cpp" not in family:
        raise Skip("llama.cpp has no template of this family")
    deltas, opener = deltas_of(asked, family["markers"]), next(iter(family["thoughts"]), "")
    end = next((end for end in family["ends"] if deltas[-1].endswith(end)), "")
    deltas[-1] = deltas[-1].removesuffix(end)  # its server does not print a token that ends a turn
    request = {"template": str(HOME / "templates" / family["llama_cpp"]), "tools": asked.get("tools")}
    request["thinking"] = thinks(asked, family["thoughts"])
    begun = PROGRAM.ask({**request, "deltas": []})
    if "raised" not in begun:
        is_open = bool(opener) and (asked.get("prompt") or "").rstrip().endswith(opener)
        begun = PROGRAM.ask({**request, "deltas": fitted(deltas, begun["prompt"], opener, is_open)})
    if "raised" in begun:
        raise RuntimeError(begun["raised"])
    return answer(begun["content"], begun["reasoning"], begun["calls"])


if __name__ == "__main__":
    serve("llama.cpp", read, (HOME / "release").read_text("utf-8").strip())
