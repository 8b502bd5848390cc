"""Asks a provider through ibid with nothing but the standard library, and prints the answer with its citations.

    python3 plain.py [QUESTION]

It needs an `ibid serve` or `ibid demo`, at IBID_URL or http://127.0.0.1:8080.
"""

import json
import os
import sys
from urllib.request import Request, urlopen

IBID = os.environ.get("IBID_URL", "http://127.0.0.1:8080")


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


def answer_of(answer_id):
    """Returns the answer with its citations. Offsets count code points, as Python's strings do."""
    with urlopen(f"{IBID}/v1/answers/{answer_id}?unit=code-point") as response:
        return json.load(response)


def main():
    text, answer_id = ask(" ".join(sys.argv[1:]) or "How many herons nest at Lake Tonbo?")
    answer = answer_of(answer_id)
    assert answer["text"] == text, "what is kept is what was streamed"
    for c in answer["citations"]:
        if c["claim_start"] is not None:
            print(f"{text[c['claim_start']:c['claim_end']]!r} [{c['index']}]")
    for s in answer["sources"]:
        print(f"[{s['index']}] {s['title'] or s['url']}")


if __name__ == "__main__":
    main()
