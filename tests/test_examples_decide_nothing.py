"""Examples show a format and never decide how it is read.

Each format is loaded again with one sentence in place of its examples. Its compiled table and its readings stay as they
are: of outputs that are walked from its grammar, and of the same outputs broken.
"""

import random

import pytest
import yaml

import toolgram
from tests.fuzz import text_of, tools
from tests.generators.grammar_walks import walks
from tests.properties.selection import quarter
from tests.streams import calls_of, merged, without_ids
from toolgram.formats import Format, format_names
from toolgram.program.state import Program
from toolgram.spec.files import spec_from_texts

SENTENCE = "One sentence, and no call."
OUTPUTS = 12


def without_examples(name: str) -> Format:
    """The format as it is read if its file shows one sentence and nothing else."""
    spec = toolgram.get_format(name).spec
    data = spec.machine_dict
    data["format"]["example"] = SENTENCE
    data["format"]["canonical"] = [SENTENCE]
    text = yaml.safe_dump(data, allow_unicode=True)
    return Format(spec_from_texts(spec.grammar_text, spec.grammar_path, text, spec.machine_path, spec.import_paths))


@pytest.mark.parametrize("name", quarter(format_names(), "examples"))
def test_examples_decide_nothing(name: str) -> None:
    shown, bare = toolgram.get_format(name), without_examples(name)
    assert_same_table(shown.program, bare.program)
    rng, found = random.Random(f"examples {name}"), walks(name)
    texts = [text_of(name, rng) for _ in range(OUTPUTS)]
    texts += ["".join(found.pieces(found.word(rng), rng)) for _ in range(OUTPUTS)]
    for text in texts:
        for reason in (None, "stop", "length"):
            assert _reading(shown, text, reason) == _reading(bare, text, reason)


def assert_same_table(shown: Program, bare: Program) -> None:
    """The compiled table is the same."""
    assert bare.spec.example == SENTENCE
    for state in shown.states.values():
        other = bare.states[state.name]
        assert state.leaves_owed == other.leaves_owed
        assert state.closed == other.closed
        assert state.row.keys() == other.row.keys()
        for trigger, move in state.row.items():
            same = other.row[trigger]
            assert (move.opens, move.within, move.closes) == (same.opens, same.within, same.closes)


def _reading(fmt: Format, text: str, reason: str | None) -> tuple[object, ...]:
    """The events of a stream, and the message of the whole text with its anomalies."""
    parser = fmt.parser(tools())
    events = [event for at in range(0, len(text), 5) for event in parser.feed(text[at : at + 5])]
    events += parser.close(reason)
    message = fmt.parse(text, tools(), finish_reason=reason)
    return merged(without_ids(events)), message.content, message.reasoning, calls_of(message), message.anomalies
