"""An agent with the Python client: python3 python.py "Read README.md." "And now?" """
import json
import os
import sys
import time
import urllib.request

from varve import Varve

READ_FILE = {"type": "function", "function": {"name": "read_file", "description": "Reads a file", "parameters": {
    "type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}}


def ask(messages, tools):
    """Sends a request to the model."""
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1") + "/chat/completions"
    headers = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"}
    body = json.dumps({"model": "gpt-4o", "messages": messages, "tools": tools}).encode()
    with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as answer:
        return json.load(answer)


def result(session, call):
    """Runs a call and returns the messages with its result."""
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    if name != "read_file":
        return session.call(name, arguments, call_id=call["id"]).messages
    with open(json.loads(arguments)["path"], encoding="utf-8") as file:
        return [{"role": "tool", "tool_call_id": call["id"], "content": file.read()}]


def turn(session, tools, question):
    """Asks the model until it calls no tool any more, and returns what it says."""
    view = session.step([{"role": "user", "content": question}])
    while True:
        answer = ask(view.messages, tools)
        message, usage = answer["choices"][0]["message"], answer["usage"]
        cached = usage.get("prompt_tokens_details", {}).get("cached_tokens", 0)
        new = [message] + [one for call in message.get("tool_calls") or [] for one in result(session, call)]
        view = session.step(new, usage={"input_tokens": usage["prompt_tokens"] - cached, "cache_read_tokens": cached})
        if not message.get("tool_calls"):
            return message["content"]


varve = Varve()
session = varve.session(os.environ.get("SESSION", f"python-{time.time():.0f}"), format="openai-chat", model="gpt-4o")
tools = [READ_FILE, *varve.tools("openai-chat")]
for question in sys.argv[1:]:
    print(turn(session, tools, question))
