"""Prints the kinds and members of citations that the official SDKs of PyPI know, as one JSON object."""

import json
from typing import Any, get_args

import anthropic.types
import cohere.types
import openai.types.beta.threads as threads
import openai.types.responses.response_output_text as output
from google.genai import types as genai


def kinds(union: Any) -> list[str]:
    """The values of the member type of all classes of a union."""
    found: list[str] = []
    for one in get_args(union):
        if get_args(one):
            found += kinds(one)
        elif field := getattr(one, "model_fields", {}).get("type"):
            found += [kind for kind in get_args(field.annotation) if isinstance(kind, str)]
    return found


def members(model: Any) -> list[str]:
    """The JSON names of a class's fields."""
    return [field.alias or name for name, field in model.model_fields.items()]


print(json.dumps({
    "anthropic TextCitation": kinds(anthropic.types.TextCitation),
    "openai Annotation of a response": kinds(output.Annotation),
    "openai Annotation of a thread": kinds(threads.Annotation),
    "cohere Source": kinds(cohere.types.Source),
    "cohere Citation": members(cohere.types.Citation),
    "cohere ChatCitation": members(cohere.types.ChatCitation),
    "genai GroundingChunk": members(genai.GroundingChunk),
    "genai GroundingSupport": members(genai.GroundingSupport),
    "genai Segment": members(genai.Segment),
}))
