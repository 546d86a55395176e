"""Reading a format's two files into a specification.

Strategy: the libraries read, the modules beside this one check: `machine_file` reads the YAML and knows the place of
each entry, `grammar_file` asks Lark for the terminals, `building` puts both together.  Every check raises
`FormatError` with the place and what to write instead; nothing here runs at parse time.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from toolgram.spec.building import Shapes, build_spec
from toolgram.spec.data import TEXT, Literal, Run, Spec
from toolgram.spec.declarations import short_name
from toolgram.spec.grammar_file import Grammar, read_grammar, shape_of, terminal_line
from toolgram.spec.machine_file import load_machine, read_text


def read_spec(grammar_path: Path, machine_path: Path, import_paths: tuple[str, ...]) -> Spec:
    """Read and check both files. Raises FormatError (also for a file that cannot be read)."""
    texts = read_text(grammar_path), read_text(machine_path)
    return spec_from_texts(texts[0], str(grammar_path), texts[1], str(machine_path), import_paths)


def spec_from_texts(
    grammar_text: str, grammar_path: str, machine_text: str, machine_path: str, import_paths: tuple[str, ...]
) -> Spec:
    """Read and check the texts of both files, which errors call by the given paths. Raises FormatError."""
    machine = load_machine(machine_text, machine_path)
    grammar = read_grammar(grammar_text, grammar_path, import_paths)
    shapes = _shapes(grammar, grammar_text, grammar_path)
    return build_spec(machine, shapes, grammar.declared, grammar_text, grammar_path, import_paths)


def _shapes(grammar: Grammar, text: str, path: str) -> Shapes:
    """Return the terminals of a grammar, each with what finds out its shape.

    One that came with an imported rule, and has that grammar in its name, is known by its own name as well.
    """
    # Lark's names are tokens, which are compared in Python whenever they are looked up.
    terminals = {str(terminal.name): terminal for terminal in grammar.terminals}
    names = {short_name(name): name for name in terminals} | {name: name for name in terminals}
    free = [TEXT] if TEXT in map(short_name, grammar.declared) else []

    def shape(name: str) -> Literal | Run | None:
        if name == TEXT:
            return None
        found = shape_of(terminals[names[name]], path, terminal_line(text, name))
        return found._replace(name=name)

    return {name: partial(shape, name) for name in [*names, *free]}
