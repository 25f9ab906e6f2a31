"""The errors of requests."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional


class VarveError(Exception):
    """Base of all errors of this package."""


class Unreachable(VarveError):
    """Nothing answers, or the answer did not arrive whole."""


class APIError(VarveError):
    """An answer that is an error. docs/errors.md lists the codes."""

    appended: Any = None  # what an append did that succeeded, but whose view failed

    def __init__(self, status: int, problem: Dict[str, Any], retry_after: Optional[float] = None):
        self.status = status
        self.problem = problem
        self.code: str = problem.get("code", "")
        self.detail: str = problem.get("detail") or f"status {status}"
        self.request_id: str = problem.get("request_id", "")
        self.retryable: bool = problem.get("retryable", status in (502, 503, 504))
        self.retry_after = retry_after
        self.errors: List[Dict[str, str]] = problem.get("errors") or []
        super().__init__(self.detail + (f" ({self.code})" if self.code else ""))

    @property
    def pointer(self) -> str:
        """Where the first problem is: a JSON pointer into the body, or the name of a parameter; "" for neither."""
        return self.errors[0]["pointer"] if self.errors else ""


class NotFound(APIError):
    """404: there is no such session, run, result, …"""


def error_of(status: int, body: bytes, headers: Dict[str, str]) -> APIError:
    """Returns an answer that is not 2xx as an error."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = {}
    if not isinstance(problem, dict) or "code" not in problem:
        problem = {"detail": f"status {status}, which is not an answer of Varve"}
    kind = NotFound if status == 404 else APIError
    return kind(status, problem, _seconds(headers))


def _seconds(headers: Dict[str, str]) -> Optional[float]:
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return float(headers[name]) / unit
        except (KeyError, ValueError):
            pass
    return None
