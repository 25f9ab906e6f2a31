package policy

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

var twoWriters = &Writers{"haiku", "mini"}

// said returns a policy's problems, each with its pointer and code; "" for none.
func said(err error) string {
	var invalid *session.InvalidError
	if !errors.As(err, &invalid) {
		return ""
	}
	var lines []string
	for _, p := range invalid.Problems {
		lines = append(lines, p.Pointer+" "+p.Code+": "+p.Detail)
	}
	return strings.Join(lines, "\n")
}

func TestAPolicyThatIsSentNamesAModelThatIsThere(t *testing.T) {
	t.Parallel()
	none := &Writers{}
	for _, c := range []struct {
		writers *Writers
		layer   string
		want    string
	}{
		{twoWriters, `{"summarise":{"model":"haiku"}}`, ""},
		{twoWriters, `{"summarise":{"model":""}}`, ""},
		{twoWriters, `{"summarise":{"model":"hiaku"}}`, `/summarise/model unknown_value: there is no model "hiaku": did you mean "haiku"?`},
		{twoWriters, `{"summarise":{"model":"gpt-9"}}`, `/summarise/model unknown_value: there is no model "gpt-9": there are haiku, mini`},
		{none, `{"summarise":{"model":"haiku"}}`, `/summarise/model unknown_value: there is no model "haiku", for the operator has configured none`},
		{nil, `{"summarise":{"model":"haiku"}}`, ""},
	} {
		if _, _, err := c.writers.Resolve(json.RawMessage(c.layer), nil, ""); !strings.HasPrefix(said(err), c.want) || c.want == "" && err != nil {
			t.Errorf("%s with %v: %v, want %q", c.layer, c.writers, err, c.want)
		}
	}
}

func TestATextThatNoModelWouldReadIsRefused(t *testing.T) {
	t.Parallel()
	const noModel = " contradiction: no model would read it, for none is asked: set summarise.model"
	for layer, want := range map[string]string{
		`{"summarise":{"prompt":"p"}}`:                                           "/summarise/prompt" + noModel,
		`{"summarise":{"summaryPrompt":"p"}}`:                                    "/summarise/summaryPrompt" + noModel,
		`{"summarise":{"directives":["d"]}}`:                                     "/summarise/directives" + noModel,
		`{"summarise":{"retain_prompt":"p"}}`:                                    "/summarise/retain_prompt" + noModel,
		`{"summarise":{"retain_directives":["d"]}}`:                              "/summarise/retain_directives" + noModel,
		`{"summarise":{"style":"codelia"}}`:                                      "/summarise/style contradiction: a style is how a model is asked, and no model is",
		`{"profile":"falai","summarise":{"model":"haiku","directives":["d"]}}`:   "/summarise/directives contradiction: no model would read it, for style falai has no place for it",
		`{"profile":"cortex","summarise":{"model":"haiku","directives":["d"]}}`:  "/summarise/directives contradiction: no model would read it, for style cortex",
		`{"profile":"cortex","summarise":{"model":"haiku","prompt":"p"}}`:        "",
		`{"summarise":{"model":"haiku","retain":false,"retain_prompt":"p"}}`:     "/summarise/retain_prompt contradiction: no model would read it, for none is asked for facts",
		`{"summarise":{"model":"nobody","prompt":"p"}}`:                          "/summarise/model unknown_value", // and nothing else
		`{"summarise":{"model":"haiku","prompt":"p","directives":["d"]}}`:        "",
		`{"profile":"falai","summarise":{"model":"haiku","prompt":"p"}}`:         "",
		`{"profile":"codelia","summarise":{"model":"mini","directives":["d"]}}`:  "",
		`{"profile":"codelia","summarise":{"retain":false}}`:                     "",
		`{"profile":"cortex"}`:                                                   "",
		`{"summarise":{"prompt":"","directives":[],"retain":true,"style":null}}`: "",
	} {
		_, _, err := twoWriters.Resolve(json.RawMessage(layer), nil, "")
		if got := said(err); !strings.HasPrefix(got, want) || (want == "") != (err == nil) || strings.Contains(got, "\n") {
			t.Errorf("%s: %v, want %q", layer, err, want)
		}
	}
}

// What is below the topmost layer, and what is stored, was sent at another time.
func TestWhatIsStoredIsNotHeldToTheModels(t *testing.T) {
	t.Parallel()
	old := json.RawMessage(`{"summarise":{"prompt":"p","model":"gone"}}`)
	if _, err := ResolveStored(old, nil, ""); err != nil {
		t.Error(err)
	}
	for _, own := range []string{`{}`, `{"trigger":0.7}`, `{"summarise":{"model":""}}`, `{"summarise":{"model":"mini"}}`} {
		if _, err := twoWriters.ResolveStored(old, json.RawMessage(own), "/policy"); err != nil {
			t.Errorf("%s: %v", own, err)
		}
	}
	_, err := twoWriters.ResolveStored(nil, json.RawMessage(`{"summarise":{"directives":["d"]}}`), "/policy")
	if !strings.HasPrefix(said(err), "/policy/summarise/directives contradiction") {
		t.Error(err)
	}
}

func TestAFieldOfAnEarlierReleaseChangesNothing(t *testing.T) {
	t.Parallel()
	p, err := Parse([]byte(`{"summarise":{"writer":"extract","max_tokens":900}}`))
	if err != nil || strings.Contains(string(p.Document()), "writer") || p.Summarise.MaxTokens != 900 {
		t.Errorf("%v: %s", err, p.Document())
	}
	for _, document := range []string{
		`{"summarise":{"writer":null}}`, `{"summarise":null}`, `{"stale":{"enabled":true,"min_tokens":9}}`, `{"wording":{"stale":"old: {ref}"}}`,
	} {
		if p, err := Parse([]byte(document)); err != nil || !reflect.DeepEqual(p, Default()) {
			t.Errorf("%s: %v: %s", document, err, p.Document())
		}
	}
	for _, document := range []string{`{"summarise":{"writer":"gpt"}}`, `{"writer":"extract"}`, `{"trim":{"writer":"extract"}}`, `{"trim":{"stale":null}}`} {
		if _, err := Parse([]byte(document)); !strings.Contains(said(err), "unknown_field") {
			t.Errorf("%s: %v", document, err)
		}
	}
}
