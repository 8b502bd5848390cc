"""Reads a stored answer as LangChain's content blocks and as LlamaIndex's source nodes.

    python3 frameworks.py ANSWER_ID

It needs neither of the two: it shows the JSON that their own classes are made of. docs/export.md has the line for each.
"""

import json
import os
import sys
from urllib.request import urlopen

IBID = os.environ.get("IBID_URL", "http://127.0.0.1:8080")


def fetch(answer_id, shape):
    with urlopen(f"{IBID}/v1/answers/{answer_id}?as={shape}") as response:
        return json.load(response)


def main(answer_id):
    print("LangChain:")
    for block in fetch(answer_id, "langchain"):  # AIMessage(content=blocks)
        for note in block["annotations"]:
            start, end = note["extras"]["claim"]  # the statement; start_index and end_index delimit the provider's span
            print(f"  {block['text'][start:end]!r} <- {note['title']}")
    print("LlamaIndex:")
    answer = fetch(answer_id, "llamaindex")  # Response(answer["response"], source_nodes=…)
    print(f"  {answer['response']}")
    for n in answer["source_nodes"]:
        print(f"  [{n['node']['metadata']['citation_number']}] {n['node']['metadata']['title']}")


if __name__ == "__main__":
    main(sys.argv[1])
