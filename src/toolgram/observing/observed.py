"""Types for what was observed of a format: the transitions that its outputs take, and the tokens that end a turn there.

Strategy: these types do not import `Format`, so `Format` can name them and `paths` can import `Format`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from toolgram.spec.data import END, TEXT, Spec, rows_of

BEGIN = "begin"  # the trigger of the state in which an output begins


@dataclass(frozen=True, slots=True)
class Edge:
    """An observed transition: `text` is its own text, `lead` is the text between the previous transition and it."""

    source: str
    trigger: str
    dest: str
    actions: tuple[str, ...]
    lead: str
    text: str


@dataclass(slots=True)
class ObservedPaths:
    """What canonical outputs show: `edges` by source, and `texts`, the states in which free text occurred.

    `closes_content` are the triggers after content that are last in an output, not counting the marker that ends its
    turn. `following` has the transitions out of a state, by the trigger that entered the state (`BEGIN` if an output
    begins there). `pairs` are triggers that follow each other. `outputs` has, for each output, the state in which it
    begins and its transitions in order. `repeated` are the states in which closing markers come one by one, after each
    call. `opens` are the markers that need a closing marker, each with the markers around it. `closes` has what a
    trigger closes, and `leaves_owed` what it leaves open, by state.
    """

    edges: dict[str, list[Edge]] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    closes_content: set[str] = field(default_factory=set)
    following: dict[tuple[str, str], set[Edge]] = field(default_factory=dict)
    pairs: set[tuple[str, str]] = field(default_factory=set)
    outputs: list[tuple[str, list[Edge]]] = field(default_factory=list)
    repeated: set[str] = field(default_factory=set)
    opens: dict[str, frozenset[str]] = field(default_factory=dict)
    closes: dict[str, frozenset[str]] = field(default_factory=dict)
    leaves_owed: dict[str, dict[str, frozenset[str]]] = field(default_factory=dict)
    thinks_after_text: bool = False  # a thought follows content
    python_values: bool = False  # values of arguments are in Python's notation
    json_words: bool = False  # arguments in Python's notation contain JSON's words
    python_calls: bool = False  # a whole call is a Python dict

    def closing(self, state: str, via: str) -> list[Edge]:
        """Return the transitions seen after `via`, or after the arguments if it is "", in a state with closing
        markers."""
        edges = self.edges.get(state, [])
        inside = {edge.trigger for edge in edges if edge.dest == state}
        triggers = {via} if via else {trigger for source, trigger in self.following if source == state} - inside
        seen = {edge for trigger in triggers for edge in self.following.get((state, trigger), ())}
        return [edge for edge in edges if edge in seen]

    def open_after(self, opened: frozenset[str], trigger: str) -> frozenset[str]:
        """Return the opening markers whose closing markers are still to come after a transition."""
        opened = opened - self.closes.get(trigger, frozenset())
        within = self.opens.get(trigger)
        return opened if within is None or (within and within.isdisjoint(opened)) else opened | {trigger}

    def missed(self, state: str, opened: frozenset[str]) -> set[str]:
        """Return the triggers that would leave one of these opening markers open in a state."""
        return {trigger for trigger, those in self.leaves_owed.get(state, {}).items() if not those.isdisjoint(opened)}


def stop_tokens(spec: Spec, paths: ObservedPaths) -> frozenset[str]:
    """Return the terminals that end a turn: `stop:` of the machine file, except those that are never last in an
    example.

    Without `stop:`, return the special tokens that have no effect in text and that nothing follows.
    """
    if spec.stop is not None:
        followed = {first for first, _ in paths.pairs} - {first for first, second in paths.pairs if second == END}
        return frozenset(spec.stop) - followed
    rows = rows_of(spec)
    begins = {spec.initial}
    begins |= {rows[state][TEXT].dest for state in begins if TEXT in rows[state]}
    loops = {
        trigger
        for state in begins
        for trigger, move in rows[state].items()
        if trigger in spec.special_tokens and move.dest in begins and not move.actions
    }
    return frozenset(loops - {first for first, _ in paths.pairs})
