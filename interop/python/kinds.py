"""Prints the citation types of the official SDKs on PyPI.

Standard input has a JSON list of types, each a module and a class. Standard output gets an object: for each type, its kinds
(the values of the member type; "" if it has none) with the names of their members.
"""

import importlib
import json
import sys
from typing import Any, Literal, get_args, get_origin


def literals(annotation: Any) -> list[str]:
    """The strings that an annotation allows."""
    if get_origin(annotation) is Literal:
        return [value for value in get_args(annotation) if isinstance(value, str)]
    return [value for inner in get_args(annotation) for value in literals(inner)]


def kinds(of: Any) -> dict[str, list[str]]:
    """The kinds of a class, of a union's classes, or the strings that are allowed."""
    if fields := getattr(of, "model_fields", None):
        members = [field.alias or name for name, field in fields.items()]
        named = literals(fields["type"].annotation) if "type" in fields else []
        return {name: members for name in named if "raw" not in fields} if len(named) == 1 else {"": members}
    if get_origin(of) is Literal:
        return {value: [] for value in literals(of)}
    return {kind: members for inner in get_args(of) for kind, members in kinds(inner).items()}


found = {}
for name in json.load(sys.stdin):
    module, attribute = name.split(" ")
    found[name] = kinds(getattr(importlib.import_module(module), attribute))
json.dump(found, sys.stdout)
