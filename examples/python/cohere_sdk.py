"""Asks Cohere with its own SDK through ibid, whole and as a stream, and prints the answers with their citations.

    pip install cohere && python3 cohere_sdk.py

One line differs from a program without ibid: the base URL. The key stays in CO_API_KEY; `ibid demo` takes any.
"""

import cohere
from answer import IBID, fetch, show

client = cohere.ClientV2(base_url=IBID + "/cohere")
request = {
    "model": "command-a-03-2025",
    "messages": [{"role": "user", "content": "How many herons nest at Lake Tonbo?"}],
    "documents": [  # Cohere cites the documents it is given
        {"data": {"title": "Heron census", "text": "Volunteers counted 41 nests in the alders on 12 April."}},
        {"data": {"title": "The lake and its birds", "text": "The first pair was seen in 1968."}},
    ],
}

raw = client.with_raw_response.chat(**request)
print(raw.data.message.content[0].text)
show(fetch(raw.headers["ibid-answer"]))

with client.with_raw_response.chat_stream(**request) as raw:
    for event in raw.data:
        if event.type == "content-delta":
            print(event.delta.message.content.text, end="")
print()
show(fetch(raw.headers["ibid-answer"]))
