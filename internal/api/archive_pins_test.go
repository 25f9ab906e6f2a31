package api_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

func TestPinsOfAnArchiveThatCannotBeRestoredAreSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := user("the first")
	right := fmt.Sprintf("%x", sha256.Sum256([]byte(first)))
	m1 := session.ArchivedPin{Ref: "m1", Note: "a\x00b", SHA256: right}
	for _, step := range []struct {
		want string
		pins []session.ArchivedPin
	}{
		{"pin m9: there is nothing to pin under this ref", []session.ArchivedPin{m1, {Ref: "m9"}}},
		{"pin m1.0: the session has another message there", []session.ArchivedPin{{Ref: "m1.0", SHA256: "00"}}},
		{`pin "x": `, []session.ArchivedPin{{Ref: "x"}}},
		{"a session has 200 pins at most, not 201", slices.Repeat([]session.ArchivedPin{m1}, 201)},
	} {
		var body bytes.Buffer
		a, err := archive.Begin(&body)
		if err != nil {
			t.Fatal(err)
		}
		m := session.Message{Seq: 1, Format: session.OpenAIChat, Body: []byte(first)}
		for _, write := range []func() error{
			func() error { return a.Session(session.Exported{ID: "s", WindowTokens: 1000, Metadata: []byte("{}")}) },
			func() error { return a.Message(&m) },
			func() error { return a.End(1, nil, step.pins) },
			func() error { _, err := a.Close(); return err },
		} {
			if err := write(); err != nil {
				t.Fatal(err)
			}
		}
		got := decoded[protocol.Import](w.must(http.StatusCreated, "POST", "/v1/imports?from=varve", body.String()))
		if got.Rejected != 1 || !strings.Contains(got.Rejections[0].Detail, step.want) {
			t.Errorf("%+v, want %q", got, step.want)
		}
	}
	pins := decoded[protocol.Pins](w.must(http.StatusOK, "GET", "/v1/sessions/s/pins", ""))
	if len(pins.Data) != 1 || pins.Data[0].Text != "the first" || pins.Data[0].Note != "a\uFFFDb" {
		t.Errorf("%+v", pins)
	}
}
