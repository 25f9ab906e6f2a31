"""Takes turns between calls of the client and the same requests without it; bench/clients.go runs it."""
import http.client
import json
import os
import sys
import time
import uuid
from urllib.parse import urlsplit

from varve import Varve

given = json.load(sys.stdin)
settings, messages, turn = given["settings"], given["messages"], given["turn"]
varve, at = Varve(), urlsplit(os.environ["VARVE_URL"])
session, path = varve.session(given["session"]), f"/v1/sessions/{given['session']}"
connection = http.client.HTTPConnection(at.hostname, at.port)


def bare(method, path, body=None):
    headers = {"Authorization": "Bearer " + os.environ["VARVE_KEY"]}
    if body:
        headers.update({"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())})
        body = json.dumps(body, ensure_ascii=False).encode()
    connection.request(method, path, body, headers)
    return json.loads(connection.getresponse().read())


def fresh():
    return f"{given['session']}-{uuid.uuid4()}"


works = {
    "context": [session.context, lambda: bare("GET", path + "/context")],
    "list": [
        lambda: list(session.messages(limit=1000)), lambda: bare("GET", path + "/messages?limit=1000")["data"],
    ],
    "append": [
        lambda: varve.session(fresh(), **settings).append(messages),
        lambda: bare("POST", f"/v1/sessions/{fresh()}/messages", {"messages": messages, "session": settings}),
    ],
    "step": [
        lambda: session.step(turn),
        lambda: bare("POST", path + "/messages?fit=window&return=context", {"messages": turn}),
    ],
}
took = {}
for name, sides in works.items():
    took[name] = [[], []]
    for _ in range(given["calls"]):
        for side, do in enumerate(sides):
            began = time.process_time()
            do()
            took[name][side].append(1000 * (time.process_time() - began))
json.dump(took, sys.stdout)
