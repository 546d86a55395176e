"""How large a grammar becomes when Lark compiles it, counted before Lark does.

Strategy: Lark writes out what a grammar abbreviates.  Each `?` doubles the alternatives of its rule, `~1..20` has
twenty of them, a terminal is written in full wherever it is named, and so are all definitions of an imported file.  A
few lines can mean more than any memory holds.  So the text is parsed alone, in linear time, and what it would become is
counted; imported files are read here, once each, and no more of them than a limit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from lark import Token, Tree
from lark.grammar import Terminal
from lark.load_grammar import _parse_grammar

from toolgram.errors import FormatError
from toolgram.limits import MAX_DEFINITIONS, MAX_GRAMMAR_FILES, MAX_GRAMMAR_SIZE, MAX_GRAMMAR_TEXT, MAX_GROUP_DEPTH

Statements = Tree[Token]
Read = Callable[[str], str | None]  # the text of a file, or None
Loader = Callable[[str | None, str], tuple[str, str]]


class GrammarFiles:
    """The files that a grammar is made of, as Lark asks for them."""

    def __init__(self, import_paths: tuple[str, ...], read: Read) -> None:
        self.import_paths, self._read = import_paths, read
        self._texts: dict[str, str | None] = {}
        self._sizes: dict[str, int] = {}
        self._asked = 0

    def load(self, base: str | None, name: str) -> tuple[str, str]:
        """Return the path and text of an imported file; what Lark calls. Raises OSError if there is none."""
        for folder in (*self.import_paths, *([base] if base is not None else [])):
            path = os.path.join(folder, name)
            if path not in self._texts:
                self._texts[path] = self._read(path)
            text = self._texts[path]
            if text is not None:
                return path, text
        raise FileNotFoundError(name)

    def check(self, text: str, path: str) -> None:
        """Raise FormatError for a grammar that is too large, and what Lark raises for a text that is not a grammar."""
        self._size(text, path, (path,))

    def _size(self, text: str, path: str, within: tuple[str, ...]) -> int:
        if path in self._sizes:
            return self._sizes[path]
        self._asked += 1
        if len(text) > MAX_GRAMMAR_TEXT:
            raise FormatError(
                path, f"the grammar is longer than {MAX_GRAMMAR_TEXT} characters", "write fewer alternatives"
            )
        statements = _parse_grammar(text, path).children  # type: ignore[no-untyped-call]
        if len(statements) > MAX_DEFINITIONS:
            raise FormatError(path, f"the grammar has more than {MAX_DEFINITIONS} lines", "write fewer definitions")
        size = sum(self._imported(statement, path, within) for statement in statements if statement.data == "import")
        for name, line, cost in _costs(statements, size, path):
            size += cost
            if size > MAX_GRAMMAR_SIZE:
                raise FormatError(
                    path,
                    f"{name} makes the grammar larger than {MAX_GRAMMAR_SIZE} symbols, written out",
                    f"{name}: /[a-z]{{1,64}}/" if name.isupper() else f"{name}: TEXT+",
                    line,
                )
        self._sizes[path] = size
        return size

    def _imported(self, statement: Statements, path: str, within: tuple[str, ...]) -> int:
        """Return the size of the file that a statement imports from."""
        node, *rest = statement.children
        assert isinstance(node, Tree)
        parts = node.children if rest and isinstance(rest[0], Tree) else node.children[:-1]
        if not parts:
            return 0
        name = os.path.join(*map(str, parts)) + ".lark"
        try:
            other, text = self.load(os.path.split(path)[0] if node.data == "import_rel" else None, name)
        except OSError:
            return 0  # of Lark's own, or Lark will say that it is missing
        if other in within or self._asked >= MAX_GRAMMAR_FILES:
            line = getattr(parts[0], "line", 0)
            problem = (
                f"{name} imports itself" if other in within else f"more than {MAX_GRAMMAR_FILES} files are imported"
            )
            raise FormatError(path, problem, "remove the line, and define what it imports here", line)
        return self._size(text, other, (*within, other))


def _costs(statements: list[Statements], imported: int, path: str) -> Iterator[tuple[str, int, int]]:
    """Yield each definition with its line and its number of symbols, written out."""
    definitions = [_definition(statement) for statement in statements]
    terminals = {name: tree for name, _, tree, is_terminal in definitions if tree is not None and is_terminal}
    sizes: dict[str, int] = {}
    for name, line, tree, is_terminal in definitions:
        if tree is None:
            continue
        if any(tree.find_data("template_usage")):
            raise FormatError(path, f"{name} uses a template", "write the rule out, without `{...}`", line)
        if _depth(tree) > MAX_GROUP_DEPTH:
            raise FormatError(path, f"groups are nested more than {MAX_GROUP_DEPTH} deep", "write them as rules", line)
        yield name, line, _terminal_size(name, terminals, sizes, imported) if is_terminal else _rule_size(tree)


def _definition(statement: Statements) -> tuple[str, int, Statements | None, bool]:
    """Return the name, line and body of a statement (no body if it defines nothing), and whether it is a terminal."""
    while statement.data in ("override", "extend"):
        statement = statement.children[0]  # type: ignore[assignment]
    if statement.data not in ("rule", "term", "ignore"):
        return "", 0, None, False
    names = [child for child in statement.children if isinstance(child, Token) and child.type in ("RULE", "TERMINAL")]
    body = statement.children[-1]
    assert isinstance(body, Tree)
    name, line = (str(names[0]), names[0].line or 0) if names else ("%ignore", 0)
    return name, line, body, statement.data != "rule"


def _depth(tree: Statements) -> int:
    """Return how deeply groups are nested."""
    depth, waiting = 0, [(tree, 0)]
    while waiting:
        part, level = waiting.pop()
        level += part.data == "expansions"
        depth = max(depth, level)
        waiting += [(child, level) for child in part.children if isinstance(child, Tree)]
    return depth


def _terminal_size(name: str, terminals: dict[str, Statements], sizes: dict[str, int], imported: int) -> int:
    """Return the number of symbols of a terminal, with those that it names written out."""
    if name not in sizes:
        sizes[name] = 0  # if it names itself, Lark will refuse it
        subtrees = terminals[name].iter_subtrees()
        leaves = [leaf for part in subtrees for leaf in part.children if not isinstance(leaf, Tree)]
        size = len(leaves)
        for each in [str(leaf.name) for leaf in leaves if isinstance(leaf, Terminal)]:
            size += _terminal_size(each, terminals, sizes, imported) if each in terminals else imported
        sizes[name] = min(size, 2 * MAX_GRAMMAR_SIZE)
    return sizes[name]


def _rule_size(tree: Statements) -> int:
    """Return the number of symbols of a rule: alternatives times their length."""
    found: dict[int, tuple[int, int]] = {}  # of each part: alternatives, and the length of one
    for part in tree.iter_subtrees():
        inner = [found[id(child)] if isinstance(child, Tree) else (1, 1) for child in part.children]
        found[id(part)] = _combined(part, inner)
    alternatives, length = found[id(tree)]
    return alternatives * length


def _combined(part: Statements, inner: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the alternatives of a part of a rule, and the length of the longest."""
    most = 2 * MAX_GRAMMAR_SIZE
    longest = max((length for _, length in inner), default=1)
    if part.data == "expansions":
        return min(sum(alternatives for alternatives, _ in inner), most), longest
    if part.data == "expr":
        return _repeated([str(each) for each in part.children[1:]], *inner[0])
    product = 1
    for alternatives, _ in inner:
        product = min(product * alternatives, most)
    if part.data == "maybe":
        return product + 1, longest
    return product, min(sum(length for _, length in inner), most) if part.data == "expansion" else longest


def _repeated(operator: list[str], alternatives: int, length: int) -> tuple[int, int]:
    """Do the same for something that is repeated. Lark makes a rule of `*`, `+`, and of many repetitions."""
    most = 2 * MAX_GRAMMAR_SIZE
    if operator[0] == "?":
        return alternatives + 1, length
    if operator[0] in ("*", "+"):
        return 1, min(length + alternatives * length, most)
    numbers = [int(number[:9]) for number in operator[1:]]
    times = numbers[-1]
    if times >= most or times < numbers[0]:
        return most, 1
    copies = min(times, _FACTOR)
    count = times - numbers[0] + 1 if times < _FACTOR else _FACTOR
    return min(count * alternatives**copies, most), min(length * copies, most)


_FACTOR = 50  # repetitions from which on Lark makes rules of them
