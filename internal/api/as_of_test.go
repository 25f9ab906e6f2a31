package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/protocol"
)

// TestAViewOfBeforeIsByteForByteWhatWasReadThen notes each view of a session while it grows and is compacted, in three
// formats and two sizes, and reads all of them again in the end.
func TestAViewOfBeforeIsByteForByteWhatWasReadThen(t *testing.T) {
	bothFormats(t, func(w *world, format, path string) {
		queries := []string{"", "format=gemini", "max_tokens=3000", "fit=window&wait=0"}
		last := decoded[view](w.must(http.StatusOK, "GET", path+"/context", "")).LastSeq
		type read struct{ etag, body string }
		seen := map[string]read{}
		from := last
		for n := range 6 {
			for _, m := range turn(format, 20+n, 2, 600) {
				w.must(http.StatusCreated, "POST", path+"/messages", batch(format, m))
				last++
				for _, q := range queries {
					a := w.must(http.StatusOK, "GET", path+"/context?"+q, "")
					seen[fmt.Sprintf("as_of_seq=%d&%s", last, q)] = read{a.Header().Get("ETag"), a.Body.String()}
				}
			}
			if n%2 == 0 {
				w.must(http.StatusOK, "PATCH", path, `{"window_tokens":20000}`)
				w.must(http.StatusOK, "POST", path+"/compact?wait=20", "")
				w.must(http.StatusOK, "PATCH", path, `{"window_tokens":10000000}`)
			}
		}
		if after := decoded[view](w.must(http.StatusOK, "GET", path+"/context", "")); after.Checkpoint < 4 || after.Through <= from {
			t.Fatalf("nothing was compacted meanwhile: %d through %d", after.Checkpoint, after.Through)
		}
		w.sameUnits(path, "", last)
		w.sameUnits(path, fmt.Sprintf("as_of_seq=%d", from+3), from+3)
		for query, want := range seen {
			got := w.must(http.StatusOK, "GET", path+"/context?"+query, "")
			if got.Body.String() != want.body || got.Header().Get("ETag") != want.etag {
				t.Errorf("%s: it was %s\n%s\nand is said to have been %s\n%s", query, want.etag, want.body, got.Header().Get("ETag"), got.Body)
			}
			w.must(http.StatusNotModified, "GET", path+"/context?"+query, "", "If-None-Match", want.etag)
		}
	})
}

// sameUnits reads a view unit by unit: together they have its messages, and stand for all of the log, in order.
func (w *world) sameUnits(path, moment string, last int64) {
	w.Helper()
	whole := decoded[view](w.must(http.StatusOK, "GET", path+"/context?"+moment, ""))
	var got []json.RawMessage
	for next, covered := int64(1), int64(0); ; {
		page := decoded[protocol.ViewUnits](w.must(http.StatusOK, "GET", fmt.Sprintf("%s/context/units?%s&limit=3&from_seq=%d", path, moment, next), ""))
		for _, u := range page.Data {
			if u.First != covered+1 {
				w.Errorf("%s: a unit of %d to %d behind %d", moment, u.First, u.Last, covered)
			}
			covered = u.Last
			for _, m := range u.Messages {
				if m.Seq != nil && (*m.Seq < u.First || *m.Seq > u.Last) {
					w.Errorf("%s: message %d in a unit of %d to %d", moment, *m.Seq, u.First, u.Last)
				}
				if whole.System == nil || u.First > 1 {
					got = append(got, m.Message)
				}
			}
		}
		if page.Checkpoint != whole.Checkpoint || page.Through != whole.Through || page.LastSeq != last || page.Tokens != whole.Tokens {
			w.Errorf("%s: %+v of %+v", moment, page, whole)
		}
		if !page.HasMore {
			break
		}
		next = *page.NextSeq
	}
	if !slices.EqualFunc(got, whole.Messages, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
		w.Errorf("%s: the units have %d messages, the view %d", moment, len(got), len(whole.Messages))
	}
}

func TestAMomentThatCannotBeHadSaysWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("a"), user("b")))
	for query, want := range map[string]string{
		"as_of_seq=3": "the session's last seq is 2, not 3", "as_of_seq=0": "from 1 to", "as_of=yesterday": "must be a time",
		"as_of_seq=1&as_of=2026-01-31T12:00:00Z": "leave one of the two out", "as_of_seq=1&view=full": "leave view=full out",
		"as_of_seq=1&fit=window&wait=2": "leave wait out",
	} {
		if a := w.must(http.StatusUnprocessableEntity, "GET", "/v1/sessions/s/context?"+query, ""); !strings.Contains(a.Body.String(), want) {
			t.Errorf("%s: %s", query, a.Body)
		}
	}
	before := decoded[view](w.must(http.StatusOK, "GET", "/v1/sessions/s/context?as_of=2001-01-31T12:00:00Z", ""))
	now := decoded[view](w.must(http.StatusOK, "GET", "/v1/sessions/s/context?as_of="+time.Now().UTC().Add(time.Hour).Format(time.RFC3339), ""))
	if len(before.Messages) != 0 || len(now.Messages) != 2 {
		t.Errorf("%d messages before there were any, %d now", len(before.Messages), len(now.Messages))
	}
	w.must(http.StatusNotFound, "GET", "/v1/sessions/none/context?as_of_seq=1", "")
	_, stranger := w.newTenant("stranger")
	w.must(http.StatusNotFound, "GET", "/v1/sessions/s/context?as_of_seq=1", "", "Authorization", "Bearer "+stranger)
}

func TestTheLogIsReadFromBothEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	for n := range 9 {
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user(fmt.Sprint(n))))
	}
	type page struct {
		Data    []struct{ Seq int64 }
		NextSeq *int64 `json:"next_seq"`
	}
	for query, want := range map[string][]int64{
		"order=desc&limit=3":                           {9, 8, 7, 6}, // the last one is next_seq
		"order=desc&limit=3&to_seq=6":                  {6, 5, 4, 3},
		"order=desc&limit=3&to_seq=3":                  {3, 2, 1},
		"order=desc&before_seq=4":                      {3, 2, 1},
		"order=desc&before_seq=1":                      {},
		"order=desc&after_seq=7":                       {9, 8},
		"order=desc&from_seq=4&before_seq=7&limit=2":   {6, 5, 4},
		"after_seq=6":                                  {7, 8, 9},
		"after_seq=0&limit=2":                          {1, 2, 3},
		"before_seq=3":                                 {1, 2},
		"before_seq=1":                                 {},
		"after_seq=3&to_seq=5":                         {4, 5},
		"from_seq=4&before_seq=9&limit=2&order=asc":    {4, 5, 6},
		"order=desc&before_seq=1000001&limit=1":        {9, 8},
		"order=desc&from_seq=9&to_seq=1000001&limit=1": {9},
	} {
		p := decoded[page](w.must(http.StatusOK, "GET", "/v1/sessions/s/messages?"+query, ""))
		got := []int64{}
		for _, m := range p.Data {
			got = append(got, m.Seq)
		}
		if p.NextSeq != nil {
			got = append(got, *p.NextSeq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", query, got, want)
		}
	}
	for _, wrong := range []string{"from_seq=1&after_seq=1", "to_seq=1&before_seq=1", "order=up", "after_seq=-1"} {
		w.must(http.StatusUnprocessableEntity, "GET", "/v1/sessions/s/messages?"+wrong, "")
	}
}
