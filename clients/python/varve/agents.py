"""A session of the OpenAI Agents SDK; it needs no package but that one."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

from ._async import AsyncSession
from ._errors import NotFound
from ._transport import path


class VarveSession:
    """A session of the OpenAI Agents SDK that never outgrows the model's window: get_items returns the session's view,
    which is compacted in the background; get_items(limit) and pop_item return items as they were added."""

    session_settings: Any = None  # of the SDK

    def __init__(self, session: AsyncSession):
        """Takes a session of the format openai-responses; its first items make it."""
        self.session, self.session_id = session, session.id
        self._at = path("/v1/conversations/{id}/items", id=session.id)

    async def get_items(self, limit: Optional[int] = None) -> List[Dict[str, Any]]:
        """Returns what to send to the model, with a limit the newest items as they were added."""
        try:
            if limit is None:
                return (await self.session.context(fit="window", format="openai-responses")).messages
            return await self._newest(limit)
        except NotFound:
            return []

    async def _newest(self, count: int) -> List[Dict[str, Any]]:
        found: List[Dict[str, Any]] = []
        async for one in self.session.messages(order="desc", limit=min(max(count, 1), 1000)):
            if len(found) >= count:
                break
            if one.removed_at is None and one.superseded_by is None:
                found.append(one.message)
        return found[::-1]

    async def add_items(self, items: List[Any]) -> None:
        """Adds items."""
        if items:
            await self.session.append(items)

    async def pop_item(self) -> Optional[Dict[str, Any]]:
        """Removes the newest item and returns it."""
        request = self.session._varve.request
        try:
            newest = (await request("GET", self._at, query={"order": "desc", "limit": 1}))["data"]
        except NotFound:
            return None
        for item in newest:
            await request("DELETE", self._at + path("/{item}", item=item.pop("id")))
            return item
        return None

    async def clear_session(self) -> None:
        """Erases the session; the next items make it anew."""
        try:
            await self.session.delete()
        except NotFound:
            pass
