package api_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

func TestTheLogIsReadByPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"window_tokens":10000000}`)
	var sent []string
	for i := range 50 {
		size := 10
		if i%20 == 19 {
			size = 7 << 20 // three of them are more than a page may have
		}
		sent = append(sent, user(strings.Repeat("x", size+i)))
		w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", sent[i]))
	}
	type page struct {
		Data []struct {
			Seq     int64
			Message struct{ Content string }
		}
		HasMore bool   `json:"has_more"`
		NextSeq *int64 `json:"next_seq"`
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 3 {
		next, seen := int64(1), int64(0)
		for {
			p := decoded[page](w.must(http.StatusOK, "GET", fmt.Sprintf("/v1/sessions/s/messages?from_seq=%d&to_seq=49&limit=%d", next, 1+random.IntN(30)), ""))
			for _, m := range p.Data {
				if seen++; m.Seq != seen || user(m.Message.Content) != sent[seen-1] {
					t.Fatalf("message %d came at the place of %d", m.Seq, seen)
				}
			}
			if p.HasMore != (p.NextSeq != nil) {
				t.Fatalf("%+v", p)
			}
			if !p.HasMore {
				break
			}
			next = *p.NextSeq
		}
		if seen != 49 {
			t.Errorf("%d messages of 49 came", seen)
		}
	}
	large := w.must(http.StatusOK, "GET", "/v1/sessions/s/messages?limit=1000", "")
	if large.Body.Len() > 17<<20 {
		t.Errorf("a page of %d bytes", large.Body.Len())
	}
	beyond := decoded[page](w.must(http.StatusOK, "GET", "/v1/sessions/s/messages?from_seq=51", ""))
	if len(beyond.Data) > 0 || beyond.HasMore {
		t.Errorf("behind the end: %+v", beyond)
	}
	for _, wrong := range []string{"from_seq=0", "to_seq=0", "limit=1001", "from_seq=a"} {
		w.must(http.StatusUnprocessableEntity, "GET", "/v1/sessions/s/messages?"+wrong, "")
	}
}
