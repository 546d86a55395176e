"""How many tokens a request took, in the words of each API."""

from __future__ import annotations

from typing import Any, NamedTuple


class Usage(NamedTuple):
    """Tokens of the prompt and of the output; `cached` of the prompt were known to the server."""

    prompt: int = 0
    output: int = 0
    cached: int = 0

    def chat(self) -> dict[str, Any]:
        """Return it as chat completions have it."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.output,
            "total_tokens": self.prompt + self.output,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }

    def responses(self) -> dict[str, Any]:
        """Return it as Responses have it. How many of the tokens were reasoning is not known from text."""
        return {
            "input_tokens": self.prompt,
            "input_tokens_details": {"cached_tokens": self.cached, "cache_write_tokens": 0},
            "output_tokens": self.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": self.prompt + self.output,
        }

    def anthropic(self) -> dict[str, Any]:
        """Return it as Anthropic's messages have it: `input_tokens` does not include cached ones there."""
        fresh = max(self.prompt - self.cached, 0)
        return {"input_tokens": fresh, "output_tokens": self.output, "cache_read_input_tokens": self.cached}


def added(usages: list[Usage]) -> Usage:
    """Return the usage of several answers to one prompt."""
    prompt = max((usage.prompt for usage in usages), default=0)
    cached = max((usage.cached for usage in usages), default=0)
    return Usage(prompt, sum(usage.output for usage in usages), cached)
