"""The happy path of a format as a picture: at most ten boxes.

Strategy: a format's own outputs (`canonical:` or `example:` of the machine file, or the probes of a derived format) are
followed through the machine.  What none of them takes is left out: error recovery, repairs, other spellings.

* A box is what a program gets: content, reasoning, and of a call its name, id, arguments, keys, values, and values that
  no call needs.  All states with the same meaning are one box; the boxes of a call are one group.  A name, an id and a
  key are read where the action of that name keeps one, in any state.
* A state of content or reasoning that text leaves for another such state is not a box.  There a message may begin.
* An edge has the text between two boxes, as the outputs write it.  Blanks in it are one blank; a text that varies is
  `...`.  Edges with several texts list them.

A format without outputs of its own has no such path.  Its whole machine is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolgram.diagrams.picture import Box, Edge, Picture
from toolgram.diagrams.whole import AGAIN, whole
from toolgram.diagrams.words import printable
from toolgram.formats import Format
from toolgram.observing.observed import Edge as Step
from toolgram.spec.data import END, TEXT, Literal, Spec, rows_of

WIDEST_LINE = 28  # characters of a label
VARIES = "..."
START, FINISH = "output_begins", "output_ends"
_IN_WORDS = {
    "content": "content",
    "reasoning": "reasoning",
    "name": "name",
    "call_id": "call id",
    "argument_key": "key of an argument",
    "value": "value of an argument",
    "arguments": "arguments",
    "ignored": "a value that no call needs",
}
_OF_A_CALL = frozenset(_IN_WORDS) - {"content", "reasoning"}
_KEPT = ("name", "call_id", "argument_key")  # actions that keep the text of their trigger
_TEXT = ("content", "reasoning")

Label = tuple[str, ...]  # the texts between two boxes, one for each trigger


@dataclass(slots=True)
class _Followed:
    """The boxes that outputs go through, and the labels between them."""

    edges: dict[tuple[str, str], dict[str, Label]] = field(default_factory=dict)  # labels by what they say
    boxes: dict[str, None] = field(default_factory=dict)


def happy_path(fmt: Format, widest: int = WIDEST_LINE) -> Picture:
    """Return the path of the format's own outputs, or else the whole machine. Lines of labels have up to `widest`
    characters."""
    followed = _Followed()
    meanings = _boxes_of(fmt.spec)
    for begin, steps in fmt.observed_paths.outputs:
        _follow(fmt.spec, meanings, begin, steps, followed)
    if not followed.edges:
        return whole(fmt.spec)
    initial = _without_start(followed)
    loops = {source: labels for (source, dest), labels in followed.edges.items() if source == dest}
    boxes = {_name(box): _box(box, loops.get(box, {}), widest) for box in followed.boxes}
    edges = {
        (_name(source), _name(dest)): Edge(tuple(_lines(labels, widest)))
        for (source, dest), labels in followed.edges.items()
        if source != dest
    }
    groups = {"call": "a call"} if any(box.group for box in boxes.values()) else {}
    return Picture(fmt.spec.title, _name(initial), boxes, edges, groups)


def _boxes_of(spec: Spec) -> dict[str, str]:
    """Return the box of each state that is one."""
    rows = rows_of(spec)

    def keeps_text(name: str) -> bool:
        row = rows[name].get(TEXT)
        return row is None or row.dest == name

    boxes: dict[str, str] = {}
    for state in spec.states.values():
        meaning = state.meaning or ""
        passed = meaning in _TEXT and not keeps_text(state.name) and keeps_text(rows[state.name][TEXT].dest)
        if meaning in _IN_WORDS and meaning not in _KEPT and not passed:
            boxes[state.name] = meaning
    return boxes


def _follow(spec: Spec, boxes: dict[str, str], begin: str, steps: list[Step], followed: _Followed) -> None:
    """Add the boxes of one output, and the labels between them."""
    box, label, here = START, [""], begin

    def enter(following: str) -> None:
        nonlocal box
        _add(followed, box, following, tuple(label))
        box, label[:] = following, [""]

    if begin in boxes:
        enter(boxes[begin])
    for step in steps:
        if step.source != here and step.source in boxes:  # text led here
            enter(boxes[step.source])
        label[-1] += step.lead
        here = step.dest
        if step.trigger == END:
            enter(FINISH)
            continue
        kept = next((action for action in step.actions if action in _KEPT), None)
        if kept is not None:
            enter(kept)
        elif step.trigger == "object_empty":
            enter("arguments")
        else:
            label.append(_text(spec, step))
        if step.dest in boxes and (boxes[step.dest] != box or any(label)):
            enter(boxes[step.dest])


def _text(spec: Spec, step: Step) -> str:
    """Return what is there in every output."""
    terminal = spec.terminals.get(step.trigger)
    varies = not isinstance(terminal, Literal) if terminal is not None else step.trigger.startswith("string ")
    if not varies or step.trigger.count(" ") > 1 or not step.text.strip():
        return step.text
    return '"..."' if step.text.startswith('"') else VARIES


def _add(followed: _Followed, source: str, dest: str, label: Label) -> None:
    if source != START:
        followed.boxes[source] = None
    followed.boxes[dest] = None
    labels = followed.edges.setdefault((source, dest), {})
    labels.setdefault(" ".join("".join(label).split()), label)


def _without_start(followed: _Followed) -> str:
    """Return the box in which every output begins. If outputs begin in several ways, a box of its own says so."""
    starts = [(dest, labels) for (source, dest), labels in followed.edges.items() if source == START]
    if len(starts) == 1 and list(starts[0][1]) == [""]:
        del followed.edges[START, starts[0][0]]
        return starts[0][0]
    followed.boxes = {START: None, **followed.boxes}
    return START


def _name(box: str) -> str:
    """Return the name of a box, which is not a word of a language."""
    return box if box in (START, FINISH) else f"of_{box}"


def _box(box: str, loops: dict[str, Label], widest: int) -> Box:
    if box in (START, FINISH):
        return Box((box.replace("_", " "),), None, end=box == FINISH)
    lines = [_IN_WORDS[box]]
    if loops:
        first, *others = _lines(loops, widest)
        lines += [f"{AGAIN} {first}", *others]
    return Box(tuple(lines), box, group="call" if box in _OF_A_CALL else "")


def _lines(labels: dict[str, Label], widest: int) -> list[str]:
    """Return each label on lines of limited width; a marker is broken only if it is longer than a line."""
    lines: list[str] = []
    for said, label in labels.items():
        if not said:
            if blanks := "".join(label):
                lines.append("line end" if "\n" in blanks else "blank")
            continue
        begun = [f"{'or ' if lines else ''}"]
        for piece in label:
            if begun[-1].strip() not in ("", "or") and len(begun[-1]) + len(piece.rstrip()) > widest:
                begun.append("")
            begun[-1] += piece
        lines += [part for line in begun if line.strip() for part in _broken(printable(" ".join(line.split())), widest)]
    return lines


def _broken(line: str, widest: int) -> list[str]:
    """Return a line on as many as it needs, after a sign if one is near."""
    parts = []
    while len(line) > widest:
        signs = [at for at in range(widest // 2, widest) if not line[at].isalnum()]
        at = signs[-1] + 1 if signs else widest
        parts.append(line[:at].rstrip())
        line = line[at:].lstrip()
    return [*parts, line] if line else parts
