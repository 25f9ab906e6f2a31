"""Client of Varve, a session store for LLM agents. Start at Varve, or at AsyncVarve for asyncio."""

from . import types
from ._async import AsyncSession, AsyncVarve
from ._errors import APIError, NotFound, Unreachable, VarveError
from ._sync import Session, Varve
from ._transport import VERSION as __version__

__all__ = [
    "APIError", "AsyncSession", "AsyncVarve", "NotFound", "Session", "Unreachable", "Varve", "VarveError",
    "__version__", "types",
]
