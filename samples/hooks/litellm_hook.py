"""A hook of LiteLLM's proxy: Varve makes the messages of a request smaller once they fill their model's window."""
import json
import logging

from litellm.integrations.custom_logger import CustomLogger
from varve import AsyncVarve, VarveError

# LiteLLM's names for the calls that have messages, https://docs.litellm.ai/docs/proxy/call_hooks
FORMATS = {"completion": "openai-chat", "acompletion": "openai-chat", "anthropic_messages": "anthropic"}


class Compaction(CustomLogger):
    def __init__(self, varve=None, **settings):
        """settings are members of POST /v1/compact: window_tokens, policy, …"""
        super().__init__()
        self.varve, self.settings = varve or AsyncVarve(), settings

    async def async_pre_call_hook(self, user_api_key_dict, cache, data, call_type):
        """Replaces the messages of a request. They are sent as they are if Varve does not answer."""
        if call_type not in FORMATS:
            return data
        beside = json.dumps([data.get("tools"), data.get("system")])  # fills the window, too: about 4 bytes a token
        body = {"format": FORMATS[call_type], "messages": data["messages"], "model": data["model"], "force": False,
                "overhead_tokens": len(beside) // 4, **self.settings}
        try:
            data["messages"] = (await self.varve.request("POST", "/v1/compact", body=body))["messages"]
        except VarveError as error:
            logging.getLogger("varve").warning("the messages are not compacted: %s", error)
        return data


compaction = Compaction()
