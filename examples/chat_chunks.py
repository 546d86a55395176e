"""A model's raw output as the chunks of OpenAI's chat completions: run it, nothing is needed but toolgram.

The deltas stand for what a server sends. Each line that is printed is what a client would read.
"""

import toolgram
from toolgram import adapters

DELTAS = ["Adding. <tool", '_call>\n{"name": "add", "argum', 'ents": {"a": 1, "b', '": 2}}\n</tool_call>']


def main() -> None:
    parser = toolgram.get_format("hermes").parser()
    turn = adapters.ChatChunks(model="my-model")
    print(adapters.sse(turn.start()), end="")
    for delta in DELTAS:
        print(adapters.sse(turn.feed(parser.feed(delta))), end="")
    print(adapters.sse(turn.end(parser.close("stop"), "stop")) + adapters.CHAT_DONE, end="")


if __name__ == "__main__":
    main()
