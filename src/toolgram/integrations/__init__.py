"""toolgram inside inference servers and libraries. The rest of the package imports nothing from here, and nothing here
imports a server before that server asks for it.

    served              a format as one tokenizer writes it, and one output of it being read; knows no server
    answers             a whole answer as a server's message; knows no server
    vllm                the plug-in: names for vLLM's registries, and the entry point that registers them
    vllm_surface        everything that is imported from vLLM, and where each version keeps it
    vllm_parsers        the pair of parsers that vLLM drives
    sglang              the plug-in: names for SGLang's tables, and the entry point that registers them
    sglang_detectors    the pair of detectors that SGLang drives
    llama_cpp           a chat handler for llama-cpp-python
    transformers        a streamer for `generate`
    langchain           a runnable
"""

from __future__ import annotations

from toolgram.formats import format_names

AUTO_NAME = "toolgram"


def parser_names() -> dict[str, str]:
    """Return the names that plug-ins register, each with its format; "auto" means that the tokenizer decides."""
    return {AUTO_NAME: "auto", **{f"{AUTO_NAME}_{name}": name for name in format_names()}}
