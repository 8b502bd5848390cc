"""Reads what ibid writes for other programs as these programs read it, and as examples/python/answer.py does.

Standard input has a case a line: name, langchain, llamaindex and document, the answer in these shapes. Printed is what is
wrong, a line each, and at the end how many cases there were.
"""

import json
import sys
import typing
from pathlib import Path

import typing_extensions
from langchain_core.load import dumpd, load
from langchain_core.messages import AIMessage, TextContentBlock, messages_from_dict, messages_to_dict
from langchain_core.messages.content import create_citation
from llama_index.core.base.response.schema import Response
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from pydantic import TypeAdapter

typing.TypedDict = typing_extensions.TypedDict  # pydantic requires this one below Python 3.12
sys.path.append(str(Path(__file__).parents[2] / "examples" / "python"))
from answer import Answer, claims

# Strict: no numbers in strings, and nothing that LangChain has no name for.
BLOCKS = TypeAdapter(list[TextContentBlock], config={"strict": True, "extra": "forbid"})
ANSWER = TypeAdapter(Answer)


def messages(document):
    """Yields where each message begins in the text, and its words."""
    text, parts = document["text"], document["parts"]
    starts = [0]
    for last, part in zip(parts, parts[1:]):
        if part["message"] != last["message"] and starts[-1] < part["text_start"] < len(text):
            starts.append(part["text_start"])
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        yield start, text[start:end]


def langchain(blocks, document):
    BLOCKS.validate_python(blocks)
    message = AIMessage(content=blocks)
    assert message.content_blocks == blocks, "content_blocks are other blocks"
    assert message.text == "".join(block["text"] for block in blocks), "text is another text"
    assert load(dumpd(message), allowed_objects="messages") == message, "load(dumpd) is another message"
    assert messages_from_dict(messages_to_dict([message])) == [message], "messages_from_dict is another message"
    notes = []
    for i, (block, (start, words)) in enumerate(zip(blocks, messages(document), strict=True)):
        assert block["text"].startswith(words), f"a block is not {words!r}"
        assert block["text"][len(words) :] in (["", "\n", "\n\n"] if i + 1 < len(blocks) else [""]), "a block has more"
        notes += ((note, block["text"], start) for note in block["annotations"])
    assert len(notes) == len(document["citations"]), "there are more or fewer citations"
    for (note, text, start), c in zip(notes, document["citations"], strict=True):
        made = create_citation(**{k: v for k, v in note.items() if k not in ("type", "extras")})
        assert {**made, "id": None} == {**{k: v for k, v in note.items() if k != "extras"}, "id": None}, "another citation"
        if c["text_start"] is None:
            assert "start_index" not in note, "a citation without a place has one"
        else:
            words = text[note["start_index"] : note["end_index"]]
            assert words == c["cited_text"][max(0, start - c["text_start"]) :], f"{words!r} is cited, not {c['cited_text']!r}"
        if c["claim_start"] is not None and c["claim_start"] >= start:
            assert note["extras"]["claim"] == [c["claim_start"] - start, c["claim_end"] - start], "another claim"


def llamaindex(answer, document):
    # As in docs/export.md.
    nodes = [NodeWithScore(node=TextNode.from_dict(n["node"]), score=n["score"]) for n in answer["source_nodes"]]
    response = Response(answer["response"], source_nodes=nodes, metadata=answer["metadata"])
    assert str(response) == (answer["response"] or "None")
    assert response.get_formatted_sources().count("> Source (Doc id: ") >= len(nodes)
    assert {n.node_id: n.metadata for n in nodes} == response.metadata, "metadata are not the nodes'"
    assert len(nodes) == len({s["id"] for s in document["sources"]}), "there are more or fewer nodes"
    for node, given in zip(nodes, answer["source_nodes"], strict=True):
        assert node.get_content() == given["node"]["text"] and node.get_score() == (given["score"] or 0.0)
        node.node.get_content(MetadataMode.LLM)
        kept = node.to_dict()
        assert kept["class_name"] == given["class_name"] and kept["score"] == given["score"]
        differs = {k for k, v in given["node"].items() if kept["node"].get(k) != v}
        assert not differs, f"to_dict has another {differs}"
        assert TextNode.from_json(node.node.to_json()) == node.node, "from_json is another node"


def typed(document):
    # JSON has only one number type: a confidence of 1 is a float, too.
    answer = ANSWER.validate_json(json.dumps(document), strict=True)
    for c, given in zip(answer["citations"], document["citations"], strict=True):
        if c["text_start"] is not None:
            words = answer["text"][c["text_start"] : c["text_end"]]
            assert words == given["cited_text"], f"{words!r} is cited, not {given['cited_text']!r}"
    placed = sum(c["claim_start"] is not None for c in answer["citations"])
    assert sum(len(citations) for _, citations in claims(answer)) == placed, "claims leaves citations out"


def main():
    cases = 0
    for line in sys.stdin:
        case = json.loads(line)
        cases += 1
        document = case["document"]
        for name, read in (
            ("langchain", lambda: langchain(case["langchain"], document)),
            ("llamaindex", lambda: llamaindex(case["llamaindex"], document)),
            ("document", lambda: typed(document)),
        ):
            try:
                read()
            except Exception as err:  # from any of the libraries
                print(f"{case['name']}: {name}: {type(err).__name__}: {err}".replace("\n", " ")[:400])
    print(cases, "answers")


main()
