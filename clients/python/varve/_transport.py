"""How requests are sent: over kept connections, again after a failure that may pass, never longer than PATIENCE."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import random
import ssl
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Optional, Tuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from ._errors import APIError, Unreachable, VarveError, error_of

VERSION = "0.2.0"
PATIENCE = 30.0

T = TypeVar("T")


@dataclass
class Request:
    """A request. One with an Idempotency-Key, and one that only reads, is sent again if it fails."""

    method: str
    path: str
    query: Dict[str, Any] = field(default_factory=dict)
    body: Any = None  # bytes as they are, anything else as JSON
    key: Optional[str] = None  # Idempotency-Key; "" sends none
    headers: Dict[str, str] = field(default_factory=dict)

    def repeatable(self) -> bool:
        return self.method == "GET" or bool(self.key)


def path(template: str, **names: str) -> str:
    """Returns a path with the names put in, percent-encoded."""
    return template.format(**{name: quote(value, safe="") for name, value in names.items()})


class Cancel:
    """Ends a request from another thread."""

    def __init__(self) -> None:
        self.done = False
        self.connection: Optional[http.client.HTTPConnection] = None

    def __call__(self) -> None:
        self.done = True
        if self.connection is not None and self.connection.sock is not None:
            try:
                self.connection.sock.shutdown(2)
            except OSError:
                pass


class Transport:
    """Sends requests from any number of threads."""

    def __init__(self, url: Optional[str], key: Optional[str], timeout: float, patience: float = PATIENCE):
        self._idle: List[http.client.HTTPConnection] = []
        at = urlsplit(url or os.environ.get("VARVE_URL") or "http://localhost:8080")
        if at.scheme not in ("http", "https") or not at.hostname:
            raise ValueError(f"url must be like http://localhost:8080, not {url!r}")
        self._host, self._port, self._base = at.hostname, at.port, at.path.rstrip("/")
        self._tls = ssl.create_default_context() if at.scheme == "https" else None
        self._timeout, self._patience = timeout, patience
        key = key or os.environ.get("VARVE_KEY")
        if not key:
            raise VarveError("no key was given, and VARVE_KEY is not set")
        self._headers = {
            "Authorization": f"Bearer {key}",
            "User-Agent": f"varve-python/{VERSION}",
        }

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def __del__(self) -> None:
        self.close()

    def send(self, request: Request, cancel: Optional[Cancel] = None) -> Any:
        """Returns the JSON of the answer, None if it has none."""
        _, body = self._repeated(request, lambda: self._once(request, cancel), cancel)
        return json.loads(body) if body else None

    def pieces(self, request: Request, cancel: Optional[Cancel] = None) -> Iterator[bytes]:
        """Yields the answer while it arrives. Its beginning is repeated, nothing later."""
        connection, answer = self._repeated(request, lambda: self._open(request, cancel), cancel)
        try:
            while piece := answer.read1(1 << 16):
                yield piece
            if answer.length:
                raise http.client.IncompleteRead(b"", answer.length)
        except (OSError, http.client.HTTPException) as err:
            raise Unreachable(f"the answer ended early: {err}") from err
        finally:
            connection.close()

    def lines(self, request: Request) -> Iterator[str]:
        """Yields the lines of a text, without their ends."""
        rest = b""
        for piece in self.pieces(request):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line.decode().rstrip("\r")
        if rest:
            yield rest.decode()

    def _repeated(self, request: Request, attempt: Callable[[], T], cancel: Optional[Cancel]) -> T:
        end, pause = time.monotonic() + self._patience, 0.1
        while True:
            try:
                return attempt()
            except (APIError, Unreachable) as err:
                wait = pause * (0.5 + random.random())
                if isinstance(err, APIError):
                    wait = max(wait, err.retry_after or 0)
                    if not err.retryable:
                        raise
                if not request.repeatable() or time.monotonic() + wait > end or cancel is not None and cancel.done:
                    raise
            time.sleep(wait)
            pause = min(2 * pause, 5.0)

    def _once(self, request: Request, cancel: Optional[Cancel]) -> Tuple[int, bytes]:
        connection, answer = self._open(request, cancel)
        try:
            body = _read(answer)
        except (OSError, http.client.HTTPException) as err:
            connection.close()
            raise Unreachable(f"the answer ended early: {err}") from err
        if answer.will_close:
            connection.close()
        else:
            self._idle.append(connection)
        return answer.status, body

    def _open(
        self, request: Request, cancel: Optional[Cancel]
    ) -> Tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        body, headers = self._encoded(request)
        target = self._base + request.path
        query = {name: _text(value) for name, value in request.query.items() if value is not None}
        if query:
            target += "?" + urlencode(query)
        connection = self._connection(request)
        if cancel is not None:
            cancel.connection = connection
        try:
            connection.request(request.method, target, body=body, headers=headers)
            answer = connection.getresponse()
            if answer.status >= 300:
                failed = _read(answer)
        except (OSError, http.client.HTTPException) as err:
            connection.close()
            raise Unreachable(f"no Varve answers at {self._host}: {err}") from err
        if answer.status >= 300:
            connection.close()
            raise error_of(answer.status, failed, {name.lower(): value for name, value in answer.getheaders()})
        return connection, answer

    def _connection(self, request: Request) -> http.client.HTTPConnection:
        """Takes a kept connection, which the server may have closed, only for a request that can be repeated."""
        if request.repeatable():
            try:
                return self._idle.pop()
            except IndexError:
                pass
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)

    def _encoded(self, request: Request) -> Tuple[Optional[bytes], Dict[str, str]]:
        headers = {**self._headers, **request.headers}
        if request.key is None and request.method != "GET":
            request.key = str(uuid.uuid4())
        if request.key:
            headers["Idempotency-Key"] = request.key
        if request.body is None or isinstance(request.body, bytes):
            return request.body, headers
        headers["Content-Type"] = "application/json"
        try:
            return json.dumps(request.body, ensure_ascii=False).encode(), headers
        except UnicodeEncodeError:  # halves of surrogate pairs
            return json.dumps(request.body).encode(), headers


def _read(answer: http.client.HTTPResponse) -> bytes:
    """Reads an answer, which says how long it is unless its head was cut off."""
    if answer.status != 204 and answer.length is None and not answer.chunked:
        raise http.client.HTTPException("its head was cut off")
    return answer.read()


class AsyncTransport:
    """Sends requests in threads of the event loop's executor. To cancel a task ends its request."""

    def __init__(self, *args: Any, **kwargs: Any):
        self._inner = Transport(*args, **kwargs)

    async def close(self) -> None:
        self._inner.close()

    async def send(self, request: Request) -> Any:
        cancel = Cancel()
        return await self._run(cancel, lambda: self._inner.send(request, cancel))

    async def pieces(self, request: Request) -> AsyncIterator[bytes]:
        cancel = Cancel()
        pieces = self._inner.pieces(request, cancel)
        while (piece := await self._run(cancel, lambda: next(pieces, None))) is not None:
            yield piece

    async def lines(self, request: Request) -> AsyncIterator[str]:
        rest = b""
        async for piece in self.pieces(request):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line.decode().rstrip("\r")
        if rest:
            yield rest.decode()

    async def _run(self, cancel: Cancel, do: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(None, do)
        except asyncio.CancelledError:
            cancel()
            raise


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
