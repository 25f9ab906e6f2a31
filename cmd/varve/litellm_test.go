package main

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// proxied is an agent behind LiteLLM: it sends its whole history with every request, through the hook. LiteLLM is not
// there; its class of hooks is a name.
const proxied = `
import asyncio, json, os, sys, types, urllib.request

for name in ("litellm", "litellm.integrations", "litellm.integrations.custom_logger"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["litellm.integrations.custom_logger"].CustomLogger = object
from litellm_hook import Compaction, compaction
from varve import AsyncVarve

TOOLS = [{"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}]

def send(data):
    request = urllib.request.Request(os.environ["MODEL"], json.dumps(data).encode())
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]

async def run():
    hook, history = Compaction(window_tokens=40000), []
    for turn in range(1, 9):
        history.append({"role": "user", "content": f"Turn {turn}"})
        while True:
            data = {"model": "gpt-4o", "messages": list(history), "tools": TOOLS}
            answer = send(await hook.async_pre_call_hook(None, None, data, "acompletion"))
            history.append(answer)
            for call in answer.get("tool_calls") or []:
                with open(json.loads(call["function"]["arguments"])["path"]) as file:
                    history.append({"role": "tool", "tool_call_id": call["id"], "content": file.read()})
            if not answer.get("tool_calls"):
                print(answer["content"])
                break
    lost = Compaction(AsyncVarve("http://127.0.0.1:1", "vk_none"))
    for hook, kind in (lost, "acompletion"), (compaction, "embeddings"), (compaction, "acompletion"):
        data = {"model": "gpt-4o", "messages": history[:1]}
        assert (await hook.async_pre_call_hook(None, None, data, kind))["messages"] == history[:1], kind

asyncio.run(run())
`

// TestAProxysHookKeepsRequestsWithinTheirWindow has a strict provider of 40,000 tokens behind the hook.
func TestAProxysHookKeepsRequestsWithinTheirWindow(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skipf("the hook for LiteLLM is not run: %v", err)
	}
	u, _ := shareUp(t)
	model := &strictModel{files: t.TempDir(), window: 40_000}
	model.fill(t)
	provider := httptest.NewServer(model)
	defer provider.Close()
	agent := exec.CommandContext(t.Context(), "python3", "-c", proxied)
	paths := []string{filepath.Join("..", "..", "clients", "python"), filepath.Join("..", "..", "samples", "hooks")}
	agent.Env = append(os.Environ(), "VARVE_URL="+u.url, "VARVE_KEY="+u.key, "MODEL="+provider.URL,
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH="+strings.Join(paths, string(os.PathListSeparator)))
	out, err := agent.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "answer 1\nanswer 2\n") || len(model.refused) > 0 {
		t.Errorf("%v, refused %q\n%s", err, model.refused, out)
	}
	t.Logf("%d requests, the largest of %d tokens", model.requests, model.largest)
	if model.largest < model.window/4 {
		t.Error("less was sent than had room")
	}
}
