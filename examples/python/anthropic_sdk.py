"""Asks Claude with Anthropic's own SDK through ibid, whole and as a stream, and prints the answers with their citations.

    pip install anthropic && python3 anthropic_sdk.py

One line differs from a program without ibid: the base URL. The key stays in ANTHROPIC_API_KEY; `ibid demo` takes any.
"""

from answer import IBID, fetch, show
from anthropic import Anthropic

client = Anthropic(base_url=IBID + "/anthropic")
request = {
    "model": "claude-sonnet-5",
    "max_tokens": 1000,
    "messages": [{"role": "user", "content": "How many herons nest at Lake Tonbo?"}],
    "tools": [{"type": "web_search_20250305", "name": "web_search"}],
}

raw = client.messages.with_raw_response.create(**request)
message = raw.parse()
print("".join(block.text for block in message.content if block.type == "text"))
show(fetch(raw.headers["ibid-answer"]))

with client.messages.stream(**request) as stream:
    for text in stream.text_stream:
        print(text, end="")
print()
show(fetch(stream.response.headers["ibid-answer"]))
