"""The client for asyncio. _sync.py, the same without it, is made of this file by generate.py."""

from __future__ import annotations

import json
from typing import Any, AsyncIterator, Callable, Dict, List, Optional, Sequence, Union

from . import types
from ._errors import APIError, Unreachable
from ._json import decode, encode
from ._transport import AsyncTransport, Request, path


class AsyncVarve:
    """A client of one Varve with one key. Every call waits up to 30 seconds for a server that is not ready."""

    def __init__(self, url: Optional[str] = None, key: Optional[str] = None, *, timeout: float = 90.0):
        """url and key default to VARVE_URL, http://localhost:8080 without it, and VARVE_KEY."""
        self._transport = AsyncTransport(url, key, timeout)

    async def __aenter__(self) -> AsyncVarve:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the kept connections."""
        await self._transport.close()

    async def request(
        self, method: str, path: str, *, body: Any = None, query: Optional[Dict[str, Any]] = None,
        key: Optional[str] = None,
    ) -> Any:
        """Calls any route of the API and returns its JSON. key is the Idempotency-Key: one is made unless it is ""."""
        return await self._transport.send(Request(method, path, query or {}, body, key))

    def session(self, id: str, **settings: Any) -> AsyncSession:
        """Returns a session without asking the server. With settings (format, model, window_tokens, overhead_tokens,
        metadata, policy) the first append makes it; later ones compare format, model and window."""
        return AsyncSession(self, id, settings)

    async def sessions(self, **where: Any) -> AsyncIterator[types.Session]:
        """Yields the sessions, newest first: all, or those for which conditions hold (metadata, model, format, …)."""
        async for one in self._list("/v1/sessions", types.Session, where):
            yield one

    async def search(self, words: str, **where: Any) -> AsyncIterator[Dict[str, Any]]:
        """Yields the passages of all sessions with some words."""
        async for one in self._pages("/v1/search", "hits", {**where, "q": words}):
            yield one

    async def events(self, *, after: Optional[int] = None, **where: Any) -> AsyncIterator[types.Event]:
        """Yields what happens from now on, or behind an event's number n, for ever: a stream that ends is continued."""
        if after is None:
            after = (await self.request("GET", "/v1/events", query={"limit": 1}))["newest"]
        while True:
            request = Request("GET", "/v1/events", {**where, "after": after}, headers={"Accept": "text/event-stream"})
            kind = ""
            try:
                async for line in self._transport.lines(request):
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

    async def tools(self, format: str) -> List[Dict[str, Any]]:
        """Returns the definitions of the tools that read back, as a provider takes them."""
        return (await self.request("GET", "/v1/tools", query={"format": format}))["tools"]

    async def _list(self, at: str, kind: Any, where: Dict[str, Any]) -> AsyncIterator[Any]:
        async for one in self._pages(at, "data", where):
            yield decode(kind, one)

    async def _pages(self, at: str, member: str, where: Dict[str, Any]) -> AsyncIterator[Any]:
        query = dict(where)
        while True:
            page = await self.request("GET", at, query=query)
            for one in page[member]:
                yield one
            if not page.get("next_cursor"):
                return
            query["cursor"] = page["next_cursor"]


class AsyncSession:
    """A session. step is all that most agents need."""

    def __init__(self, varve: AsyncVarve, id: str, settings: Dict[str, Any]):
        self._varve, self.id, self._settings = varve, id, settings
        self._at = path("/v1/sessions/{id}", id=id)

    async def step(
        self, messages: Sequence[Any], *, usage: Union[types.Usage, Dict[str, Any], None] = None,
        key: Optional[str] = None, client_ids: Optional[Sequence[Optional[str]]] = None, **view: Any,
    ) -> types.View:
        """Appends messages and returns what to send to the model next, in one call. view takes the parameters of
        context; fit="window" is the default. An APIError with appended says why there is no view of messages that are
        in the log nevertheless."""
        view = {"fit": "window", **view, "return": "context"}
        done = await self._append(messages, usage, key, client_ids, None, view)
        if done.context is None:
            problem = encode(done.problem)
            error = APIError(problem["status"], problem)
            error.appended = done
            raise error
        return done.context

    async def append(
        self, messages: Sequence[Any], *, usage: Union[types.Usage, Dict[str, Any], None] = None,
        key: Optional[str] = None, client_ids: Optional[Sequence[Optional[str]]] = None,
        expected_seq: Optional[int] = None,
    ) -> types.Appended:
        """Appends messages in the provider's format, all or none. usage is of the request whose answer is among them."""
        return await self._append(messages, usage, key, client_ids, expected_seq, {})

    async def _append(
        self, messages: Sequence[Any], usage: Any, key: Optional[str], client_ids: Any, expected_seq: Optional[int],
        query: Dict[str, Any],
    ) -> types.Appended:
        body = {
            "messages": list(messages), "usage": encode(usage), "client_ids": client_ids, "expected_seq": expected_seq,
            "session": self._settings or None,
        }
        given = {name: value for name, value in body.items() if value is not None}
        answer = await self._varve.request("POST", self._at + "/messages", body=given, query=query, key=key)
        return decode(types.Appended, answer)

    async def replace(self, messages: Sequence[Any], **more: Any) -> types.Replaced:
        """Makes the views have these messages and no others: for frameworks that save the whole array."""
        body = {"messages": list(messages), **more}
        return decode(types.Replaced, await self._varve.request("PUT", self._at + "/messages", body=body))

    async def context(self, **view: Any) -> types.View:
        """Returns what to send to the model: max_tokens, fit, wait, format, model, dialect, pending, …"""
        return decode(types.View, await self._varve.request("GET", self._at + "/context", query=view))

    async def messages(self, **where: Any) -> AsyncIterator[types.Message]:
        """Yields the log, as it was appended: from_seq, to_seq, order."""
        query = dict(where)
        bound = "to_seq" if query.get("order") == "desc" else "from_seq"
        while True:
            page = await self._varve.request("GET", self._at + "/messages", query=query)
            for one in decode(List[types.Message], page["data"]):
                yield one
            if page["next_seq"] is None:
                return
            query[bound] = page["next_seq"]

    async def create(self) -> types.Session:
        """Makes the session with its settings, or reads it if it is there."""
        return decode(types.Session, await self._varve.request("PUT", self._at, body=self._settings))

    async def read(self, **query: Any) -> types.Session:
        """Reads the session; include="policy" with its policy."""
        return decode(types.Session, await self._varve.request("GET", self._at, query=query))

    async def change(self, **settings: Any) -> types.Session:
        """Changes settings of the session."""
        return decode(types.Session, await self._varve.request("PATCH", self._at, body=settings))

    async def delete(self) -> None:
        """Erases the session and all its data."""
        await self._varve.request("DELETE", self._at)

    async def compact(self, wait: Optional[int] = None) -> types.Run:
        """Compacts the session now, and waits up to 60 seconds for the end."""
        return decode(types.Run, await self._varve.request("POST", self._at + "/compact", query={"wait": wait}))

    async def runs(self) -> AsyncIterator[types.Run]:
        """Yields the compactions, newest first."""
        async for one in self._varve._list(self._at + "/runs", types.Run, {}):
            yield one

    async def results(self, **where: Any) -> AsyncIterator[types.Result]:
        """Yields what left the view and can be read back."""
        async for one in self._varve._list(self._at + "/results", types.Result, where):
            yield one

    async def result(self, ref: str) -> AsyncIterator[bytes]:
        """Yields the bytes of a result."""
        at = self._at + path("/results/{ref}", ref=ref)
        async for piece in self._varve._transport.pieces(Request("GET", at, {"raw": True})):
            yield piece

    async def upload(
        self, pieces: Any, *, progress: Optional[Callable[[int], None]] = None, **about: Any
    ) -> types.UploadedResult:
        """Stores the output of a tool (an iterable of bytes) while it arrives, and returns the ref and the text to put
        into its message. about has tool, call_id, media_type; progress gets how many bytes are stored."""
        at, query, stored = self._at + "/results", dict(about), 0
        for piece, last in _with_last(pieces):
            answer = await self._varve.request("POST", at, body=piece, query={**query, "more": not last})
            stored += len(piece)
            if progress is not None:
                progress(stored)
            if last:
                return decode(types.UploadedResult, answer)
            at, query = self._at + "/results/uploads/" + answer["id"], {"offset": stored}
        raise AssertionError("the last piece has no end")

    async def search(self, words: str, **where: Any) -> AsyncIterator[types.Hit]:
        """Yields the passages of the session with some words, the best first."""
        async for one in self._varve._pages(self._at + "/search", "hits", {**where, "q": words}):
            yield decode(types.Hit, one)

    async def call(self, tool: str, arguments: Any, *, call_id: Optional[str] = None) -> types.ToolAnswer:
        """Runs a model's call of a tool. With call_id the answer has messages, ready to be appended."""
        body = {"arguments": arguments, **({"call_id": call_id} if call_id else {})}
        at = self._at + path("/tools/{tool}", tool=tool)
        return decode(types.ToolAnswer, await self._varve.request("POST", at, body=body))

    async def functions(self) -> Dict[str, Callable[..., Any]]:
        """Returns the tools as functions of their arguments by name, each of which returns a text."""

        def function(name: str, about: str) -> Callable[..., Any]:
            async def run(**arguments: Any) -> str:
                return (await self.call(name, arguments)).text or ""

            run.__name__, run.__doc__ = name, about
            return run

        tools = await self._varve.tools("anthropic")
        return {tool["name"]: function(tool["name"], tool["description"]) for tool in tools}

    async def token(self, **wanted: Any) -> str:
        """Makes a session token (st_…) for an agent: scopes, expires_in_seconds."""
        return (await self._varve.request("POST", self._at + "/tokens", body=wanted, key=""))["token"]


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
