package wire_test

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

var views = flag.Int("views", 100, "how many random views TestEveryRandomViewIsValid renders; make soak has 50000")

// models are those whose providers mind other things than most.
var models = []string{"", "", "claude-sonnet-4-5", "anthropic/claude-opus-4-6", "mistral-large-latest", "gemini-2.5-pro", "gemini-3-pro",
	"groq/openai/gpt-oss-120b", "deepseek-reasoner", "deepseek-chat", "qwen3-max", "hosted_vllm/my-model", "cerebras/llama", "gpt-5", "us.anthropic.claude-sonnet-4-5"}

// TestEveryRandomViewIsValid renders conversations with everything that agents get wrong, of several formats one after
// another, cut anywhere, in all formats.
func TestEveryRandomViewIsValid(t *testing.T) {
	t.Parallel()
	const chunks = 8
	for chunk := range chunks {
		t.Run(fmt.Sprint(chunk), func(t *testing.T) {
			t.Parallel()
			for seed := chunk; seed < *views && !t.Failed(); seed += chunks {
				rng := rand.New(rand.NewPCG(uint64(seed), 7))
				checkViews(t, seed, randomView(rng), rng)
			}
		})
	}
}

// randomView returns a view that one to three clients wrote, each in its format.
func randomView(rng *rand.Rand) (view []wire.Stored) {
	for range 1 + rng.IntN(3) {
		f := session.Formats()[rng.IntN(len(session.Formats()))]
		options := compacttest.Options{Messages: 1 + rng.IntN(12), ResultTokens: 5, Wild: rng.IntN(5) > 0}
		said := renameRandomly(rng, compacttest.Session(rng, f, options))
		if rng.IntN(2) == 0 {
			said = said[:1+rng.IntN(len(said))]
		}
		for _, body := range said {
			view = append(view, wire.Stored{Format: f, Body: body, Seq: int64(len(view) + 1)})
		}
	}
	return view
}

func checkViews(t *testing.T, seed int, view []wire.Stored, rng *rand.Rand) {
	t.Helper()
	pendings := []wire.Pending{wire.KeepPending, wire.SynthesizePending, wire.DropPending}
	o := wire.Options{Model: models[rng.IntN(len(models))], Author: models[rng.IntN(len(models))], Pending: pendings[rng.IntN(3)]}
	for _, target := range session.Formats() {
		made := wiretest.Render(target, view, o)
		for _, v := range wiretest.Validate(target, made.Bodies, o) {
			t.Errorf("seed %d, %s: message %d breaks %s: %s\n%s\nof\n%s", seed, target, v.Message, v.Rule, v.Detail,
				made.Bodies[v.Message], bytes.Join(made.Bodies[:v.Message], []byte("\n")))
			return
		}
		twice := wiretest.Render(target, view, o)
		if !slices.EqualFunc(made.Bodies, twice.Bodies, bytes.Equal) || !slices.Equal(made.Repairs, twice.Repairs) {
			t.Errorf("seed %d, %s: the same view is rendered in two ways", seed, target)
			return
		}
		again := stored(target, made.Bodies)
		if _, ok := wire.CompactionIn(target, again, o); ok { // in a view of a view more may be before it that is not needed
			continue
		}
		if err := same(made.Bodies, wiretest.Render(target, again, o)); err != nil {
			t.Errorf("seed %d, %s: what was rendered is rendered otherwise: %v", seed, target, err)
			return
		}
	}
}

func show(view []wire.Stored) string {
	var b bytes.Buffer
	for _, m := range view {
		fmt.Fprintf(&b, "%d %s %s\n", m.Seq, m.Format, m.Body)
	}
	return b.String()
}

func stored(f session.Format, bodies [][]byte) []wire.Stored {
	list := make([]wire.Stored, len(bodies))
	for i, body := range bodies {
		list[i] = wire.Stored{Format: f, Body: body, Seq: int64(i + 1)}
	}
	return list
}

// same wants a rendition of bodies, every one of which is JSON, to be those bytes, without repairs.
func same(bodies [][]byte, got *wire.Rendition) error {
	if len(got.Repairs) > 0 {
		return fmt.Errorf("repair %+v", got.Repairs[0])
	}
	if len(got.Bodies) != len(bodies) {
		return fmt.Errorf("%d messages are %d", len(bodies), len(got.Bodies))
	}
	for i := range bodies {
		if err := rawjson.Check(bodies[i], rawjson.Limits{}); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
		if !bytes.Equal(bodies[i], got.Bodies[i]) {
			return fmt.Errorf("message %d is\n%s\nafter\n%s", i, got.Bodies[i], bodies[i])
		}
	}
	return nil
}

// TestAViewInItsOwnFormatKeepsItsBytes renders what is well-formed: nothing may change.
func TestAViewInItsOwnFormatKeepsItsBytes(t *testing.T) {
	t.Parallel()
	for _, f := range session.Formats() {
		for seed := range uint64(50) {
			bodies := compacttest.Session(rand.New(rand.NewPCG(seed, 3)), f, compacttest.Options{Messages: 30})
			model := "gemini-2.5-pro"
			if f == session.AISDK { // there, Google wants calls directly after the user
				model = "gpt-5"
			}
			made := wiretest.Render(f, stored(f, bodies), wire.Options{Model: model})
			if f == session.Gemini && len(made.Bodies) == len(bodies)+1 {
				made.Bodies, made.Repairs = made.Bodies[:len(bodies)], made.Repairs[:len(made.Repairs)-1] // the user's word at the end
			}
			if err := same(bodies, made); err != nil {
				t.Fatalf("%s, seed %d: %v", f, seed, err)
			}
		}
	}
}

// TestASignatureOfGooglesSurvivesTheAISDK wants a call that came by way of the AI SDK to have the signature that it
// had.
func TestASignatureOfGooglesSurvivesTheAISDK(t *testing.T) {
	t.Parallel()
	view := stored(session.AISDK, [][]byte{
		[]byte(`{"id":"1","role":"user","parts":[{"type":"text","text":"go"}]}`),
		[]byte(`{"id":"2","role":"assistant","parts":[{"type":"tool-f","toolCallId":"c","input":{},"state":"output-available","output":"x","callProviderMetadata":{"google":{"thoughtSignature":"c2ln"}}}]}`),
	})
	made := wiretest.Render(session.Gemini, view, wire.Options{Model: "gemini-3-pro"})
	if len(made.Repairs) > 0 || !bytes.Contains(made.Bodies[1], []byte(`"thoughtSignature":"c2ln"`)) {
		t.Errorf("repairs %v\n%s", made.Repairs, bytes.Join(made.Bodies, []byte("\n")))
	}
}

// TestAThoughtGoesBackOnlyToTheModelThatHadIt changes the model, and then only what a provider calls it.
func TestAThoughtGoesBackOnlyToTheModelThatHadIt(t *testing.T) {
	t.Parallel()
	view := stored(session.Anthropic, [][]byte{
		[]byte(`{"role":"user","content":"go"}`),
		[]byte(`{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"done"}]}`),
		[]byte(`{"role":"user","content":"on"}`),
	})
	for model, repairs := range map[string]int{"claude-sonnet-4-5": 0, "us.anthropic.claude-sonnet-4-5": 0, "claude-opus-4-6": 1} {
		o := wire.Options{Model: model, Author: "anthropic/claude-sonnet-4-5"}
		made := wiretest.Render(session.Anthropic, view, o)
		if len(made.Repairs) != repairs || len(wiretest.Validate(session.Anthropic, made.Bodies, o)) > 0 {
			t.Errorf("%s: repairs %v\n%s", model, made.Repairs, bytes.Join(made.Bodies, []byte("\n")))
		}
	}
}

// TestAResultOfNoCallStillSaysThatItFailed reads the note that stands for it.
func TestAResultOfNoCallStillSaysThatItFailed(t *testing.T) {
	t.Parallel()
	view := stored(session.Anthropic, [][]byte{[]byte(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"no","is_error":true}]}`)})
	for _, target := range session.Formats() {
		if made := wiretest.Render(target, view, wire.Options{}); !bytes.Contains(made.Bodies[0], []byte("[Error] [The result of a tool call")) {
			t.Errorf("%s: %s", target, made.Bodies[0])
		}
	}
}

// TestTheEndOfAnAnthropicViewHasNoWhiteSpace ends with what the assistant thought elsewhere, which is a text here.
func TestTheEndOfAnAnthropicViewHasNoWhiteSpace(t *testing.T) {
	t.Parallel()
	for format, last := range map[session.Format]string{
		session.OpenAIChat:      `{"role":"assistant","content":null,"reasoning_content":"hm \n"}`,
		session.OpenAIResponses: `{"type":"reasoning","summary":[{"type":"summary_text","text":"hm\u0020"}]}`,
		session.Gemini:          `{"role":"model","parts":[{"text":"hm\t","thought":true}]}`,
		session.AISDK:           `{"role":"assistant","parts":[{"type":"reasoning","text":"hm "}]}`,
		session.Anthropic:       `{"role":"assistant","content":[{"type":"thinking","thinking":"hm "}]}`,
	} {
		view := append(stored(session.Anthropic, [][]byte{[]byte(`{"role":"user","content":"go"}`)}), wire.Stored{Format: format, Body: []byte(last), Seq: 2})
		made := wiretest.Render(session.Anthropic, view, wire.Options{})
		for _, v := range wiretest.Validate(session.Anthropic, made.Bodies, wire.Options{}) {
			t.Errorf("%s breaks %s: %s", format, v.Rule, made.Bodies[v.Message])
		}
	}
}
