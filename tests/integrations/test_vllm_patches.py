"""Where toolgram reaches into vLLM: each place as toolgram knows it. A change in vLLM is one failing line here.

Needs the environment that `make test-vllm` builds; run it with the oldest and the newest version that are claimed.
"""

from importlib import import_module
from inspect import getattr_static

import pytest

pytest.importorskip("vllm.parser", reason="vLLM is not installed here: `make test-vllm` builds an environment with it")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.abstract_parser import DelegatingParser

from toolgram.integrations import vllm_patches as patches
from toolgram.integrations import vllm_surface as surface
from toolgram.integrations import vllm_tags as tags
from toolgram.integrations.observing import warn_once
from toolgram.integrations.vllm_parsers import Driver, ToolParser_hermes

pytestmark = [
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(patches.switched_off(), reason="`make test-vllm-upstream` runs without these patches"),
]


def test_every_patch_finds_its_place() -> None:
    assert list(patches.apply_patches()) == [patch.name for patch in patches.PATCHES]
    for patch in patches.PATCHES:
        assert patch.without
        assert patch.apply(), "and may be applied again"


def test_a_class_that_vllm_composes_inherits_from_the_driver() -> None:
    class Composed(DelegatingParser):  # type: ignore[misc]
        reasoning_parser_cls = None
        tool_parser_cls = ToolParser_hermes

    assert issubclass(Composed, Driver)
    assert not issubclass(type("Other", (DelegatingParser,), {"tool_parser_cls": None}), Driver)


@pytest.mark.parametrize("name", patches.DRIVEN)
def test_the_driver_overrides_what_there_is_and_leaves_a_class_with_other_methods_alone(name: str) -> None:
    """With one warning, and each of the two parsers works alone."""
    assert patches.takes(getattr(DelegatingParser, name), *patches.DRIVEN[name])
    assert name in Driver.__dict__ or name == "parse_delta", "which is replaced for one delta, in each object"
    warn_once.cache_clear()
    base = type("DelegatingParser", (DelegatingParser,), {name: lambda self, *, other: None})
    owners = [type("Composed", (base,), {}) for _ in range(2)]
    assert [patches.drive(owner, Driver) for owner in owners] == [False, False]
    assert owners[0].__bases__ == (base,)
    assert warn_once.cache_info().currsize == 1


@pytest.mark.parametrize("patch", patches.PATCHES, ids=lambda patch: patch.name)
def test_a_function_with_other_parameters_is_left_alone(patch: patches.Patch, monkeypatch: pytest.MonkeyPatch) -> None:
    def unlike(more: object) -> None:
        raise NotImplementedError

    method = isinstance(getattr_static(patch.owner, patch.name), classmethod)
    monkeypatch.setattr(patch.owner, patch.name, classmethod(unlike) if method else unlike)
    assert not patch.apply()
    found = getattr_static(patch.owner, patch.name)
    assert (found.__func__ if method else found) is unlike


def test_nothing_is_changed_if_that_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(patches.PATCHES_VARIABLE, "off")
    patches.apply_patches.cache_clear()
    assert list(patches.apply_patches()) == []
    assert not patches.drive(type("Composed", (DelegatingParser,), {}), Driver)
    patches.apply_patches.cache_clear()


def test_quick_messages_equal_the_constructors_and_share_nothing() -> None:
    assert patches.quick_content is not surface.content_delta, "this version of pydantic needs another way"
    first, second = patches.quick_content("a"), patches.quick_content("b")
    first.tool_calls.append(3)
    first.content = "c"
    assert second.tool_calls == []
    assert second == surface.content_delta("b")
    first, second = patches.quick_arguments(2, "{"), patches.quick_arguments(2, "{")
    first.content, first.later = "c", 1
    first.tool_calls[0].id = first.tool_calls[0].function.name = "d"
    made = surface.arguments_delta(2, "{")
    assert second == made == patches.quick_arguments(2, "{")
    assert second.model_dump_json(exclude_unset=True) == made.model_dump_json(exclude_unset=True)


def test_responses_write_the_arguments_of_an_open_call_first() -> None:
    patches.apply_patches()
    split = import_module("vllm.entrypoints.openai.responses.serving").split_delta
    message = surface.Ended.model_construct(tool_calls=surface.arguments_delta(0, "}").tool_calls)
    message.content = "after"
    assert [(bool(part.tool_calls), part.content) for part in split(message)] == [(True, None), (False, "after")]
    plain = surface.content_delta("text")
    assert split(plain) == [plain]


def test_a_request_can_say_that_its_grammar_has_the_reasoning() -> None:
    request = ChatCompletionRequest(model="m", messages=[{"role": "user", "content": "Hi"}])
    assert tags.can_hold_from_the_first_token(request)
    tags.hold_from_the_first_token(request)
    assert getattr(request, tags._FROM_THE_FIRST)
