"""The errors that a request is refused with, in the form of each API.

Strategy: every failure is a `Refusal`, whether a request is wrong, the gateway is full, or the upstream server fails.
Only this module turns it into the error object that a client of the API can read.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from toolgram.errors import ToolgramError

Api: TypeAlias = Literal["chat", "responses", "messages"]

_OPENAI_TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}
_LONGEST = 1_000


class Refusal(ToolgramError):
    """A request that gets no answer. `status` is HTTP's; `param` names the field that is wrong, if there is one."""

    def __init__(self, message: str, status: int = 400, param: str | None = None, code: str | None = None) -> None:
        self.message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]}..."
        self.status, self.param, self.code = status, param, code
        super().__init__(self.message)


def unsupported(param: str, why: str) -> Refusal:
    """Return the refusal of a field that would change what an answer means."""
    return Refusal(f"{param} is not supported: {why}", param=param, code="unsupported_parameter")


def error_body(api: Api, refusal: Refusal) -> dict[str, Any]:
    """Return the error object of an API."""
    if api == "messages":
        kind = _ANTHROPIC_TYPES.get(refusal.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": refusal.said}}
    kind = _OPENAI_TYPES.get(refusal.status, "invalid_request_error" if refusal.status < 500 else "server_error")
    said = {"message": refusal.said, "type": kind, "param": refusal.param, "code": refusal.code}
    return {"error": said}
