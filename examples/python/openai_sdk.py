"""Asks OpenAI with its own SDK through ibid, whole and as a stream, and prints the answers with their citations.

    pip install openai && python3 openai_sdk.py

One line differs from a program without ibid: the base URL. The key stays in OPENAI_API_KEY; `ibid demo` takes any.
"""

from answer import IBID, fetch, show
from openai import OpenAI

client = OpenAI(base_url=IBID + "/openai/v1")
request = {
    "model": "gpt-5",
    "input": "How many herons nest at Lake Tonbo?",
    "tools": [{"type": "web_search"}],
    "include": ["web_search_call.action.sources"],  # including sources that the answer does not cite
}

raw = client.responses.with_raw_response.create(**request)
response = raw.parse()
print(response.output_text)
show(fetch(raw.headers["ibid-answer"]))

raw = client.responses.with_raw_response.create(**request, stream=True)
for event in raw.parse():
    if event.type == "response.output_text.delta":
        print(event.delta, end="")
print()
show(fetch(raw.headers["ibid-answer"]))
