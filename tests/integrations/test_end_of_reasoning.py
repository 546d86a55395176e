"""Where reasoning ends, for every shipped format and every derived fixture: without tools, forced, thinking on and off.

The pair of parsers runs in the stand-in for vLLM. The engine's own gate is played as vLLM plays it: a grammar holds the
output from the prompt on if the prompt has ended reasoning, else from the token on that ends it. Without tools,
reasoning is read, and a call is the text that the model wrote, markers and all.
"""

from functools import cache
from typing import Any

import pytest

pytest.importorskip("openai")  # http_matrix asks for both clients
pytest.importorskip("anthropic")
import toolgram
from tests.derive.turns import READ_ONLY, TEMPLATES, UNTOLD_ENDS, source
from tests.integrations import stand_in
from tests.integrations.cases import TOOLS
from tests.integrations.http_matrix import ALL
from tests.integrations.http_shapes import shipped
from tests.integrations.test_vllm_plugin import GROUPS, hear, vllm
from tests.integrations.tokenizers_for_tests import Pieces
from tests.integrations.vllm_heard import bare
from tests.properties.selection import formats_of, quarter, some
from tests.streams import calls_of
from toolgram.events import Content, Reasoning
from toolgram.integrations.served import Served, Session
from toolgram.integrations.start_line import UNMARKED_END, start_line
from toolgram.integrations.vllm_tags import where_the_grammar_begins
from toolgram.observing.paths import canonical_outputs

__all__ = ["vllm"]  # a fixture
FORMATS = toolgram.format_names()
DERIVED = quarter(
    sorted(path.stem for path in TEMPLATES.glob("*.jinja") if path.stem not in READ_ONLY | UNTOLD_ENDS),
    "ends of thoughts",
)
# Channels: the marker that ends a thought ends every other message as well, so no marker is about reasoning alone.
# Between equal delimiters, it begins a thought as well. The line at the start says of each that its end is not told.
SHARED_MARKERS = {"beam", "equal_delimiters", "gpt_oss", "inkling", "lanes", "muse", "muse_glimmer"}
SHARED_MARKERS |= {"own_messages", "second_header_tags", "solar_open"}


@cache
def format_of(name: str) -> toolgram.Format:
    if name in FORMATS:
        return toolgram.get_format(name)
    return toolgram.derive_format(source(name), eos_token="</s>")


def setting(name: str) -> tuple[Pieces, Any]:
    """A tokenizer that has the markers as tokens, and the class that drives the pair."""
    template, parser = (None, f"toolgram_{name}") if name in FORMATS else (source(name), "toolgram")
    tokenizer = Pieces([*format_of(name).program.special.values()], chat_template=template, eos_token="</s>")
    return tokenizer, stand_in.compose(parser, parser)


def prompts(fmt: toolgram.Format) -> set[str]:
    """What the generation prompts with thinking on, off and unset have written for the model."""
    analysis = fmt.report.analysis if fmt.report else None
    return {prompt.opened for prompt in analysis.prompts.values()} if analysis else {""}


@pytest.mark.parametrize("name", [*formats_of("test_end_of_reasoning"), *DERIVED])
def test_without_tools_no_marker_is_shown(name: str, vllm: Any) -> None:
    fmt, (tokenizer, kind) = format_of(name), setting(name)
    served = kind(tokenizer, None).reasoning_parser.served
    if not served.reasons:
        outputs = {("", "It is sunny.")}
    elif name in SHARED_MARKERS:
        thoughts = [o for _, o, _ in canonical_outputs(fmt) if fmt.parse(o).reasoning and fmt.parse(o).content]
        outputs = {(prefix, output.removeprefix(prefix)) for prefix in prompts(fmt) for output in thoughts}
    else:
        start, end = min(served.start_texts), min(served.end_texts)
        thought = f"\nHm.\n{end}\n\n"
        outputs = set()
        for prefix in prompts(fmt):
            state = served.reasoning_after_text(served.prefix([tokenizer.eos_token_id, *tokenizer.encode(prefix)]))
            before = {"open": thought, "closed": "", "": start + thought}[state]
            outputs.add((prefix, f"{before}It is sunny."))
    for prefix, output in outputs:
        meant = fmt.text_only.parse(output, prefix=prefix)
        prompt = [tokenizer.eos_token_id, *tokenizer.encode(prefix)]
        heard_as(meant, output, tokenizer, kind, prompt, WITHOUT_TOOLS)
        if name not in SHARED_MARKERS:
            assert meant.content == "It is sunny."


WITHOUT_TOOLS = (stand_in.request(None), stand_in.request(TOOLS, tool_choice="none"))


def heard_as(meant: toolgram.Message, output: str, tokenizer: Pieces, kind: Any, prompt: list[int], asked: Any) -> None:
    """An output is heard as a message without calls, whole and streamed, by each of these requests."""
    ids = tokenizer.encode(output)
    for request in asked:
        for group in GROUPS:
            assert hear(tokenizer, kind, ids, request, prompt, group) == (meant.content, meant.reasoning, [])
        parser = kind(tokenizer, request.tools)
        parser.set_prompt_token_ids(prompt)
        assert parser.parse(output, request, True, ids)[:2] == (meant.reasoning, meant.content)


def test_a_prompt_that_has_begun_the_answer_ends_reasoning(vllm: Any) -> None:
    """What closes that answer is no text, without tools either."""
    name, prefix, output = "tags_of_tokens", "<|begin|>reply<|mid|>", "It is sunny.<|end|>reply<|mid|>"
    assert prefix in prompts(format_of(name))
    tokenizer, kind = setting(name)
    prompt = [tokenizer.eos_token_id, *tokenizer.encode(prefix)]
    for request in (*WITHOUT_TOOLS, stand_in.request(TOOLS)):
        assert kind(tokenizer, request.tools).reasoning_parser.is_reasoning_end(prompt)
        heard_as(toolgram.Message("It is sunny."), output, tokenizer, kind, prompt, [request])


@pytest.mark.parametrize("name", [*formats_of("test_end_of_reasoning"), *DERIVED])
def test_what_is_around_a_thought_is_known(name: str, vllm: Any) -> None:
    tokenizer, kind = setting(name)
    reasoning = kind(tokenizer, None).reasoning_parser
    if reasoning.served.reasons:
        begin, end = reasoning.reasoning_start_str, reasoning.reasoning_end_str
        thought = reasoning.served.fmt.parse(f"{begin}Hm.{end}", prefix="")
        assert (thought.reasoning, thought.content, thought.anomalies) == ("Hm.", None, [])
        parser = reasoning.served.fmt.parser(prefix=f"{begin}Hm.")
        assert any(isinstance(each, Reasoning) for each in parser.feed("Yes."))
        assert not any(isinstance(each, Reasoning) for each in [*parser.feed(f"{end}No."), *parser.close()])
    assert (UNMARKED_END in start_line(reasoning.served)) == (name in SHARED_MARKERS)


def test_equal_delimiters_that_are_tokens(vllm: Any) -> None:
    """The first one opens the thought, the second closes it, and neither is shown, to another tool parser either."""
    name, mark = "equal_delimiters", ":::think:::"
    specials = [*format_of(name).program.special.values()]
    tokenizer = Pieces(specials, added=[mark], chat_template=source(name), eos_token="</s>")
    kind, request = stand_in.compose("toolgram", "toolgram"), stand_in.request(None)
    for opened in (True, False):
        prompt = [tokenizer.eos_token_id, *tokenizer.encode(mark * opened)]
        ids = tokenizer.encode(mark * (not opened) + f"Hm.{mark}It is sunny.")
        reasoning = kind(tokenizer, None).reasoning_parser
        assert reasoning.served.both_ways == {mark}
        reasoning.set_prompt_token_ids(prompt)
        assert reasoning.prompt_opens_reasoning == opened
        assert tokenizer.decode(reasoning.extract_content_ids(ids)) == "It is sunny."
        assert not reasoning.is_reasoning_end(prompt)
        assert reasoning.is_reasoning_end([*prompt, *ids])
        for group in GROUPS:
            assert hear(tokenizer, kind, ids, request, prompt, group) == ("It is sunny.", "Hm.", [])


@pytest.mark.parametrize("name", [*formats_of("test_end_of_reasoning"), *some(DERIVED, "forced calls")])
def test_a_forced_call_is_held_to_the_grammar_after_the_thought(name: str, vllm: Any) -> None:
    pytest.importorskip("tvm_ffi")  # which xgrammar needs
    from tests.export.engines import Xgrammar, vocabulary
    from tests.export.test_rows import probe_tools

    fmt, (tokenizer, kind) = format_of(name), setting(name)
    engine = Xgrammar(vocabulary())
    for prefix, output, tools in canonical_outputs(fmt):
        tools = probe_tools() if tools else TOOLS
        free = fmt.export("structural_tag", tools, prefix=prefix)
        ended = next((each for each in free.stop if output.endswith(each)), "")
        output = output.removesuffix(ended)  # a token that ends the turn is the engine's
        if not engine.accepts(engine.compile("structural_tag", free.text), output):
            continue  # an output that no export takes: arguments as a JSON string, another function
        message = fmt.parse(output, tools, prefix)
        if not message.tool_calls or message.content:
            continue
        request = stand_in.request(tools, tool_choice="required", parallel_tool_calls=True)
        pair = kind(tokenizer, request.tools)
        prompt = [tokenizer.eos_token_id, *tokenizer.encode(prefix)]
        pair.set_prompt_token_ids(prompt)
        if pair.tool_parser.session.prefix is None:
            pair.tool_parser.set_prompt_token_ids(prompt)
        begins = (pair.tool_parser.served, pair.tool_parser.partner, pair.tool_parser.session)
        where = where_the_grammar_begins(*begins, request)
        made = fmt.export("structural_tag", tools=tools, tool_choice="required", parallel_tool_calls=True, **where)
        held = not pair.reasoning_parser.served.reasons or pair.reasoning_parser.is_reasoning_end(prompt)
        ids, text = tokenizer.encode(output), ""
        for place, number in enumerate(ids):
            if held:
                text += tokenizer.decode([number])
            else:
                held = pair.reasoning_parser.is_reasoning_end_streaming(ids[: place + 1], [number])
        if message.reasoning:
            assert held == (name not in SHARED_MARKERS), output
        if held:
            assert engine.accepts(engine.compile("structural_tag", made.text), text), (prefix, output, text)


def test_a_marker_that_is_several_tokens_is_no_boundary_of_a_prompt() -> None:
    tokenizer = Pieces(["<|im_start|>", "<|im_end|>", "<|open|>", "<|close|>", "<|sep|>"], eos_token="</s>")
    read = Served(tokenizer, "kimi_k3")
    asked = "<|im_start|>user\nHi.<|im_end|>\n<|im_start|>assistant\n"
    opened, closed = "<|open|>think<|sep|>", "<|open|>think<|sep|><|close|>think<|sep|>"
    for begun, state in ((opened, "open"), (closed, "closed"), ("", "")):
        assert read.reasoning_after_text(read.prefix(tokenizer.encode(asked + begun))) == state


def test_a_prompt_of_which_nothing_is_known_is_not_an_empty_one() -> None:
    """P4: a closer that nothing opened is dropped if the prompt is unknown, and is text if it opened no thought."""
    tokenizer = Pieces([*format_of("hermes").program.special.values()], eos_token="</s>")
    read, spelled = Served(tokenizer, "hermes"), tokenizer.encode("Go on: it is")
    assert read.prefix(spelled) is None
    assert read.prefix([]) is None
    assert read.prefix([*spelled, tokenizer.eos_token_id]) == ""
    assert Served(tokenizer, "no_such_format").prefix([tokenizer.eos_token_id]) is None
    for prefix, content in ((None, "It is. Sunny."), ("", "It is.</think>\nSunny.")):
        session = Session(read)
        session.prefix = prefix
        events = [*session.feed("It is.</think>\nSunny.", None), *session.close()]
        assert "".join(event.text for event in events if isinstance(event, Content)) == content


@pytest.mark.parametrize("name", DERIVED)
def test_what_a_prompt_has_begun_needs_no_ids(name: str, vllm: Any) -> None:
    """A marker at its end may go on in the output, and is read with it; its id was none of the output's."""
    fmt, (tokenizer, _) = format_of(name), setting(name)
    tokens = {text: tokenizer.token(text) for text in fmt.program.special.values()}
    assert fmt.report is not None
    assert fmt.report.analysis is not None
    for probe in fmt.report.probes:
        prefix = fmt.report.analysis.prompts[probe.prompt].opened
        parser = fmt.parser(TOOLS, prefix, special_tokens=tokens)
        for number in tokenizer.encode(probe.output):
            parser.feed(tokenizer.decode([number]), [number])
        parser.close()
        meant = fmt.parse(probe.output, TOOLS, prefix)
        assert calls_of(parser.message) == calls_of(meant), probe.output
        assert (parser.message.content, parser.message.reasoning) == (meant.content, meant.reasoning)


def test_a_closing_that_is_several_tokens_is_spelled() -> None:
    """Where the markers of a thought are tokens, one token tells the end. Granite 3.2 thinks in words as well."""
    tokens = ["<tool_call>", "</tool_call>", "<think>", "</think>"]
    assert not Served(Pieces(tokens), "hermes").spelled_closing
    assert Served(Pieces(tokens[:3]), "hermes").spelled_closing
    assert Served(Pieces(["<|tool_call|>", *tokens]), "granite_3").spelled_closing
    assert Served(Pieces(["<tool_calls>"]), "apriel").spelled_closing


SHAPES = {shape.name.removeprefix("toolgram_"): shape for shape in shipped() if shape.whole is not None}


@pytest.mark.parametrize("name", quarter([*SHAPES], "test_a_call_is_text"))
def test_a_call_is_text(name: str) -> None:
    shape, fmt = SHAPES[name], toolgram.get_format(name).text_only
    around = (*shape.special, *shape.around_text)
    tried = 0
    for turn in ALL:
        if shape.whole is None or shape.calls is None or not turn.calls or not shape.can_write(turn):
            continue
        if (turn.reasoning and not shape.thinks) or turn.label == "long arguments":
            continue
        message = fmt.parse(shape.whole(turn), prefix="")
        assert bare(message.content, around) == bare(shape.calls(turn), around), turn.label
        assert bare(message.reasoning) == bare(turn.reasoning), turn.label
        assert not message.tool_calls
        tried += 1
    assert tried
