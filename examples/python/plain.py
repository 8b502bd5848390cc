"""Asks a provider through ibid with nothing but the standard library, and prints the answer with its citations.

    python3 plain.py [QUESTION]

It needs an `ibid serve` or `ibid demo`, at IBID_URL or http://127.0.0.1:8080.
"""

import json
import os
import sys
from urllib.request import Request, urlopen

from answer import IBID, fetch, show


def ask(question):
    """Calls OpenAI's API as any program would, and returns the text and the id under which ibid keeps the answer."""
    body = {"model": "gpt-5", "input": question, "stream": True, "tools": [{"type": "web_search"}]}
    request = Request(
        IBID + "/openai/v1/responses",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Authorization": "Bearer " + os.environ.get("OPENAI_API_KEY", "")},
    )
    with urlopen(request) as response:
        text = ""
        for line in response:
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                if event["type"] == "response.output_text.delta":
                    text += event["delta"]
        return text, response.headers["Ibid-Answer"]


text, answer_id = ask(" ".join(sys.argv[1:]) or "How many herons nest at Lake Tonbo?")
answer = fetch(answer_id)
assert answer["text"] == text, "what is kept is what was streamed"
show(answer)
