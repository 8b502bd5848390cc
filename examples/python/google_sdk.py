"""Calls Gemini by Google's own SDK through ibid, and prints the answer with its citations.

    pip install google-genai && python3 google_sdk.py

One line differs from a program without ibid: the base URL.
"""

from urllib.request import urlopen

from google import genai
from google.genai import types

IBID = "http://127.0.0.1:8080"

client = genai.Client(http_options=types.HttpOptions(base_url=IBID + "/gemini"))  # the key stays in GEMINI_API_KEY

response = client.models.generate_content(
    model="gemini-3-flash",
    contents="How many herons nest at Lake Tonbo?",
    config=types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())]),
)
print(response.text)  # as ever: byte offsets, and no citations in the text

answer_id = response.sdk_http_response.headers["ibid-answer"]
with urlopen(f"{IBID}/v1/answers/{answer_id}?as=markdown") as cited:
    print(cited.read().decode())
