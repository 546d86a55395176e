"""`toolgram serve`: three APIs in front of any server that takes raw text.

    client --> chat, Responses or messages --> [this gateway] --> raw text --> llama.cpp, vLLM, SGLang, Ollama, ...

Strategy: a server that runs a model gives raw text for a prompt. The gateway renders the chat template, sends a grammar
that holds a model to valid calls if the server takes one, parses the output, and answers in the requested shape. It has
no keys, budgets, retries or load balancing of its own: for these, put a router before it.

Read in this order: `app` (routes and limits), `answering` (one output), `engine` (the connection to the server),
`upstreams` (what each kind of server is sent), `model` (template and prompt), `requests` (what each API asks for),
`asking`, `errors`.
"""

from toolgram.gateway.errors import Refusal

__all__ = ["Refusal"]
