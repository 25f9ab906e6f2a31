"""The client against a real server: VARVE_URL, VARVE_KEY. cmd/varve/clients_test.go runs it."""

import asyncio
import concurrent.futures
import doctest
import functools
import http.client
import http.server
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from pathlib import Path
from urllib.parse import urlsplit

import varve
from varve import APIError, AsyncVarve, NotFound, Unreachable, Varve, VarveError
from varve.agents import VarveSession

ROOT = Path(__file__).parent.parent
NUMBER = iter(range(1_000_000))


def user(text):
    return {"role": "user", "content": text}


def turn(n):
    call = {"id": f"c{n}", "type": "function", "function": {"name": "read", "arguments": f'{{"path":"file{n}"}}'}}
    return [
        user(f"question {n}"), {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": f"word{n} " * 3000}, {"role": "assistant", "content": f"answer {n}"},
    ]


def new_id(of):
    return f"python-{os.getpid()}-{of}-{next(NUMBER)}"


class Flaky:
    """A proxy in front of the server, which cuts off the first answer to a session that has the number of bytes in its id."""

    def __init__(self):
        self.keys, self.lengths = {}, {}
        outer, at = self, urlsplit(os.environ["VARVE_URL"])

        class Handler(http.server.BaseHTTPRequestHandler):
            def handle_one_request(self):
                self.raw_requestline = self.rfile.readline()
                self.close_connection = True
                if not self.raw_requestline or not self.parse_request():
                    return
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                id, cut = re.search(r"python-\d+-cut-(\d+)-\d+", self.path).group(0, 1)
                headers = {name: self.headers[name] for name in ("Authorization", "Idempotency-Key")}
                server = http.client.HTTPConnection(at.hostname, at.port)
                server.request(self.command, self.path, body, headers)
                done = server.getresponse()
                text = done.read()
                server.close()
                about = b"" if done.status == 204 else b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(text)
                whole = b"HTTP/1.1 %d OK\r\nConnection: close\r\n%s\r\n" % (done.status, about) + text
                outer.lengths[id] = len(whole)
                keys = outer.keys.setdefault(id, [])
                keys.append(headers["Idempotency-Key"])
                self.wfile.write(whole if len(keys) > 1 else whole[:int(cut)])

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


CHANGES = {
    "step": lambda s: s.step([user("hi")]), "append": lambda s: s.append([user("hi")]), "replace": lambda s: s.replace([user("hi")]),
    "create": lambda s: s.create(), "change": lambda s: s.change(metadata={"a": "b"}), "compact": lambda s: s.compact(wait=60),
    "upload": lambda s: s.upload(b"text"), "delete": lambda s: s.delete(),
    "call": lambda s: s.call("get_messages", {"from_seq": 1, "to_seq": 1}, call_id="c1"),
}


def state_of(session):
    try:
        found = session.read()
        lists = session.messages(), session.results(), session.runs()
        return found.metadata, found.last_seq, [len(list(one)) for one in lists]
    except NotFound as error:
        return error.code


class Scripted:
    """A server that answers with statuses, headers and bodies one after another."""

    def __init__(self, *answers):
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.path)
                status, headers, body = answers[min(len(outer.asked), len(answers)) - 1]
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


class ClientTest(unittest.TestCase):
    def setUp(self):
        self.varve = Varve()
        self.addCleanup(self.varve.close)

    def test_a_turn_is_one_call_a_model_request(self):
        session = self.varve.session(new_id("turn"), format="openai-chat", model="gpt-4o", metadata={"user": "u1"})
        view = session.step([user("hi \ud83d\ude00")])
        self.assertEqual([user("hi 😀")], view.messages)
        self.assertEqual(1, view.last_seq)
        call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        view = session.step(
            [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c1", "content": "x"}],
            usage=varve.types.Usage(input_tokens=12, output_tokens=3), format="anthropic",
        )
        self.assertEqual(("anthropic", 3), (view.format, len(view.messages)))
        found = session.read(include="policy")
        self.assertEqual({"user": "u1"}, found.metadata)
        self.assertGreater(found.policy.trigger, 0)
        self.assertEqual(12, found.last_usage.input_tokens)
        self.assertIsNone(session.read().policy)

    def test_pages_are_iterators(self):
        session = self.varve.session(new_id("pages"), format="openai-chat")
        session.append([user(f"message {n}") for n in range(250)])
        self.assertEqual(list(range(1, 251)), [m.seq for m in session.messages(limit=40)])
        newest = [m.message for m in session.messages(order="desc", limit=100)]
        self.assertEqual((250, user("message 249")), (len(newest), newest[0]))
        kind = new_id("kind")
        for n in range(5):
            self.varve.session(f"{kind}-{n}", format="openai-chat", metadata={"kind": kind}).create()
        found = [s.id for s in self.varve.sessions(metadata={"kind": kind}, limit=2)]
        self.assertEqual([f"{kind}-{n}" for n in (4, 3, 2, 1, 0)], found)
        self.assertEqual([], list(session.runs()))

    def test_errors_say_what_is_wrong_and_where(self):
        session = self.varve.session(new_id("errors"))
        with self.assertRaises(NotFound) as caught:
            session.append([user("x")])
        self.assertEqual((404, "not_found"), (caught.exception.status, caught.exception.code))
        self.assertRegex(caught.exception.request_id, "^req_")
        session = self.varve.session(session.id, format="openai-chat", window_tokens=1000)
        with self.assertRaises(APIError) as caught:
            session.append([user("x"), {"content": "no role"}])
        self.assertEqual((422, "/messages/1/role"), (caught.exception.status, caught.exception.pointer[:16]))
        picture = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
        with self.assertRaises(APIError) as caught:
            session.step([{"role": "user", "content": [picture, picture]}], wait=0)
        self.assertEqual(("window_exceeded", 1), (caught.exception.code, caught.exception.appended.last_seq))
        with self.assertRaises(Unreachable):
            Varve("http://127.0.0.1:1").request("POST", "/v1/sessions", key="")

    def test_a_client_without_a_key_says_so_at_once(self):
        with unittest.mock.patch.dict(os.environ):
            key = os.environ.pop("VARVE_KEY")
            for kind in (Varve, AsyncVarve):
                with self.assertRaisesRegex(VarveError, "VARVE_KEY is not set"):
                    kind()
                self.assertTrue(kind(key=key))

    def test_a_lost_answer_is_asked_for_again_and_nothing_comes_twice(self):
        """The first answer to each change is cut off at each of its bytes; with VARVE_SHORT at some."""
        flaky, settings = Flaky(), {"format": "openai-chat"}
        client = Varve(flaky.url)

        def run(name, cut):
            session = self.varve.session(new_id(f"cut-{cut}"), **settings)
            session.append([user("first")])
            CHANGES[name](client.session(session.id, **settings))
            keys, length = flaky.keys[session.id], flaky.lengths[session.id]
            again = cut < length and name != "delete"  # whose answer is its status
            self.assertTrue(len(keys) > again and len(set(keys)) == 1, f"{name}, cut at {cut}: {len(keys)} tries")
            return length, state_of(session)

        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for name in CHANGES:
                length, want = run(name, 1_000_000)
                cuts = range(0, length, 61 if os.environ.get("VARVE_SHORT") else 1)
                for cut, (_, got) in zip(cuts, pool.map(run, [name] * len(cuts), cuts)):
                    self.assertEqual(want, got, f"{name}, cut at {cut}")

    def test_retry_after_is_obeyed(self):
        busy = (503, {"Retry-After-Ms": "700"}, json.dumps({"code": "over_capacity", "retryable": True}))
        server = Scripted(busy, (200, {}, "{}"))
        began = time.monotonic()
        self.assertEqual({}, Varve(server.url).request("GET", "/v1/x"))
        self.assertGreaterEqual(time.monotonic() - began, 0.7)
        late = Scripted((429, {"Retry-After": "3600"}, json.dumps({"code": "rate_limited", "retryable": True})))
        began = time.monotonic()
        with self.assertRaises(APIError) as caught:
            Varve(late.url).request("GET", "/v1/x")
        self.assertEqual(3600, caught.exception.retry_after)
        self.assertLess(time.monotonic() - began, 20)
        once = Scripted((503, {}, json.dumps({"code": "unavailable", "retryable": True})))
        with self.assertRaises(APIError):
            Varve(once.url).request("POST", "/v1/x", key="")
        self.assertEqual(1, len(once.asked))

    def test_results_go_up_and_come_back(self):
        session = self.varve.session(new_id("results"), format="openai-chat")
        session.create()
        text, stored = b"a line of output\n" * 600_000, []
        done = session.upload((text[i:i + 1_000_000] for i in range(0, len(text), 1_000_000)), tool="Bash", call_id="c1", progress=stored.append)
        self.assertEqual(len(text), done.bytes)
        self.assertEqual(len(text), stored[-1])
        self.assertGreater(len(stored), 1)
        self.assertEqual(text, b"".join(session.result(done.ref)))
        functions = session.functions()
        self.assertIn("a line of output", functions["read_result"](ref=done.ref, limit=3))
        self.assertTrue(functions["read_result"].__doc__)
        answer = session.call("read_result", {"ref": done.ref, "limit": 1}, call_id="c2")
        self.assertEqual("c2", answer.messages[0]["tool_call_id"])
        self.assertEqual("function", self.varve.tools("openai-chat")[0]["type"])

    def test_events_are_a_stream(self):
        session = self.varve.session(new_id("events"), format="openai-chat", window_tokens=10000)
        session.append([message for n in range(6) for message in turn(n)])
        events, got = self.varve.events(after=0, session=session.id), []
        self.assertEqual("done", session.compact(wait=60).state)
        for event in events:
            got.append(event)
            if event.type == "session.compacted":
                break
        self.assertEqual(session.id, got[-1].session)
        self.assertEqual(1, got[-1].data["checkpoint"])
        session.delete()
        with self.assertRaises(NotFound):
            session.read()

    def test_asyncio(self):
        async def main():
            async with AsyncVarve() as varve:
                session = varve.session(new_id("async"), format="anthropic")
                views = await asyncio.gather(*(session.step([user(f"message {n}")]) for n in range(8)))
                for n, view in enumerate(views):
                    self.assertIn(f"message {n}", str(view.messages))
                self.assertEqual(8, len([m async for m in session.messages(limit=3)]))
                text = await (await session.functions())["get_messages"](from_seq=1, to_seq=1)
                self.assertIn("message", text)
                waiting = asyncio.ensure_future(anext_of(varve.events()))
                await asyncio.sleep(0.3)
                waiting.cancel()
                with self.assertRaises(asyncio.CancelledError):
                    await waiting

        async def anext_of(events):
            async for event in events:
                return event

        asyncio.run(main())

    def test_a_session_of_the_agents_sdk(self):
        def said(role, text):
            kind = "output_text" if role == "assistant" else "input_text"
            return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

        async def main():
            async with AsyncVarve() as varve:
                stored = varve.session(new_id("agents"), format="openai-responses", window_tokens=20_000)
                session = VarveSession(stored)
                self.assertEqual([[], [], None], [await session.get_items(), await session.get_items(2), await session.pop_item()])
                items = [said("user", "a"), said("assistant", "b"), said("user", "c")]
                await session.add_items([])
                await session.add_items(items)
                self.assertEqual([items, items[1:], []], [await session.get_items(n) for n in (None, 2, 0)])
                popped = await session.pop_item()
                self.assertEqual((items[2], stored.id), ({name: popped[name] for name in items[2]}, session.session_id))
                self.assertEqual([items[:2], items[1:2]], [await session.get_items(n) for n in (None, 1)])
                await session.clear_session()
                await session.clear_session()
                self.assertEqual([], await session.get_items())
                for n in range(20):
                    call = {"type": "function_call", "call_id": f"c{n}", "name": "read", "arguments": "{}"}
                    output = {"type": "function_call_output", "call_id": f"c{n}", "output": f"word{n} " * 2000}
                    await session.add_items([said("user", f"question {n}"), call, output, said("assistant", f"answer {n}")])
                view = await session.get_items()
                self.assertEqual("answer 19", view[-1]["content"][0]["text"])
                self.assertLess(len(json.dumps(view)), 20_000 * 8)
                self.assertEqual(80, len(await session.get_items(1000)))

        asyncio.run(main())

    def test_pip_needs_no_other_package_to_build_this_one(self):
        self.assertIn('requires = []\nbuild-backend = "wheel"\n', (ROOT / "pyproject.toml").read_text("utf-8"))
        with tempfile.TemporaryDirectory() as folder:
            run = functools.partial(subprocess.check_output, text=True)
            name = run([sys.executable, "-B", "-c", "import sys, wheel; print(wheel.build_wheel(sys.argv[1]))", folder], cwd=ROOT)
            path = {**os.environ, "PYTHONPATH": os.path.join(folder, name.strip())}
            found = run([sys.executable, "-c", "import varve; print(varve.__file__)"], cwd=folder, env=path)
            self.assertIn(name.strip(), found)

    def test_the_readme_is_true(self):
        failed, tried = doctest.testfile(str(ROOT / "README.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
        self.assertEqual((0, True), (failed, tried > 5))


if __name__ == "__main__":
    unittest.main()
