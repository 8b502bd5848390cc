"""Asks Gemini with Google's own SDK through ibid, whole and as a stream, and prints the answers with their citations.

    pip install google-genai && python3 google_sdk.py

One line differs from a program without ibid: the base URL. The key stays in GEMINI_API_KEY; `ibid demo` takes any.
"""

from answer import IBID, fetch, show
from google import genai
from google.genai import types

client = genai.Client(http_options=types.HttpOptions(base_url=IBID + "/gemini"))
request = {
    "model": "gemini-3-flash",
    "contents": "How many herons nest at Lake Tonbo?",
    "config": types.GenerateContentConfig(tools=[types.Tool(google_search=types.GoogleSearch())]),
}

response = client.models.generate_content(**request)
print(response.text)
show(fetch(response.sdk_http_response.headers["ibid-answer"]))

for chunk in client.models.generate_content_stream(**request):
    print(chunk.text, end="")
print()
show(fetch(chunk.sdk_http_response.headers["ibid-answer"]))
