"""Build one expression from a format's observed paths and a request: every output that the model may write.

Strategy: the observed transitions are an automaton. Its states are copied for the progress of the output (whether there
is a call yet, whether reasoning must still begin), so that the request decides where an output may end. Free text is
one symbol, up to the first character that makes it something else. Kleene's algorithm turns the automaton into an
expression. It is the same for all functions: a placeholder represents their names, and slots represent their arguments.
Between two states that belong to no call is a part that `functions` writes for each function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, filterfalse
from typing import Any

from toolgram.errors import ToolgramError
from toolgram.export import expressions as ex
from toolgram.export.requests import ExportRequest
from toolgram.export.solving import solve
from toolgram.export.texts import WORD, characters_of, first_completion, forbidden_words, rest_of
from toolgram.observing.observed import BEGIN, Edge, ObservedPaths, stop_tokens
from toolgram.spec.data import END, TEXT, Literal, Run, Spec, rows_of

_BLANKS = {"", "\n", "\n\n"}  # models write these before and after a call, whatever the template does
_MOST_JOINED = 6  # fixed texts after each other that are joined
NO_ARGUMENTS = ex.Slot("no_arguments")
_ID_LENGTHS = {"mistral_9": (9, WORD[:62])}


@dataclass(frozen=True, slots=True)
class Node:
    """A state of the automaton: a state of the machine, how it was entered, and the progress.

    `in_call` means that the function of a call matters for what follows. `begun` is False at the beginning of an
    output. `called` means that there is a call, `due` that reasoning must still begin, `inside` that this is the place
    between two tagged arguments. `opened` are the triggers of the closing markers that must follow the call.
    """

    state: str
    via: str = ""
    in_call: bool = False
    begun: bool = True
    called: bool = False
    due: bool = False
    inside: bool = False
    opened: frozenset[str] = frozenset()


class Builder:
    """Builds the expression of one request."""

    def __init__(self, spec: Spec, paths: ObservedPaths, request: ExportRequest, start: str, note: ex.Note) -> None:
        self.spec, self.paths, self.request, self.start, self.note = spec, paths, request, start, note
        self.rows = rows_of(spec)
        self.stops = stop_tokens(spec, paths)
        self.every = [edge for edges in paths.edges.values() for edge in edges]
        self.ended = {edge.source for edge in self.every if self._ends(edge)}
        self.pooled = [edge for edge in self.every if self._is_text(edge.source) and self._is_content(edge.source)]
        self.acts = {(each.trigger, action) for each in spec.transitions for action in each.actions}
        self.after_calls = self._after_calls()
        self.late = self._named_late()
        self.concerned = self._concerned()
        self.triggers: dict[str, None] = {}
        self.known_forbidden: dict[str, ex.Forbidden] = {}
        self.ends: dict[str, dict[str, None]] = {}  # words that end the text of a state, besides forbidden ones
        self.written = request.tokens.written  # the text of a transition, in which special tokens are tokens
        self.like = cache(self._like)
        self.representatives: dict[Any, str] = {}

    # --- solving --------------------------------------------------------------------------------------------------

    def build(self) -> ex.Expr:
        """Return the expression of whole outputs."""
        if self.start not in self.paths.edges and not self._is_text(self.start) and TEXT in self.rows[self.start]:
            self.start = self.rows[self.start][TEXT].dest  # the prompt already contains text
        thinks = self.spec.states[self.start].meaning == "reasoning"
        due = self.request.reasoning is True and not thinks
        if due and not any(self.spec.states[edge.dest].meaning == "reasoning" for edge in self.every):
            self.note("no output of this format has reasoning, so none is demanded")
            due = False
        if thinks and self.request.reasoning is False:
            self.note("the prompt has opened reasoning already, so it is not forbidden")
        return solve(Node(self.start, BEGIN, begun=False, due=due), self._moves, lambda node: node.in_call)

    # --- the states -----------------------------------------------------------------------------------------------

    def _ends(self, edge: Edge) -> bool:
        return edge.trigger == END or edge.trigger in self.stops

    def _is_text(self, state: str) -> bool:
        """Return whether a state may contain free text, which means that the examples have text in it."""
        return self.spec.states[state].meaning in ("content", "reasoning") and state in self.paths.texts

    def _is_content(self, state: str) -> bool:
        return self.spec.states[state].meaning == "content"

    def _after_calls(self) -> dict[str, list[Edge]]:
        """Return the transitions observed after a call, for every state that the end of a call enters."""
        states = dict.fromkeys(
            edge.dest for edge in self.every if _ends_arguments(edge) and not self._is_text(edge.dest)
        )
        found: dict[str, list[Edge]] = {}
        for state in states:
            own = self.paths.edges.get(state, [])
            begun = {edge.trigger for edge in own}
            also = [
                replace(edge, source=state, lead="")
                for edge in (self._fitting(state, self.pooled) if state in self.ended else ())
                if edge.trigger not in begun and self.spec.states[edge.dest].meaning != "reasoning"
            ]  # another call may begin as it does in text
            found[state] = list(dict.fromkeys([*own, *also]))
        return found

    def _fitting(self, state: str, edges: Iterable[Edge]) -> list[Edge]:
        """Return the transitions, observed elsewhere, that the machine makes in this state as well."""
        row = self.rows[state]
        return [edge for edge in edges if edge.trigger in row and row[edge.trigger].dest == edge.dest]

    def _edges(self, node: Node) -> list[Edge]:
        """Return the transitions to consider in a state that is not free text."""
        if node.state in self.paths.repeated:
            return self.paths.closing(node.state, node.via)
        edges = self.after_calls.get(node.state) or self.paths.edges.get(node.state, [])
        if node.via and not node.inside:
            seen = self.paths.following.get((node.state, node.via), set())
            if seen:  # a special token may open the text of an answer wherever the machine accepts it
                opens = [self._is_content(each.dest) and each.trigger in self.spec.special_tokens for each in edges]
                return [each for each, answers in zip(edges, opens, strict=True) if answers or each in seen]
        return edges

    # --- the moves ------------------------------------------------------------------------------------------------

    def _moves(self, node: Node) -> Iterator[tuple[ex.Expr, Node | None]]:
        if self._is_text(node.state) and not node.opened:
            yield from self._text_moves(node)
            return
        if node.inside:
            yield from self._closing_moves(node)
            return
        missed = self.paths.missed(node.state, node.opened)
        edges = [edge for edge in self._edges(node) if edge.trigger not in missed]
        if any("open_arguments" in edge.actions for edge in edges):
            yield from self._argument_moves(node, edges)
            edges = [edge for edge in edges if "open_arguments" not in edge.actions]
        follows = node.state in self.ended and self._is_content(node.state)
        for edge in edges:
            for lead in sorted({edge.lead, *(_BLANKS if follows and edge.lead in _BLANKS else ())}):
                yield from self._step(node, edge, lead)
        if self._may_end(node) and END not in missed:
            always = [edge for edge in edges if not node.in_call or "no_arguments" not in edge.actions]
            sure = self._ends_of(always, follows)
            for lead in sorted(self._ends_of(edges, follows)):
                yield ex.seq(ex.Lit(lead), ex.EMPTY if lead in sure else NO_ARGUMENTS), None

    def _ends_of(self, edges: list[Edge], follows: bool) -> set[str]:
        """Return the blanks with which an output may end."""
        ends = {edge.lead for edge in edges if self._ends(edge)}
        return ends | _BLANKS if "" in ends and follows and not self.request.named else ends

    def _may_end(self, node: Node) -> bool:
        return not node.due and (node.called or not self.request.required)

    def _step(self, node: Node, edge: Edge, lead: str) -> Iterator[tuple[ex.Expr, Node | None]]:
        """Yield the moves of one observed transition that this request allows."""
        if self._ends(edge):
            return
        spec = self.spec
        of_call = node.in_call
        early = not of_call and spec.states[edge.dest].meaning == "arguments"  # the name follows the arguments
        if "name" in edge.actions or early:
            if not self.request.calls or node.due or (node.called and not self.request.parallel):
                return
            if of_call and node.state not in self.late:
                raise ToolgramError("a call whose arguments another name follows directly cannot be exported")
            of_call = True
        meaning = spec.states[edge.dest].meaning
        if meaning == "reasoning" and self.request.reasoning is False:
            return
        if meaning == "content" and node.due and self._is_text(edge.dest):
            return
        label, state, via = self._label(edge, of_call)
        if label == ex.NOTHING:
            return
        due = node.due and meaning != "reasoning"
        yield ex.seq(ex.Lit(lead), label), self._enter(node, edge, of_call, state, via, due)

    def _enter(self, node: Node, edge: Edge, in_call: bool, state: str, via: str, due: bool) -> Node:
        called = node.called or "name" in edge.actions
        if "name" in edge.actions and node.state in self.late:
            in_call = False  # its arguments are already written
        if not self.request.required and self.request.parallel and self.request.answer is None:
            called = False  # it makes no difference
        opened = self.paths.open_after(node.opened, edge.trigger)
        if self._is_text(state) and not opened:
            return Node(self.like(state), called=called, due=due)
        return Node(state, via, in_call and state in self.concerned, True, called, due, opened=opened)

    def _concerned(self) -> set[str]:
        """Return the states in which it matters which function is called: its arguments or its name come later."""
        found: set[str] = set()
        sources: dict[str, set[str]] = {}
        for edge in self.every:
            arguments = self.spec.states[edge.dest].meaning in ("arguments", "value", "argument_key")
            again = (edge.trigger, "name") in self.acts and "name" not in edge.actions
            if arguments or again or {"open_arguments", "no_arguments", "argument_key"} & set(edge.actions):
                found.add(edge.source)
            if "name" not in edge.actions:
                sources.setdefault(edge.dest, set()).add(edge.source)
        pending = list(found)
        while pending:
            for source in sources.get(pending.pop(), set()) - found:
                if not self._is_text(source):
                    found.add(source)
                    pending.append(source)
        return found | self.late

    def _named_late(self) -> set[str]:
        """Return the states after arguments whose name comes later."""
        edges = self.paths.edges
        into = {edge.dest for edge in self.every if self.spec.states[edge.dest].meaning == "arguments"}
        pending = [edge.dest for state in into for edge in edges.get(state, ()) if not _ends_arguments(edge)]
        found: set[str] = set()
        named = False
        while pending:
            state = pending.pop()
            if state in found or self._is_text(state):
                continue
            found.add(state)
            for edge in edges.get(state, ()):
                named = named or "name" in edge.actions
                if not {"name", "end_call"} & set(edge.actions):
                    pending.append(edge.dest)
        return found if named else set()

    def _label(self, edge: Edge, of_call: bool) -> tuple[ex.Expr, str, str]:
        """Return the text of a transition, its destination, and the trigger by which that state is entered."""
        spec, trigger = self.spec, edge.trigger
        via = "" if _ends_arguments(edge) else trigger
        shape = spec.terminals.get(trigger)
        if of_call and spec.states[edge.dest].meaning == "arguments":
            return self._arguments(edge.dest, trigger.startswith("string "))
        if trigger == "object_empty" or ("no_arguments" in edge.actions and of_call):
            return ex.seq(self.written(edge.text), NO_ARGUMENTS if of_call else ex.NOTHING), edge.dest, via
        if isinstance(shape, Run) and of_call and (trigger, "name") in self.acts:
            return ex.Lit(ex.ANY_NAME), edge.dest, via
        if "name" in edge.actions and of_call:
            return ex.Lit(f'"{ex.ANY_NAME_IN_JSON}"'), edge.dest, via
        if "call_id" in edge.actions or (trigger.startswith("string ") and (trigger, "call_id") in self.acts):
            return self._id(shape, quoted=trigger.startswith("string ")), edge.dest, via
        if isinstance(shape, Run) and not edge.text.isspace():
            return _run(shape, edge.text), edge.dest, via
        return self.written(edge.text), edge.dest, via

    def _id(self, shape: Literal | Run | None, quoted: bool) -> ex.Expr:
        length, allowed = _ID_LENGTHS.get(self.spec.call_ids, (0, WORD))
        if isinstance(shape, Run):
            allowed = characters_of(shape.first, allowed)
        body = ex.Repeat(ex.class_of(allowed), length, length) if length else ex.Chars(allowed, allowed, 40)
        return ex.seq(ex.Lit('"'), body, ex.Lit('"')) if quoted else body

    # --- arguments as one value -----------------------------------------------------------------------------------

    def _arguments(self, state: str, quoted: bool) -> tuple[ex.Expr, str, str]:
        """Return the whole arguments of a call, and the state after them."""
        closing = next(iter(self.paths.edges.get(state, ())), None)
        if closing is None:
            return ex.NOTHING, state, ""
        if (quoted or self.spec.states[state].encoded) and not self.spec.states[state].python:
            self.note(
                "this format writes arguments as a JSON string; they are exported as an object, which is read as well"
            )
        via = "" if _ends_arguments(closing) else closing.trigger
        return ex.Slot("arguments", (state,)), closing.dest, via

    # --- arguments one by one -------------------------------------------------------------------------------------

    def _argument_moves(self, node: Node, edges: list[Edge]) -> Iterator[tuple[ex.Expr, Node | None]]:
        """Yield the moves from before the first argument to after the last one."""
        opening = [edge for edge in edges if "open_arguments" in edge.actions]
        waiting = self._waiting()
        if waiting is None:
            return
        if self.spec.states[waiting].meaning == "value":
            raise ToolgramError(
                "values that only the next argument, or the end of the call, ends are read and cannot be exported: "
                "give the request without tools, or with `tool_choice` none"
            )
        inside = replace(node, state=waiting, via="", inside=True)
        later = tuple(each for each in self.paths.edges.get(waiting, ()) if "close_arguments" not in each.actions)
        at_once = [edge for edge in opening if edge.dest == waiting and "argument_key" not in edge.actions]
        for edge in at_once:  # the arguments are open before the first argument
            label = ex.seq(ex.Lit(edge.lead), self.written(edge.text))
            yield ex.seq(label, NO_ARGUMENTS), inside
            yield ex.seq(label, ex.Slot("members", (later, later, waiting))), inside
        rest = [edge for edge in opening if edge not in at_once]
        for edge in rest:  # the arguments are opened, and closed again without any argument
            closes = any("close_arguments" in each.actions for each in self.paths.edges.get(edge.dest, ()))
            if closes:
                yield ex.seq(ex.Lit(edge.lead), self.written(edge.text), NO_ARGUMENTS), replace(inside, state=edge.dest)
        if rest:
            yield ex.Slot("members", (tuple(rest), later, waiting)), inside

    def _waiting(self) -> str | None:
        """Return the state between two arguments: the one from which the arguments are closed."""
        closing = [edge.source for edge in self.every if "close_arguments" in edge.actions]
        opened = {edge.dest for edge in self.every if "open_arguments" in edge.actions}
        return next((source for source in closing if source not in opened), closing[0] if closing else None)

    def _closing_moves(self, node: Node) -> Iterator[tuple[ex.Expr, Node | None]]:
        for edge in self.paths.edges.get(node.state, ()):
            if "close_arguments" in edge.actions:
                if not self._ends(edge):
                    yield from self._step(replace(node, inside=False), edge, edge.lead)
                elif self._may_end(node):
                    yield ex.Lit(edge.lead), None

    # --- free text ------------------------------------------------------------------------------------------------

    def _forbidden(self, state: str) -> ex.Forbidden:
        if state not in self.known_forbidden:
            alike = {state}
            if self._is_content(state):  # one for all answers
                alike.update(filter(self._is_content, self.paths.texts))
            declared = [ex.ANY_NAME] * bool(self.request.declared)
            found = chain(*(forbidden_words(self.spec, self.rows, each, declared) for each in alike))
            words = [word.replace(f'"{ex.ANY_NAME}"', f'"{ex.ANY_NAME_IN_JSON}"') for word in found]
            special = [self.spec.terminals[trigger] for trigger in self.spec.special_tokens]
            markers = {shape.text for shape in special if isinstance(shape, Literal)}
            kept = {word for word in words if word not in markers or self.request.tokens.is_text(word)}
            self._note_on_words(state, kept)
            self.known_forbidden[state] = ex.Forbidden(tuple(sorted(kept)))
        return self.known_forbidden[state]

    def _note_on_words(self, state: str, words: set[str]) -> None:
        """Note the words that text may not contain although they need not begin a call."""
        held = {each.trigger for each in self.spec.transitions if self.spec.states[each.dest].held}
        shapes = [self.spec.terminals.get(trigger) for trigger in held - set(self.spec.special_tokens)]
        if markers := sorted({shape.text for shape in shapes if isinstance(shape, Literal)} & words):
            self.note(f"text holds no {', '.join(map(repr, markers))}, whatever comes after it")
        row = self.rows[self.rows[state][TEXT].dest]
        if not {"start_map item", "start_array"}.isdisjoint(row):
            some, none = "text holds no declared name as a call has it", "without functions, text may hold what is one"
            self.note(f"calls have no marker: {some if self.request.declared else none}")

    def _text_edges(self, state: str) -> list[Edge]:
        """Return the transitions out of free text in a state: those observed there, and fitting ones of other text."""
        edges = list(self.paths.edges.get(state, ()))
        if self._is_content(state):
            edges += self._fitting(state, self.pooled)
        found: dict[tuple[str, str, str], Edge] = {}
        for edge in filterfalse(self._ends, edges):
            found.setdefault((edge.trigger, edge.text, edge.dest), edge)
        return list(found.values())

    def _text_ends(self, state: str) -> bool:
        """Return whether an output may end in the text of a state."""
        return self._is_content(state) or state in self.ended

    def _like(self, state: str) -> str:
        """Return the first state of free text with the same transitions as this one."""
        ways = sorted((edge.trigger, edge.text, edge.dest) for edge in self._text_edges(state))
        key = (self.spec.states[state].meaning, self._forbidden(state), tuple(ways), self._text_ends(state))
        return self.representatives.setdefault(key, state)

    def _text_moves(self, node: Node) -> list[tuple[ex.Expr, Node | None]]:
        """Return the moves out of free text. All texts of one place end alike, so a lexer finds no longer match."""
        ends = self.ends.setdefault(node.state, {})
        while True:
            known, forbidden = len(ends), self._forbidden(node.state)
            moves = list(self._moves_after(node, self._without_code(node, forbidden)))
            if len(ends) == known:
                return moves
            self.known_forbidden[node.state] = ex.Forbidden((*forbidden.words, *list(ends)[known:]))

    def _without_code(self, node: Node, forbidden: ex.Forbidden) -> ex.Forbidden:
        """Return what text must not contain if a call must follow it."""
        if not self.request.required or node.called:
            return forbidden
        self.note("text before a call that must come holds no backtick, because a call in code is text")
        return ex.Forbidden((*forbidden.words, "`"))

    def _moves_after(self, node: Node, forbidden: ex.Forbidden) -> Iterator[tuple[ex.Expr, Node | None]]:
        spec, request = self.spec, self.request
        content = self._is_content(node.state)
        edges = self._text_edges(node.state)
        at_once = request.required and not node.called and not request.text_before_calls
        for edge in edges:
            thinking = content and spec.states[edge.dest].meaning == "reasoning"
            first = thinking and not node.begun
            later = node.begun and not node.due and (self.paths.thinks_after_text or not thinking)
            if content and not first and not later:
                continue
            for label, dest in self._step(node, edge, ""):
                if content and not first and (at_once or request.answer is not None):
                    leads = sorted(self._leads(node, edge) | _BLANKS)
                    yield ex.seq(ex.choice(*map(ex.Lit, leads)), label), dest
                elif first or not self._follows_text(node.state, edge):
                    for lead in sorted(self._leads(node, edge)):  # one piece, as a lexer would take blanks for text
                        yield ex.seq(ex.Lit(lead), label), dest
                else:
                    yield from self._until(node.state, forbidden, label, dest, content)
        if not node.due:
            yield from self._ends_in_text(node, forbidden, edges)

    def _follows_text(self, state: str, edge: Edge) -> bool:
        """Return whether a trigger is one after text as well, and not text there."""
        return TEXT not in self.rows[state] or edge.trigger in self.rows[self.rows[state][TEXT].dest]

    def _ends_in_text(
        self, node: Node, forbidden: ex.Forbidden, edges: Iterable[Edge]
    ) -> Iterator[tuple[ex.Expr, Node | None]]:
        """Yield the moves with which an output ends in a state of text, or with which its text begins."""
        answer = self.request.answer if self._is_content(node.state) else None
        if self._is_content(node.state) and not node.begun:
            yield ex.EMPTY, replace(node, state=self.like(node.state), via="", begun=True)
        elif answer is not None:
            if not node.called and not self.request.required:
                ends = [
                    ex.seq(self.written(edge.text), ex.Blanks())
                    for edge in edges
                    if edge.trigger in self.paths.closes_content
                ]
                yield ex.seq(ex.Blanks(), answer, ex.Blanks(), ex.choice(ex.EMPTY, *ends)), None
            elif self._may_end(node):
                yield ex.Blanks(), None
        elif node.called and self.request.named:
            yield ex.EMPTY, None
        elif self._may_end(node) and self._text_ends(node.state):
            yield ex.Text(forbidden), None

    def _leads(self, node: Node, edge: Edge) -> set[str]:
        """Return the blanks that were observed before such a transition."""
        every = [*self.paths.edges.get(node.state, ()), *self.pooled]
        return {each.lead for each in every if each.trigger == edge.trigger and not each.lead.strip()}

    def _until(
        self, state: str, forbidden: ex.Forbidden, label: ex.Expr, dest: Node | None, calling: bool
    ) -> Iterator[tuple[ex.Expr, Node | None]]:
        """Yield free text up to a transition, which begins at the first character that can no longer be text."""
        head, rest = ex.split(label)
        if isinstance(head, ex.Token):
            self._begins(head.text, dest, calling)
            yield ex.seq(ex.Text(forbidden), label), dest
        marker = head.text if isinstance(head, ex.Lit) else ""
        pending = [(marker, rest, dest, 0)] if marker else []
        while pending:
            text, rest, dest, depth = pending.pop()
            at = first_completion(tuple(self.ends[state]), text) or first_completion(forbidden.words, text)
            further = None if at or depth == _MOST_JOINED or rest != ex.EMPTY else self._fixed_moves(dest)
            if further is not None:
                pending += [(text + fixed, tail, following, depth + 1) for fixed, tail, following in further]
                continue
            closer, left = (text[:at], text[at:]) if at else (text, "")
            self._begins(closer, dest, calling)
            if not at:  # several things may follow, so the word itself ends the text
                self.ends[state][text] = None
            if len(marker) == 1 and text.startswith(marker * 2):  # text that ends in it would begin the call
                self.ends[state][marker * (len(text) - len(text.lstrip(marker)) + 1)] = None
            yield ex.seq(ex.Text(forbidden, closer), ex.Lit(left), rest), dest

    def _begins(self, word: str, dest: Node | None, calling: bool) -> None:
        """Remember the word with which a call begins, if this is one."""
        if calling and dest is not None and not self._is_text(dest.state):
            self.triggers.setdefault(word)

    def _fixed_moves(self, dest: Node | None) -> list[tuple[str, ex.Expr, Node | None]] | None:
        """Return the moves, which begin with fixed texts; None if one does not. A function may have no move."""
        if dest is None or self._is_text(dest.state):
            return None
        moves = [(*ex.split(label), following) for label, following in self._moves(dest)]
        fixed = [(head.text, rest, following) for head, rest, following in moves if isinstance(head, ex.Lit)]
        return fixed if len(fixed) == len(moves) else None


def _ends_arguments(edge: Edge) -> bool:
    """Return whether an edge ends the arguments of a call, or in JSON the object around them."""
    ends = {"no_arguments", "close_arguments"} & set(edge.actions)
    return bool(ends) or edge.trigger in ("object_end", "object_empty", "end_map item")


def _run(shape: Run, seen: str) -> ex.Expr:
    """Return a run without meaning (such as a counter), of the kind of characters that was observed."""
    among = "0123456789" if seen.isdigit() else WORD + "."[: "." in seen]
    first, rest = characters_of(shape.first, among), characters_of(rest_of(shape), among)
    return ex.Chars(first, rest, min(shape.most, 3 if seen.isdigit() else 40))
