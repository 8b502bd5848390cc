"""Calls OpenAI by its own SDK through ibid, and prints the answer with its citations.

    pip install openai && python3 openai_sdk.py

One line differs from a program without ibid: the base URL.
"""

from urllib.request import urlopen

from openai import OpenAI

IBID = "http://127.0.0.1:8080"

client = OpenAI(base_url=IBID + "/openai/v1")  # the key stays in OPENAI_API_KEY; ibid demo takes any

raw = client.responses.with_raw_response.create(
    model="gpt-5",
    input="How many herons nest at Lake Tonbo?",
    tools=[{"type": "web_search"}],
    include=["web_search_call.action.sources"],  # also the sources that the answer does not cite
)
response = raw.parse()
print(response.output_text)  # as ever

with urlopen(f"{IBID}/v1/answers/{raw.headers['ibid-answer']}?as=markdown") as cited:
    print(cited.read().decode())
