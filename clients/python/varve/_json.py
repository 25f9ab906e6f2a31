"""Decodes answers into the dataclasses of types.py."""

from __future__ import annotations

import functools
from dataclasses import fields, is_dataclass
from typing import Any, Callable, Dict, List, Optional, Tuple, Union, get_args, get_origin, get_type_hints


def decode(kind: Any, value: Any) -> Any:
    """Returns JSON as a value of a type, which keeps it. Members that are missing are None."""
    of = _decoder(kind)
    return value if of is None or value is None else of(value)


@functools.lru_cache(maxsize=None)
def _decoder(kind: Any) -> Optional[Callable[[Any], Any]]:
    """Returns what makes a value of a type of JSON, None if JSON is one."""
    if get_origin(kind) is Union:
        return _decoder(get_args(kind)[0])
    if get_origin(kind) is list:
        one = _decoder(get_args(kind)[0])
        return one and (lambda value: [one(each) for each in value])
    return _maker(kind) if is_dataclass(kind) else None


def _maker(kind: Any) -> Callable[[Dict[str, Any]], Any]:
    """Returns what makes a dataclass of its members: not by its initializer, which is slow for pages of 1,000 messages."""
    changed: Any = None

    def made(value: Dict[str, Any]) -> Any:
        nonlocal changed
        if changed is None:
            changed = _changed(kind)
        for name, key, of in changed:
            member = value.get(key)
            value[name] = member if of is None or member is None else of(member)
        one = object.__new__(kind)
        one.__dict__ = value
        return one

    return made


def _changed(kind: Any) -> List[Tuple[str, str, Optional[Callable[[Any], Any]]]]:
    """Returns the members of a dataclass that are not as JSON has them, and has the others be None where they are missing."""
    hints, changed = get_type_hints(kind), []
    for f in fields(kind):
        key, of = f.metadata.get("name", f.name), _decoder(hints[f.name])
        if of is not None or key != f.name:
            changed.append((f.name, key, of))
        elif not hasattr(kind, f.name):
            setattr(kind, f.name, None)
    return changed


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
