"""Reads ibid's answer documents, with types: the text, the sources, and which words rest on which source.

    python3 answer.py ANSWER_ID

ANSWER_ID is the header Ibid-Answer of a response that came through ibid. The file needs Python 3.11 and nothing else: copy
it. Every member of a document is described in docs/answer.md.
"""

import json
import os
import sys
from collections.abc import Iterator
from typing import Literal, TypedDict
from urllib.parse import quote
from urllib.request import urlopen

IBID = os.environ.get("IBID_URL", "http://127.0.0.1:8080")


class Source(TypedDict):
    index: int  # the number shown to readers
    id: str  # referenced by Citation.source_id; unique in this answer only
    key: str  # the same for this source in any answer
    kind: Literal["web", "file", "document", "tool", "map", "image"]
    title: str | None
    url: str | None
    filename: str | None
    cited: bool


class Citation(TypedDict):
    """One source of one citation. Offsets are indices of the text, and None without a place."""

    index: int  # Source.index
    source_id: str
    text_start: int | None  # the span that the provider marked
    text_end: int | None
    claim_start: int | None  # the statement that rests on the source
    claim_end: int | None
    covers: Literal["claim", "link", "point", "block"]
    anchor: Literal["exact", "unit-fixed", "moved", "unverified", "none"]
    origin: Literal["provider", "marker", "inferred"]
    quote: str | None  # the source's own words
    confidence: float | None


class Issue(TypedDict):
    code: str
    detail: str


class Answer(TypedDict):
    answer_id: str | None
    model: str | None
    complete: bool
    finish: str | None
    text: str
    cited_text: str  # the text with markers, as Markdown
    unit: Literal["code-point"]
    sources: list[Source]
    citations: list[Citation]
    issues: list[Issue]


def fetch(answer_id: str) -> Answer:
    """Returns a stored answer; its offsets count code points, as the indices of Python's strings do."""
    with urlopen(f"{IBID}/v1/answers/{quote(answer_id)}?unit=code-point") as response:
        answer: Answer = json.load(response)
    return answer


def claims(answer: Answer) -> Iterator[tuple[str, list[Citation]]]:
    """Yields each statement that rests on sources, in the order of the text, with its citations."""
    rows: dict[tuple[int, int], list[Citation]] = {}
    for c in answer["citations"]:
        if c["claim_start"] is not None and c["claim_end"] is not None:
            rows.setdefault((c["claim_start"], c["claim_end"]), []).append(c)
    for (start, end), citations in sorted(rows.items(), key=lambda row: row[0]):
        yield answer["text"][start:end], citations


def show(answer: Answer) -> None:
    for words, citations in claims(answer):
        print(words, "".join(f"[{c['index']}]" for c in citations))
    for s in answer["sources"]:
        print(f"[{s['index']}]", s["title"] or s["filename"] or s["url"] or s["id"])


if __name__ == "__main__":
    show(fetch(sys.argv[1]))
