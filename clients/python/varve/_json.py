"""Decodes answers into the dataclasses of types.py."""

from __future__ import annotations

import functools
from dataclasses import fields, is_dataclass
from typing import Any, Dict, Union, get_args, get_origin, get_type_hints

_hints = functools.lru_cache(maxsize=None)(get_type_hints)


def decode(kind: Any, value: Any) -> Any:
    """Returns JSON as a value of a type. Members that the type does not know are left out, missing ones are None."""
    if value is None or kind is Any:
        return value
    origin = get_origin(kind)
    if origin is Union:
        return decode(get_args(kind)[0], value)
    if origin is list:
        inner = get_args(kind)[0]
        return value if inner in (Any, str, int) else [decode(inner, one) for one in value]
    if is_dataclass(kind):
        hints = _hints(kind)
        names = ((f.name, f.metadata.get("name", f.name)) for f in fields(kind))
        return kind(**{name: decode(hints[name], value.get(key)) for name, key in names})
    return value


def encode(value: Any) -> Any:
    """Returns a dataclass as JSON, without the members that are None; anything else as it is."""
    if not is_dataclass(value):
        return value
    members: Dict[str, Any] = {}
    for f in fields(value):
        member = getattr(value, f.name)
        if member is not None:
            members[f.metadata.get("name", f.name)] = encode(member)
    return members
