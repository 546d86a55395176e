"""`toolgram serve`: three APIs in front of any server that takes raw text.

    client --> chat, Responses or messages --> [this gateway] --> raw text --> llama.cpp, vLLM, SGLang, Ollama, ...

Strategy: a server that runs a model gives raw text for a prompt, and knows neither how the model's conversations are
written nor how its calls are read. The gateway knows both. It renders the chat template, sends the grammar that holds a
model to valid calls where the server takes one, parses what comes back, and answers in the shape that was asked for.
It has no keys, budgets, retries or load balancing of its own: for these, put a router before it.

Read downwards: `app` (routes and limits), `answering` (one output), `engine` (the connection behind), `upstreams` (what
each kind of server is sent), `model` (template and prompt), `*_requests` (what each API asks for), `asking`, `errors`.
"""

from toolgram.gateway.errors import Refusal

__all__ = ["Refusal"]
