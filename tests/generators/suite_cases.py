"""Write the generated cases of the suite: `python -m tests.generators.suite_cases`.

Strategy: a turn is chosen, and then written in the notation of every family by `writers.py`, which knows no parser. So
the message is known before the text is. What is done to the text after that (a cut, a missing closer, a quotation) is
done at places that the writing shows, and has one meaning by the clauses of `suite/README.md`. No parser is asked.
All choices are made with a seed, and the same seed writes the same files.
"""

import argparse
import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import toolgram
from tests.integrations.writers import WRITERS, Call, Turn, can_write, turn_of
from tests.tables import table

Case: TypeAlias = dict[str, Any]

SUITE = Path(__file__).resolve().parents[2] / "suite"
RANDOM_TURNS = 15  # of each family

# Families whose calls have no marker, or one that text has as well (`>>>`): a beginning of one is text.
BARE = frozenset({"functionary_v3_2", "glm4", "llama3_json", "xlam"})
# Families in which each part is a message with a header: no call is within text or a thought.
MESSAGES = {"beam", "functionary_v3_2", "gpt_oss", "inkling", "kimi_k3", "muse", "muse_glimmer", "solar_open"}

WEATHER: Call = ("get_weather", {"city": "Paris", "days": 2})
ROME: Call = ("get_weather", {"city": "Rome", "days": 7})
NOW: Call = ("now", {})
TURNS: tuple[tuple[str, Turn, str], ...] = tuple(
    (row["label"], replace(turn_of(row), label=""), row["why"]) for row in table(__file__, "turns")
)
# What shows that a name is whole.
_AFTER_NAME = re.compile(r"""(?::\d)?(?:[<\[][^<>\[\]]{1,60}[>\]]|["'(>]+|:?\s|<(?=a)|\{)""")
WORDS = ("Sure.", "Here it is:", "naïve", "你好", "50%", "x = 3", "it's", '"quoted"', "a/b", "(see 1)", "f(x)", "Done!")
STRINGS = (
    "Oslo", "São Paulo", "12", "true", "null", "3.10", "a b", "it's", 'say "hi"', "C:\\new", "a, b; c", "<b>bold</b>",
    "1 < 2 && 3 > 2", "{x}", "[1]", "https://a.b/c?d=e&f=%20", "# title", "line\nline", "tab\there", "日本語 🤔",
    "f(a=1)",
)  # fmt: skip
VALUES: dict[str, tuple[Any, ...]] = {
    "limit": (0, 1, -7, 12345678901), "exact": (True, False), "score": (0.5, -2.25, 1e-7, 100.125),
    "tags": ([], ["a"], ["a", "b c"], ['q"', "it's"]), "filters": ({"a": 1}, {"a": {"b": None}}, {"k": [True, "x"]}),
}  # fmt: skip


def turns(name: str, seed: int) -> Iterator[tuple[str, Turn, str]]:
    """The turns of a family: those with names, and random ones."""
    yield from TURNS
    rng = random.Random(f"{seed} {name}")
    for number in range(RANDOM_TURNS):
        yield f"seeded-{number}", random_turn(rng, number % 3 == 0, number % 2 == 1), "Chosen with a seed."


def random_turn(rng: random.Random, thinks: bool, says: bool) -> Turn:
    """A turn with one to three calls, perhaps after a thought and some text."""
    calls = tuple(_random_call(rng) for _ in range(rng.choice((1, 1, 1, 2, 3))))
    return Turn("", _prose(rng) if thinks else "", _prose(rng) if says else "", calls)


def _prose(rng: random.Random) -> str:
    return " ".join(rng.sample(WORDS, rng.randint(1, 4)))


def _random_call(rng: random.Random) -> Call:
    kind = rng.choice(("get_weather", "search", "search", "search", "run", "now"))
    if kind == "get_weather":
        return kind, {"city": rng.choice(STRINGS), "days": rng.randint(0, 30)}
    if kind == "run":
        return kind, {"code": rng.choice(STRINGS)}
    if kind == "now":
        return kind, {}
    keys = [key for key in VALUES if rng.random() < 0.5]
    return kind, {"query": rng.choice(STRINGS), **{key: rng.choice(VALUES[key]) for key in keys}}


def thinks(name: str) -> bool:
    """Whether a family is declared to write thoughts."""
    return any(state.meaning == "reasoning" for state in toolgram.get_format(name).spec.states.values())


def writable(name: str, turn: Turn) -> bool:
    """Whether a notation has room for a turn."""
    return can_write(name, turn) and (not turn.reasoning or thinks(name))


def expected(turn: Turn, calls: tuple[Call, ...] | None = None, status: str = "complete") -> dict[str, Any]:
    """The message of a turn; the last of its calls has this status."""
    made = turn.calls if calls is None else calls
    said = " ".join(part for part in (turn.content, turn.after) if part)
    found = [{"name": name, "arguments": given, "status": "complete"} for name, given in made]
    if found:
        found[-1]["status"] = status
    return {"content": said or None, "reasoning": turn.reasoning or None, "calls": found}


def level_of(turn: Turn) -> str:
    """Return the level of a turn as it is written: no template prints text after a call, which has one reading."""
    return "robust" if turn.after else "core"


def case(
    name: str, clause: str, label: str, level: str, text: str, expect: dict[str, Any], why: str, reason: Any = "stop"
) -> Case:
    """A case of the generated ones."""
    return {
        "version": 1, "id": f"{clause.lower()}-{name}-made-{label}", "family": name, "level": level, "clause": clause,
        "text": text, "prompt": "", "tools": "search", "finish_reason": reason, "expect": expect, "why": why,
    }  # fmt: skip


def templates(name: str, seed: int) -> Iterator[Case]:
    """What the template prints."""
    seen = set()
    for label, turn, why in turns(name, seed):
        text = WRITERS[name](turn) if writable(name, turn) else None
        if text is not None and text not in seen:
            seen.add(text)
            yield case(name, "template", label, level_of(turn), text, expected(turn), why)


def cut_off(name: str) -> Iterator[Case]:
    """The output ends in the value of the last call, for each finish reason that may be."""
    last = ("run", {"code": "rm -rf /tmp/build"})
    for label, turn in (
        ("value", Turn("", calls=(last,))),
        ("text-value", Turn("", content="Let me clean.", calls=(last,))),
        ("second-value", Turn("", calls=(WEATHER, last))),
    ):
        if not writable(name, turn) or name in BARE:
            continue
        whole = WRITERS[name](turn)
        text = whole[: whole.rindex("-rf /tmp/b") + len("-rf /tmp/b")]
        calls = (*turn.calls[:-1], ("run", {"code": "rm -rf /tmp/b"}))
        for reason in ("length", None):
            told = "The output was cut in a value." if reason else "No reason is known: the value may go on."
            expect = expected(turn, calls, "truncated")
            yield case(name, "P1", f"{label}-{reason or 'none'}", "robust", text, expect, told, reason)


def names(name: str) -> Iterator[Case]:
    """The output ends after the name of a call."""
    turn = Turn("", content="Let me look.", calls=(("get_weather", {"city": "Paris"}),))
    if name in BARE or not writable(name, turn):
        return
    whole = WRITERS[name](turn)
    text = whole[: whole.rindex("get_weather") + len("get_weather")]
    after = _AFTER_NAME.match(whole, len(text))
    if after is None:
        return
    text += after.group()
    for reason in ("length", None):
        expect = expected(turn, (("get_weather", {}),), "truncated")
        del expect["content"]  # the blanks and markers around the text are other cases
        why = "The name was written, and no more."
        found = case(name, "P5", f"name-{reason or 'none'}", "robust", text, expect, why, reason)
        yield {**found, "never": {"called": ["get_weather"]}}


def closers(name: str) -> Iterator[Case]:
    """All closers after whole JSON arguments are missing."""
    given = json.dumps(WEATHER[1], ensure_ascii=False)
    for label, turn in (("one", Turn("", calls=(WEATHER,))), ("text", Turn("", content="Look.", calls=(WEATHER,)))):
        whole = WRITERS[name](turn)
        at = whole.rfind(given) + len(given)
        if given not in whole or at == len(whole) or not writable(name, turn):
            continue
        for reason in ("stop", "length", None):
            why = "The arguments are whole; only closers around them are missing."
            yield case(name, "table", f"{label}-{reason or 'none'}", "robust", whole[:at], expected(turn), why, reason)


def quotations(name: str) -> Iterator[Case]:
    """A call that is only mentioned: in inline code, in a fence, in a thought; and a real one after it."""
    call = WRITERS[name](Turn("", calls=(ROME,))).strip()
    if name in BARE or name in MESSAGES:
        return
    places = [
        ("span", "in inline code", Turn("", content=f"Write `{call}` to call it.")),
        ("fence", "in a fence with text after it", Turn("", content=f"Like this:\n\n```\n{call}\n```\n\nThat is all.")),
        ("thought", "in a thought that goes on", Turn("", f"perhaps {call} but no.", "Hello!")),
    ]
    for label, place, turn in places:
        if (label == "span" and "\n\n" in call) or (label != "thought" and "`" in call) or not writable(name, turn):
            continue
        for reason in ("stop", None):
            text, why = WRITERS[name](turn), f"A call {place} is only mentioned."
            found = case(name, "P3", f"{label}-{reason or 'none'}", "policy", text, expected(turn), why, reason)
            yield {**found, "never": {"called": ["get_weather"]}}
        both = Turn("", turn.reasoning, turn.content, (WEATHER,))
        if writable(name, both):
            why = f"A call {place} is only mentioned; the real one follows."
            yield case(name, "P3", f"{label}-then-call", "policy", WRITERS[name](both), expected(both), why)


def special_ids(name: str) -> dict[str, int]:
    """An id for each special token of a family, by its text."""
    spec = toolgram.get_format(name).spec
    texts = (getattr(spec.terminals[token], "text", "") for token in spec.special_tokens)
    return {text: 100_000 + number for number, text in enumerate(filter(None, texts))}


def with_ids(found: Case, special: dict[str, int], spelled: str = "") -> Case:
    """A case with its tokens: special ones with their ids, other text by characters; `spelled` has no special one."""
    text = found["text"]
    begin, end = text.find(spelled) if spelled else 0, text.find(spelled) + len(spelled) if spelled else 0
    parts = [(text[:begin], False), (text[begin:end], True), (text[end:], False)]
    marks = re.compile("(" + "|".join(map(re.escape, sorted(special, key=len, reverse=True))) + ")")
    pieces: list[list[Any]] = []
    for part, is_spelled in parts:
        for each in [part] if is_spelled else marks.split(part):
            if each in special and not is_spelled:
                pieces.append([each, special[each]])
            else:
                pieces += [[each[at : at + 6], 7] for at in range(0, len(each), 6)]
    return {**found, "id": f"{found['id']}-ids", "pieces": pieces, "special_tokens": special}


def tokens(name: str) -> Iterator[Case]:
    """Texts with the ids of their tokens: markers with their ids, and a call whose markers are spelled."""
    special = special_ids(name)
    call = WRITERS[name](Turn("", calls=(ROME,))).strip()
    if not special or not any(mark in call for mark in special):
        return
    for label, turn, why in TURNS:
        if label in ("one-call", "text-call", "thought-call") and writable(name, turn):
            made = case(name, "template", label, level_of(turn), WRITERS[name](turn), expected(turn), why)
            yield with_ids(made, special)
    mentioned = Turn("", content=f"One writes `{call}` for that.")
    if name in BARE or name in MESSAGES or "`" in call or not writable(name, mentioned):
        return
    never = {"called": ["get_weather"]}
    for label, turn in (("spelled", mentioned), ("spelled-call", Turn("", content=mentioned.content, calls=(NOW,)))):
        if writable(name, turn):
            why = "Markers that have not the ids of their tokens are text."
            found = case(name, "P3", label, "policy", WRITERS[name](turn), expected(turn), why)
            yield with_ids({**found, "never": never}, special, mentioned.content)


def made(seed: int) -> Iterator[Case]:
    """All generated cases."""
    for name in toolgram.format_names():
        yield from templates(name, seed)
        yield from cut_off(name)
        yield from names(name)
        yield from closers(name)
        yield from quotations(name)
        yield from tokens(name)


def write(folder: Path, seed: int) -> int:
    """Write the files, one per clause; returns how many cases there are."""
    files: dict[str, list[str]] = defaultdict(list)
    for each in made(seed):
        files[each["clause"].lower()].append(json.dumps(each, ensure_ascii=False))
    for clause, lines in files.items():
        (folder / f"made-{clause}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return sum(map(len, files.values()))


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    print(f"{write(SUITE / 'cases', parser.parse_args().seed)} cases")


if __name__ == "__main__":
    main()
