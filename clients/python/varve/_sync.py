# Made by generate.py; do not edit.
"""The client. It is made of _async.py by generate.py."""

from __future__ import annotations

import json
from typing import Any, Iterator, Callable, Dict, List, Optional, Sequence, Union

from . import types
from ._errors import APIError, Unreachable
from ._json import decode, encode
from ._transport import Transport, Request, path


class Varve:
    """A client of one Varve with one key. Every call waits up to 30 seconds for a server that is not ready."""

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *, timeout: float = 90.0):
        """url and key default to VARVE_URL, http://localhost:8080 without it, and VARVE_KEY."""
        self._transport = Transport(url, key, timeout)

    def __enter__(self) -> Varve:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Closes the kept connections."""
        self._transport.close()

    def request(
        self, method: str, path: str, *, body: Any = None, query: Optional[Dict[str, Any]] = None,
        key: Optional[str] = None,
    ) -> Any:
        """Calls any route of the API and returns its JSON. key is the Idempotency-Key: one is made unless it is ""."""
        return self._transport.send(Request(method, path, query or {}, body, key))

    def session(self, id: str, **settings: Any) -> Session:
        """Returns a session without asking the server. With settings (format, model, window_tokens, overhead_tokens,
        metadata, policy) the first append makes it; later ones compare format, model and window."""
        return Session(self, id, settings)

    def sessions(self, **where: Any) -> Iterator[types.Session]:
        """Yields the sessions, newest first: all, or those for which conditions hold (metadata, model, format, …)."""
        for one in self._list("/v1/sessions", types.Session, where):
            yield one

    def search(self, words: str, **where: Any) -> Iterator[Dict[str, Any]]:
        """Yields the passages of all sessions with some words."""
        for one in self._pages("/v1/search", "hits", {**where, "q": words}):
            yield one

    def events(self, *, after: Optional[int] = None, **where: Any) -> Iterator[types.Event]:
        """Yields what happens from now on, or behind an event's number n, for ever: a stream that ends is continued."""
        if after is None:
            after = (self.request("GET", "/v1/events", query={"limit": 1}))["newest"]
        while True:
            request = Request("GET", "/v1/events", {**where, "after": after}, headers={"Accept": "text/event-stream"})
            kind = ""
            try:
                for line in self._transport.lines(request):
                    name, _, value = line.partition(": ")
                    if name == "event":
                        kind = value
                    elif name == "data" and kind == "stream.closed":
                        break  # the next request says why, if the key may not read any more
                    elif name == "data":
                        event = decode(types.Event, json.loads(value))
                        after = event.n
                        yield event
            except Unreachable:
                continue

    def tools(self, format: str) -> List[Dict[str, Any]]:
        """Returns the definitions of the tools that read back, as a provider takes them."""
        return (self.request("GET", "/v1/tools", query={"format": format}))["tools"]

    def _list(self, at: str, kind: Any, where: Dict[str, Any]) -> Iterator[Any]:
        for one in self._pages(at, "data", where):
            yield decode(kind, one)

    def _pages(self, at: str, member: str, where: Dict[str, Any]) -> Iterator[Any]:
        query = dict(where)
        while True:
            page = self.request("GET", at, query=query)
            for one in page[member]:
                yield one
            if not page.get("next_cursor"):
                return
            query["cursor"] = page["next_cursor"]


class Session:
    """A session. step is all that most agents need."""

    def __init__(self, varve: Varve, id: str, settings: Dict[str, Any]):
        self._varve, self.id, self._settings = varve, id, settings
        self._at = path("/v1/sessions/{id}", id=id)

    def step(
        self, messages: Sequence[Any], *, usage: Union[types.Usage, Dict[str, Any], None] = None,
        key: Optional[str] = None, client_ids: Optional[Sequence[Optional[str]]] = None, **view: Any,
    ) -> types.View:
        """Appends messages and returns what to send to the model next, in one call. view takes the parameters of
        context; fit="window" is the default. An APIError with appended says why there is no view of messages that are
        in the log nevertheless."""
        view = {"fit": "window", **view, "return": "context"}
        done = self._append(messages, usage, key, client_ids, None, view)
        if done.context is None:
            problem = encode(done.problem)
            error = APIError(problem["status"], problem)
            error.appended = done
            raise error
        return done.context

    def append(
        self, messages: Sequence[Any], *, usage: Union[types.Usage, Dict[str, Any], None] = None,
        key: Optional[str] = None, client_ids: Optional[Sequence[Optional[str]]] = None,
        expected_seq: Optional[int] = None,
    ) -> types.Appended:
        """Appends messages in the provider's format, all or none. usage is of the request whose answer is among them."""
        return self._append(messages, usage, key, client_ids, expected_seq, {})

    def _append(
        self, messages: Sequence[Any], usage: Any, key: Optional[str], client_ids: Any, expected_seq: Optional[int],
        query: Dict[str, Any],
    ) -> types.Appended:
        body = {
            "messages": list(messages), "usage": encode(usage), "client_ids": client_ids, "expected_seq": expected_seq,
            "session": self._settings or None,
        }
        given = {name: value for name, value in body.items() if value is not None}
        answer = self._varve.request("POST", self._at + "/messages", body=given, query=query, key=key)
        return decode(types.Appended, answer)

    def replace(self, messages: Sequence[Any], **more: Any) -> types.Replaced:
        """Makes the views have these messages and no others: for frameworks that save the whole array."""
        body = {"messages": list(messages), **more}
        return decode(types.Replaced, self._varve.request("PUT", self._at + "/messages", body=body))

    def context(self, **view: Any) -> types.View:
        """Returns what to send to the model: max_tokens, fit, wait, format, model, dialect, pending, …"""
        return decode(types.View, self._varve.request("GET", self._at + "/context", query=view))

    def messages(self, **where: Any) -> Iterator[types.Message]:
        """Yields the log, as it was appended: from_seq, to_seq, order."""
        query = dict(where)
        bound = "to_seq" if query.get("order") == "desc" else "from_seq"
        while True:
            page = self._varve.request("GET", self._at + "/messages", query=query)
            for one in decode(List[types.Message], page["data"]):
                yield one
            if page["next_seq"] is None:
                return
            query[bound] = page["next_seq"]

    def create(self) -> types.Session:
        """Makes the session with its settings, or reads it if it is there."""
        return decode(types.Session, self._varve.request("PUT", self._at, body=self._settings))

    def read(self, **query: Any) -> types.Session:
        """Reads the session; include="policy" with its policy."""
        return decode(types.Session, self._varve.request("GET", self._at, query=query))

    def change(self, **settings: Any) -> types.Session:
        """Changes settings of the session."""
        return decode(types.Session, self._varve.request("PATCH", self._at, body=settings))

    def delete(self) -> None:
        """Erases the session and all its data."""
        self._varve.request("DELETE", self._at)

    def compact(self, wait: Optional[int] = None) -> types.Run:
        """Compacts the session now, and waits up to 60 seconds for the end."""
        return decode(types.Run, self._varve.request("POST", self._at + "/compact", query={"wait": wait}))

    def runs(self) -> Iterator[types.Run]:
        """Yields the compactions, newest first."""
        for one in self._varve._list(self._at + "/runs", types.Run, {}):
            yield one

    def results(self, **where: Any) -> Iterator[types.Result]:
        """Yields what left the view and can be read back."""
        for one in self._varve._list(self._at + "/results", types.Result, where):
            yield one

    def result(self, ref: str) -> Iterator[bytes]:
        """Yields the bytes of a result."""
        at = self._at + path("/results/{ref}", ref=ref)
        for piece in self._varve._transport.pieces(Request("GET", at, {"raw": True})):
            yield piece

    def upload(
        self, pieces: Any, *, progress: Optional[Callable[[int], None]] = None, **about: Any
    ) -> types.UploadedResult:
        """Stores the output of a tool (an iterable of bytes) while it arrives, and returns the ref and the text to put
        into its message. about has tool, call_id, media_type; progress gets how many bytes are stored."""
        at, query, stored = self._at + "/results", dict(about), 0
        for piece, last in _with_last(pieces):
            answer = self._varve.request("POST", at, body=piece, query={**query, "more": not last})
            stored += len(piece)
            if progress is not None:
                progress(stored)
            if last:
                return decode(types.UploadedResult, answer)
            at, query = self._at + "/results/uploads/" + answer["id"], {"offset": stored}
        raise AssertionError("the last piece has no end")

    def search(self, words: str, **where: Any) -> Iterator[types.Hit]:
        """Yields the passages of the session with some words, the best first."""
        for one in self._varve._pages(self._at + "/search", "hits", {**where, "q": words}):
            yield decode(types.Hit, one)

    def call(self, tool: str, arguments: Any, *, call_id: Optional[str] = None) -> types.ToolAnswer:
        """Runs a model's call of a tool. With call_id the answer has messages, ready to be appended."""
        body = {"arguments": arguments, **({"call_id": call_id} if call_id else {})}
        at = self._at + path("/tools/{tool}", tool=tool)
        return decode(types.ToolAnswer, self._varve.request("POST", at, body=body))

    def functions(self) -> Dict[str, Callable[..., Any]]:
        """Returns the tools as functions of their arguments by name, each of which returns a text."""

        def function(name: str, about: str) -> Callable[..., Any]:
            def run(**arguments: Any) -> str:
                return (self.call(name, arguments)).text or ""

            run.__name__, run.__doc__ = name, about
            return run

        tools = self._varve.tools("anthropic")
        return {tool["name"]: function(tool["name"], tool["description"]) for tool in tools}

    def token(self, **wanted: Any) -> str:
        """Makes a session token (st_…) for an agent: scopes, expires_in_seconds."""
        return (self._varve.request("POST", self._at + "/tokens", body=wanted, key=""))["token"]


_PIECE = 8 << 20


def _with_last(pieces: Any) -> Any:
    """Yields bytes in pieces of 8 MiB, and of each whether it is the last one."""
    held = b""
    for piece in [pieces] if isinstance(pieces, (bytes, bytearray)) else pieces:
        held += piece
        while len(held) > _PIECE:
            yield held[:_PIECE], False
            held = held[_PIECE:]
    yield held, True
