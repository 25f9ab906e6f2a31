package wire

import (
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

func TestInspectAISDK(t *testing.T) {
	t.Parallel()
	testInspect(t, session.AISDK, []inspectCase{
		{"each element of parts is a part", `{"id":"m1","role":"user","parts":[{"type":"text","text":"12345"},{"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA"},{"type":"file","mediaType":"application/pdf","url":"https://a.b/c"},{"type":"data-x","data":1},7]}`, `user 3016 image
0 text 2 "12345" in {"type":"text","text":"12345"}
1 image 1500  in {"type":"file","mediaType":"image/png","url":"data:image/png;base64,AAAA"}
2 file 1500  in {"type":"file","mediaType":"application/pdf","url":"https://a.b/c"}
3 opaque 9  in {"type":"data-x","data":1}
4 opaque 1  in 7`},
		{"a message without parts is empty", `{"id":"m","role":"assistant","parts":[]}`, `assistant 4 empty empty-array`},
		{"a system message is pinned", `{"id":"m","role":"system","parts":[{"type":"text","text":"be!!"}]}`, `system 5 pinned
0 text 1 "be!!" in {"type":"text","text":"be!!"}`},
		{"a tool part is a call, then a result once it is done, and stays in its unit",
			`{"id":"m","role":"assistant","parts":[{"type":"step-start"},{"type":"reasoning","text":"hmm","providerMetadata":{}},{"type":"tool-read","toolCallId":"c1","state":"output-available","input":{"a":1},"output":"four"},{"type":"dynamic-tool","toolName":"tool-x","toolCallId":"c2","state":"input-available","input":"ls"},{"type":"text","text":"done"}]}`, `assistant 15 reasoning
0 opaque 0  in {"type":"step-start"}
1 reasoning 1 "hmm" in {"type":"reasoning","text":"hmm","providerMetadata":{}}
2 call 5 c1 read {"a":1}
3 result 1 c1 read "four"
4 call 3 c2 tool-x "ls"
5 text 1 "done" in {"type":"text","text":"done"}`},
		{"a tool that failed or was refused has a result that says so",
			`{"id":"m","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a","state":"output-error","rawInput":"{","errorText":"boom"},{"type":"tool-f","toolCallId":"b","state":"output-denied","input":{},"approval":{"id":"x","approved":false,"reason":"no"}},{"type":"tool-f","toolCallId":"c","state":"output-available","input":{}}]}`, `assistant 14
0 call 3 a f "{"
1 result 1 a f error "boom"
2 call 3 b f {}
3 result 0 b f error 
4 call 3 c f {}
5 result 0 c f `},
		{"an output may be any JSON", `{"id":"m","role":"assistant","parts":[{"type":"tool-f","toolCallId":"a","state":"output-available","input":{},"output":{"a":[1]}}]}`, `assistant 13 result-not-text
0 call 3 a f {}
1 result 6 a f {"a":[1]}`},
		{"tools that the provider ran are opaque, and so are sources",
			`{"id":"m","role":"assistant","parts":[{"type":"tool-s","toolCallId":"a","providerExecuted":true,"state":"output-available","output":"x"},{"type":"source-url","sourceId":"s","url":"u"}]}`, `assistant 48
0 opaque 29  in {"type":"tool-s","toolCallId":"a","providerExecuted":true,"state":"output-available","output":"x"}
1 opaque 15  in {"type":"source-url","sourceId":"s","url":"u"}`},
		{"tool parts of a user are opaque", `{"id":"m","role":"user","parts":[{"type":"tool-s","toolCallId":"a","state":"input-available"}]}`, `user 23
0 opaque 19  in {"type":"tool-s","toolCallId":"a","state":"input-available"}`},
		{"a message of version 4 has its text, its invocations are opaque",
			`{"id":"m","role":"assistant","content":"hi!","toolInvocations":[{"state":"result","toolCallId":"a","toolName":"f","args":{},"result":1}]}`, `assistant 27
0 text 1 "hi!"
1 opaque 22  in {"state":"result","toolCallId":"a","toolName":"f","args":{},"result":1}`},
		{"parts of version 4 stand for the content beside them",
			`{"id":"m","role":"assistant","content":"hi!","parts":[{"type":"tool-invocation","toolInvocation":{"toolCallId":"a"}},{"type":"text","text":"hi!"}]}`, `assistant 23
0 opaque 18  in {"type":"tool-invocation","toolInvocation":{"toolCallId":"a"}}
1 text 1 "hi!" in {"type":"text","text":"hi!"}`},
		{"a tool may be called invocation", `{"id":"m","role":"assistant","parts":[{"type":"tool-invocation","toolCallId":"a","state":"input-available","input":{}}]}`, `assistant 8
0 call 4 a invocation {}`},
	})
}
