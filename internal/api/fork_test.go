package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

type forked struct {
	ID         string
	LastSeq    int64 `json:"last_seq"`
	Checkpoint int
	Metadata   map[string]string
	Policy     struct{ Target float64 }
	ForkedFrom *session.ForkedFrom `json:"forked_from"`
}

// TestAForkHasTheViewOfThen forks a compacted session at every seq of its tail and at some before it, without and with a
// checkpoint, in the middle of calls, and reads the views byte for byte.
func TestAForkHasTheViewOfThen(t *testing.T) {
	bothFormats(t, func(w *world, format, path string) {
		last := decoded[view](w.must(http.StatusOK, "GET", path+"/context", "")).LastSeq
		same := 0
		for _, seq := range []int64{1, 3, 4, 9, last - 4, last - 3, last - 2, last - 1, last} {
			id := fmt.Sprint("fork-", seq)
			made := decoded[forked](w.must(http.StatusCreated, "POST", path+"/fork", fmt.Sprintf(`{"id":%q,"seq":%d}`, id, seq)))
			if made.LastSeq != seq || made.ForkedFrom == nil || made.ForkedFrom.Session != format || made.ForkedFrom.Seq != seq {
				t.Errorf("the fork at %d is %+v", seq, made)
			}
			want := w.ask("GET", fmt.Sprintf("%s/context?as_of_seq=%d", path, seq), "")
			got := w.ask("GET", fmt.Sprintf("/v1/sessions/%s/context?as_of_seq=%d", id, seq), "") // it may be compacted by now
			mine := strings.Replace(want.Body.String(), fmt.Sprintf(`{"session":%q`, format), fmt.Sprintf(`{"session":%q`, id), 1)
			if want.Code == http.StatusOK {
				same++
				if got.Body.String() != mine || made.Checkpoint != made.ForkedFrom.Checkpoint {
					t.Errorf("the fork at %d of %+v has the view\n%s\nand not\n%s", seq, made.ForkedFrom, got.Body, mine)
				}
			}
			log := w.must(http.StatusOK, "GET", fmt.Sprintf("%s/messages?limit=1000&to_seq=%d", path, seq), "").Body.String()
			if mine := w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/messages?limit=1000", "").Body.String(); mine != log {
				t.Errorf("the log of the fork at %d is\n%s\nand not\n%s", seq, mine, log)
			}
			w.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", batch(format, user("and now?")))
		}
		if same < 6 {
			t.Errorf("only %d views could be compared", same)
		}
		if after := decoded[view](w.must(http.StatusOK, "GET", path+"/context", "")).LastSeq; after != last {
			t.Errorf("an append to a fork went to the session: %d is %d", last, after)
		}
	})
}

func TestAForkHasTheSettingsOfItsSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"metadata":{"user":"u1"},"window_tokens":50000,"policy":{"target":0.3}}`)
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("a"), user("b"), user("c")))
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/pins/m2", "")
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/pins/m3", "")
	made := decoded[forked](w.must(http.StatusCreated, "POST", "/v1/sessions/s/fork?include=policy", `{"seq":2}`))
	if made.Metadata["user"] != "u1" || made.Policy.Target != 0.3 || made.ForkedFrom.Seq != 2 || made.ID == "" {
		t.Errorf("the fork is %+v", made)
	}
	pins := decoded[struct{ Data []session.Pin }](w.must(http.StatusOK, "GET", "/v1/sessions/"+made.ID+"/pins", ""))
	if len(pins.Data) != 1 || pins.Data[0].Ref != "m2" {
		t.Errorf("its pins are %+v", pins.Data)
	}
	w.must(http.StatusOK, "PATCH", "/v1/sessions/s", `{"policy":{"target":0.4}}`)
	now := decoded[forked](w.must(http.StatusOK, "GET", "/v1/sessions/"+made.ID+"?include=policy", ""))
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/s", "")
	if now.Policy.Target != 0.3 {
		t.Errorf("the policy of the fork became that of its session: %v", now.Policy.Target)
	}
	w.must(http.StatusOK, "GET", "/v1/sessions/"+made.ID+"/context", "")
	w.must(http.StatusNoContent, "DELETE", "/v1/sessions/"+made.ID, "")
}

func TestAForkHasWhatWasRemovedOnlyLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	array := func(texts ...string) string {
		list := make([]string, len(texts))
		for i, text := range texts {
			list[i] = user(text)
		}
		ids, _ := json.Marshal(texts)
		return fmt.Sprintf(`{"format":"openai-chat","messages":[%s],"client_ids":%s}`, strings.Join(list, ","), ids)
	}
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", array("a", "b", "c"))
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/messages", array("a", "x"))      // 4 supersedes b and c, x is 5
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/messages", array("a", "x", "b")) // b is 6
	w.must(http.StatusOK, "PUT", "/v1/sessions/s/messages", array("a", "y"))      // 7, and y is 8
	for seq, want := range map[int]string{2: "ab", 3: "abc", 5: "ax", 6: "axb", 8: "ay"} {
		made := decoded[forked](w.must(http.StatusCreated, "POST", "/v1/sessions/s/fork", fmt.Sprintf(`{"seq":%d}`, seq)))
		v := decoded[struct {
			Tokens   int64
			Messages []struct{ Content string }
		}](w.must(http.StatusOK, "GET", "/v1/sessions/"+made.ID+"/context", ""))
		got := ""
		for _, m := range v.Messages {
			got += m.Content
		}
		if got != want || v.Tokens != int64(len(want))*5 {
			t.Errorf("the fork at %d has %s with %d tokens, not %s", seq, got, v.Tokens, want)
		}
		if seq == 3 { // its own messages have the client ids now
			w.must(http.StatusOK, "POST", "/v1/sessions/"+made.ID+"/messages", array("b"))
		}
	}
}

func TestAForkIsMadeOnceOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", "")
	w.must(http.StatusCreated, "POST", "/v1/sessions/s/messages", batch("openai-chat", user("a"), user("b")))
	key := []string{"Idempotency-Key", "k"}
	first := w.must(http.StatusCreated, "POST", "/v1/sessions/s/fork", `{}`, key...)
	again := w.must(http.StatusCreated, "POST", "/v1/sessions/s/fork", `{}`, key...)
	if decoded[forked](first).ID != decoded[forked](again).ID || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("with its key it was made twice: %s, %s", first.Body, again.Body)
	}
	w.must(http.StatusConflict, "POST", "/v1/sessions/s/fork", `{"id":"s"}`)
	for body, want := range map[string]string{`{"seq":3}`: "/seq: the session's last seq is 2, not 3", `{"seq":0}`: "/seq", `{"id":""}`: "/id", `{"at":1}`: "at"} {
		if a := w.ask("POST", "/v1/sessions/s/fork", body); a.Code != http.StatusUnprocessableEntity && a.Code != http.StatusBadRequest || !strings.Contains(a.Body.String(), want) {
			t.Errorf("%s: %s", body, a.Body)
		}
	}
	w.must(http.StatusNotFound, "POST", "/v1/sessions/none/fork", "")
	_, stranger := w.newTenant("stranger")
	w.must(http.StatusNotFound, "POST", "/v1/sessions/s/fork", "", "Authorization", "Bearer "+stranger)
	empty := decoded[forked](w.must(http.StatusCreated, "PUT", "/v1/sessions/empty", ""))
	made := decoded[forked](w.must(http.StatusCreated, "POST", "/v1/sessions/empty/fork", ""))
	if made.LastSeq != empty.LastSeq || made.ForkedFrom == nil {
		t.Errorf("the fork of an empty session is %+v", made)
	}
}
