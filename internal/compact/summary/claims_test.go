package summary_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/summary"
)

// claimed is what the answers of this file's tests are about.
var claimed = summary.Request{
	First: 31, Last: 98,
	Retained: "- the build number is 90125",
	Previous: "The key of the ledger is LDG-4471.",
	Messages: []summary.Message{
		said("user", strings.Join([]string{
			"The bucket has 1,234,567 objects, 4096 of them cold, 65,536 warm and 250000 hot; the mean is 3.14159 s, 97.50 % pass.",
			"Deadline 2026-03-14T09:26, release v2.18.4 (build 5f3a), price $1299, port 5433, 512MiB of memory, tenant_id counts.",
			"See src/api/server.go, https://example.com/a/b?c=41&d=e and ops@example.com, and commit 9fceb02d0ae598e95dc970b74767f19372d61af8.",
			"Call `pool.Acquire(ctx)` in /srv/app; C:\\Users\\ada\\notes.txt is hers. Ticket PAY-1182 and req_8fk2ls9d are open.",
			"目标是在端口8443上运行，预算为３６００元。 마감은 2027년이다. الميزانية ٧٥٠٠ ريال.",
		}, "\n")),
		{Seq: 57, Role: "assistant", Parts: []summary.Part{
			{Kind: summary.Call, Tool: "mcp_read_rows", CallID: "call_77aX", Text: `{"path":"docs\/guide.md","text":"r\u00e9sum\u00e9 of 88 rows\nof 99"}`},
			{Kind: summary.Reasoning, Text: "the hidden number is 777777"},
		}},
		{Seq: 58, Role: "tool", Parts: []summary.Part{
			{Kind: summary.Result, Tool: "mcp_read_rows", CallID: "call_77aX", Ref: "r9.2-1f3c", Text: strings.Repeat("plain words here\n", 200)},
			{Kind: summary.Other, Media: "image/png", Bytes: 48213},
		}},
	},
}

// claimsIn returns the figures of the check of one sentence, which stands beside others that state nothing.
func claimsIn(t *testing.T, sentence string) summary.Claims {
	t.Helper()
	a, err := summary.Accept(tagged("- All is well\n- It goes on\n- Nothing failed\n"+sentence), claimed)
	if err != nil {
		t.Fatalf("Accept %q: %v", sentence, err)
	}
	if cut := !strings.Contains(a.Summary, strings.TrimSpace(sentence)); cut != (a.Claims.Cut > 0) {
		t.Errorf("%q: %+v, but the summary is %q", sentence, a.Claims, a.Summary)
	}
	return a.Claims
}

func TestWhatAnAnswerStatesIsInItsSource(t *testing.T) {
	t.Parallel()
	for _, sentence := range []string{
		"- 1234567 objects", "- 1,234,567 objects", "- 1 234 567 objects", "- 1'234'567 objects", "- 4,096 are cold", "- 4096 are cold",
		"- 65536 are warm", "- 250,000 hot", "- the mean is 3.14 s", "- 3.14159", "- 97.5 % pass", "- 97.50% pass",
		"- due 2026-03-14", "- due at 09:26", "- release v2.18.4", "- release 2.18.4", "- build 5f3a", "- it costs 1299 dollars", "- $1,299",
		"- listens on localhost port 5433", "- 512 MiB", "- 512MiB", "- the column `tenant_id`", "- tenant_id",
		"- src/api/server.go", "- `server.go` was read", "- api/server.go", "- see https://example.com/a/b?c=41&d=e", "- mail ops@example.com",
		"- commit 9fceb02", "- commit 9FCEB02D0AE5", "- commit 9fceb02d0ae598e95dc970b74767f19372d61af8", "- calls `pool.Acquire(ctx)`", "- `pool.Acquire`",
		"- /srv/app", "- /srv/app/src/api/server.go", `- C:\Users\ada\notes.txt`, "- PAY-1182 is open", "- pay-1182", "- req_8fk2ls9d",
		"- port 8443", "- 端口8443已打开", "- 3600 yuan", "- 2027년", "- 7500 riyal", "- بميزانية ٧٥٠٠ ريال",
		"- mcp_read_rows was called", "- call_77aX", "- docs/guide.md", "- résumé of 88 rows, then 99", "- r9.2-1f3c has it", "- the picture has 48213 bytes",
		"- build number 90125", "- LDG-4471",
		"- see m31-98", "- m57 says so", "- [57] says so", "- messages 31 to 98", "- in message 40",
		"- 3 of 20 tests", "12. a list", "- it is 5 m long", "- no claims at all: just words and/or more words, e.g. these",
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if c := claimsIn(t, sentence); c.Unsupported != 0 {
				t.Errorf("%q: %+v", sentence, c)
			}
		})
	}
}

func TestWhatIsNotInTheSourceIsCut(t *testing.T) {
	t.Parallel()
	for _, sentence := range []string{
		"- 1234568 objects", "- 1,234,568 objects", "- 4097 are cold", "- 21 things", "- the mean is 3.15 s", "- 3.1416", "- 98.5 % pass",
		"- due 2026-03-15", "- due at 09:27", "- release v2.18.5", "- release 2.17", "- port 5434", "- 513MiB", "- user_id counts",
		"- src/api/client.go", "- src/web/server.go", "- see https://example.com/a/c", "- see https://evil.example/?c=41", "- mail root@example.com",
		"- commit 9fceb03", "- commit 8fceb02d0ae5", "- calls `pool.Release(ctx)`", "- `rm -rf everything`", "- /srv/apps", "- /etc/passwd",
		`- C:\Users\bob\notes.txt`, "- PAY-1183 is open", "- req_8fk2ls9e", "- 端口8444已打开", "- 3601 yuan", "- 2028년", "- بميزانية ٧٥٠١ ريال",
		"- mcp_drop_rows was called", "- docs/guide.txt", "- r9.3-1f3c has it", "- see m31-99", "- m99 says so", "- [130] says so", "- messages 30 to 98",
		"- the hidden number is 777777", "| cell | 4098 | other |",
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			if c := claimsIn(t, sentence); c.Unsupported == 0 || c.Cut != 1 {
				t.Errorf("%q: %+v", sentence, c)
			}
		})
	}
}

func TestOnlyTheSentenceThatStatesItIsCut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ answer, want string }{
		"one sentence of four": {
			"All is well. It took 4711 steps. It goes on. Port 5433 is open.", "All is well. It goes on. Port 5433 is open.",
		},
		"the item of a list": {"## State\n- all is well\n- it took 4711 steps\n- port 5433", "## State\n- all is well\n- port 5433"},
		"the row of a table": {
			"| what | n |\n|---|---|\n| cold | 4096 |\n| hot | 4711. More |\n| port | 5433 |",
			"| what | n |\n|---|---|\n| cold | 4096 |\n| port | 5433 |",
		},
		"a line of code": {
			"```\npool.Acquire(ctx)\npool.Destroy(ctx)\ntenant_id\n```", "```\npool.Acquire(ctx)\ntenant_id\n```",
		},
		"a sentence in Chinese": {"预算为3600元。端口为9999。一切正常。继续。", "预算为3600元。一切正常。继续。"},
		"lines that are empty":  {"## State\n\nport 5433\n\n## Next\n\n- go on\n- go home\n- use 4711", "## State\n\nport 5433\n\n## Next\n\n- go on\n- go home"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := summary.Accept(tagged(tt.answer), claimed)
			if diff := cmp.Diff(tt.want, a.Summary); diff != "" || err != nil || a.Claims.Cut != 1 {
				t.Errorf("%v, %+v, summary (-want +got):\n%s", err, a.Claims, diff)
			}
		})
	}
}

// TestAnAnswerOfInventionsIsRefused cuts one sentence of three, but not two of five, and no answer loses all.
func TestAnAnswerOfInventionsIsRefused(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]error{
		"## A heading\n- good\n- good\n- 4711":                 nil,
		"## A heading\n- good\n- good\n- good\n- 4711\n- 4712": summary.ErrClaims,
		"It took 4711 steps.":                                  summary.ErrClaims,
	} {
		a, err := summary.Accept(tagged(answer), claimed)
		if !errors.Is(err, want) || a.Claims.Cut == 0 {
			t.Errorf("%q: %+v, %v; want %v", answer, a, err, want)
		}
	}
}

// TestWhatExtractWritesIsSupported takes what is certain to be supported, because no model wrote it, as answers of a
// model: of 50 claims, all but one must be found.
func TestWhatExtractWritesIsSupported(t *testing.T) {
	t.Parallel()
	var all summary.Claims
	for _, messages := range recorded(t) {
		const limit = 60 // messages that one request has
		messages = messages[:min(limit, len(messages))]
		r := summary.Request{First: 1, Last: int64(len(messages)), Messages: messages, MaxTokens: 4_000, Retain: true, MayGrow: true}
		a := summary.Extract(r)
		r.MaxTokens = 0
		got, _ := summary.Accept("<retain>"+a.Retain+"</retain>"+tagged(a.Summary), r)
		all.Stated, all.Unsupported = all.Stated+got.Claims.Stated, all.Unsupported+got.Claims.Unsupported
	}
	if all.Stated == 0 || 50*all.Unsupported > all.Stated {
		t.Errorf("%+v, want one of 50 unsupported at most", all)
	} else {
		t.Log(all)
	}
}

// BenchmarkClaimCheck checks an answer of 300 lines about sources of several sizes.
func BenchmarkClaimCheck(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			var source, answer strings.Builder
			for i := 0; source.Len() < size; i++ {
				fmt.Fprintf(&source, "2026-01-02T03:04:05Z worker-%d took job %d of internal/part%d/job.go in %d.%d ms\n", i%7, i, i%900, i%50, i)
			}
			for i := range 300 {
				fmt.Fprintf(&answer, "- job %d of internal/part%d/job.go took long\n", i, i)
			}
			r := summary.Request{Messages: []summary.Message{said("tool", source.String())}}
			b.SetBytes(int64(size))
			for b.Loop() {
				if a, err := summary.Accept(tagged(answer.String()), r); err != nil || a.Claims.Unsupported > 0 {
					b.Fatalf("%+v, %v", a.Claims, err)
				}
			}
		})
	}
}
