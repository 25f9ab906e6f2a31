package wire

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// recorded is a request that a provider answered.
type recorded struct {
	Request struct {
		URL  string `json:"url"`
		Body struct {
			Model    string            `json:"model"`
			Tools    []json.RawMessage `json:"tools"`
			Messages []json.RawMessage `json:"messages"`
			Input    json.RawMessage   `json:"input"`
			Contents []json.RawMessage `json:"contents"`
		} `json:"body"`
	} `json:"request"`
	Response struct {
		Status int `json:"status"`
	} `json:"response"`
}

// messages returns the messages that were sent, none if the body had no list.
func (r *recorded) messages() []json.RawMessage {
	var items []json.RawMessage
	_ = json.Unmarshal(r.Request.Body.Input, &items)
	return slices.Concat(r.Request.Body.Messages, items, r.Request.Body.Contents)
}

var modelInURL = regexp.MustCompile(`models/([^:/]+):`)

func (r *recorded) options() Options {
	o := Options{Model: r.Request.Body.Model}
	if m := modelInURL.FindStringSubmatch(r.Request.URL); m != nil {
		o.Model = m[1]
	}
	for range r.Request.Body.Tools {
		o.Tools = append(o.Tools, "some")
	}
	return o
}

// stricter are requests that were accepted although they break a rule, and who does refuse them.
var stricter = map[string]string{
	"pydantic-google-instructions-only-with-tool-calls.json": "V-G4 0", // an empty text: Vertex AI, Portkey-AI/gateway#462
}

// TestCorpusRequestsThatProvidersAcceptedBreakNoRule holds the rules to requests that were answered with status 200.
func TestCorpusRequestsThatProvidersAcceptedBreakNoRule(t *testing.T) {
	t.Parallel()
	folder := corpus()
	if folder == "" {
		t.Log("no recorded conversations: set VARVE_DATA to a folder of them")
		return
	}
	all := 0
	for _, f := range []session.Format{session.OpenAIChat, session.OpenAIResponses, session.Anthropic, session.Gemini} {
		files, err := filepath.Glob(filepath.Join(folder, string(f), "*.json"))
		if err != nil {
			t.Error(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var r recorded
			if json.Unmarshal(data, &r) != nil || r.Response.Status != 200 {
				continue // it is no request with its answer, or was refused
			}
			all++
			var bodies [][]byte
			for _, m := range r.messages() {
				bodies = append(bodies, m)
			}
			if found := strings.Join(named(validated(f, bodies, r.options())), ", "); found != stricter[filepath.Base(file)] {
				t.Errorf("%s: %s", file, found)
			}
			t.Logf("%s: %d messages to %q", filepath.Base(file), len(bodies), r.options().Model)
		}
	}
	t.Logf("%d requests", all)
}
