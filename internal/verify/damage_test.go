package verify_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/varve-dev/varve/internal/api"
	"github.com/varve-dev/varve/internal/session"
)

// damage is something that is done to the database behind the store's back.
type damage struct {
	sql    string   // with $1 for the session's key
	want   []string // the findings: kind and place
	remain bool     // nothing can repair it
	other  bool     // the repaired view is valid, but another
	packed bool     // the beginning of the log is in packs
}

// namedRefs are the results that the manifests of checkpoints name.
const namedRefs = `SELECT c.n, e ->> 'ref' AS ref FROM checkpoints c, jsonb_array_elements(c.manifest) e WHERE c.session_key = $1`

// namedRef is the first result that a checkpoint took out of the view.
const namedRef = `SELECT min(l.ref) FROM (` + namedRefs + `) l JOIN results r USING (ref)
	                JOIN messages m USING (session_key, seq)
	               WHERE session_key = $1 AND m.view_body IS NULL`

// storedRef is the first result with a body of its own and no other result with that body.
const storedRef = `SELECT min(r.ref) FROM results r WHERE session_key = $1
	                  AND (SELECT count(*) FROM results o WHERE o.session_key = $1 AND o.body_id = r.body_id) = 1`

// damages are done one by one to a session with four checkpoints and a tail. What the issue names comes first.
var damages = map[string]damage{
	"a message's body": {
		`UPDATE messages SET body = 'x' WHERE session_key = $1 AND seq = 3`,
		[]string{"message: message 3"}, true, false, false,
	},
	"a message's body, still JSON": {
		`UPDATE messages SET body = convert_to(replace(convert_from(body, 'UTF8'), 'o', '0'), 'UTF8')
		  WHERE session_key = $1 AND seq = 4`,
		[]string{"message: message 4"}, true, false, false,
	},
	"a message of the tail": {
		`UPDATE messages SET body = 'x' WHERE session_key = $1 AND seq = (SELECT max(seq) FROM messages WHERE session_key = $1)`,
		[]string{"message: message LAST"}, true, false, false,
	},
	"the newest checkpoint's body, cut": {
		`UPDATE checkpoints SET body = substring(body FOR octet_length(body) / 2)
		  WHERE session_key = $1 AND n = (SELECT checkpoint_n FROM sessions WHERE key = $1)`,
		[]string{"checkpoint: checkpoint NEWEST"}, false, false, false,
	},
	"an old checkpoint's body, cut": {
		`UPDATE checkpoints SET body = substring(body FOR octet_length(body) / 2) WHERE session_key = $1 AND n = 2`,
		[]string{"checkpoint: checkpoint 2"}, false, false, false,
	},
	"the newest checkpoint's body, overwritten": {
		`UPDATE checkpoints SET body = (SELECT body FROM checkpoints WHERE session_key = $1 AND n = 1)
		  WHERE session_key = $1 AND n = (SELECT checkpoint_n FROM sessions WHERE key = $1)`,
		[]string{"checkpoint: checkpoint NEWEST"}, false, false, false,
	},
	"a checkpoint's state": {
		`UPDATE checkpoints SET state = set_byte(state, octet_length(state) / 2, (get_byte(state, octet_length(state) / 2) + 1) % 256)
		  WHERE session_key = $1 AND n = (SELECT checkpoint_n FROM sessions WHERE key = $1)`,
		[]string{"state: checkpoint NEWEST"}, false, false, false,
	},
	"a checkpoint's units": {
		`UPDATE checkpoints SET units = jsonb_set(units, '{1,offset}', '7')
		  WHERE session_key = $1 AND n = (SELECT checkpoint_n FROM sessions WHERE key = $1)`,
		[]string{"units: checkpoint NEWEST"}, false, false, false,
	},
	"what a checkpoint's units stand for": {
		`UPDATE checkpoints SET units = jsonb_set(units, '{1,messages}', '100')
		  WHERE session_key = $1 AND n = (SELECT checkpoint_n FROM sessions WHERE key = $1)`,
		[]string{"coverage: checkpoint NEWEST"}, false, false, false,
	},
	"a checkpoint's validator state": {
		`UPDATE checkpoints SET validator_state = '\x0003'
		  WHERE session_key = $1 AND n = (SELECT checkpoint_n FROM sessions WHERE key = $1)`,
		[]string{"validator_state: checkpoint NEWEST, validator_state"}, false, false, false,
	},
	"a checkpoint's digest": {
		`UPDATE checkpoints SET body_digest = sha256('')
		  WHERE session_key = $1 AND n = (SELECT checkpoint_n FROM sessions WHERE key = $1)`,
		[]string{"checkpoint: checkpoint NEWEST"}, false, true, false,
	},
	"the calls that a checkpoint leaves open": {
		`UPDATE checkpoints SET open_calls = '{toolu_none}'
		  WHERE session_key = $1 AND n = (SELECT checkpoint_n FROM sessions WHERE key = $1)`,
		[]string{"validator_state: checkpoint NEWEST, open_calls"}, false, false, false,
	},
	"a checkpoint's manifest": {
		`UPDATE checkpoints SET manifest = '7' WHERE session_key = $1 AND n = 2`,
		[]string{"manifest: checkpoint 2"}, false, false, false,
	},
	"the tokens of the view": {
		`UPDATE sessions SET context_tokens = context_tokens + 1000 WHERE key = $1`,
		[]string{"counter: context_tokens"}, false, false, false,
	},
	"the bytes of the tail": {
		`UPDATE sessions SET tail_bytes = 0 WHERE key = $1`,
		[]string{"counter: tail_bytes"}, false, false, false,
	},
	"the tokens of the log": {
		`UPDATE sessions SET total_tokens = 7 WHERE key = $1`,
		[]string{"counter: total_tokens"}, false, false, false,
	},
	"the end of what the checkpoint covers": {
		`UPDATE sessions SET through_seq = through_seq - 1 WHERE key = $1`,
		[]string{"counter: through_seq"}, false, false, false,
	},
	"the pinned head": {
		`UPDATE sessions SET pinned = 5 WHERE key = $1`,
		[]string{"counter: pinned"}, false, false, false,
	},
	"a message's columns": {
		`UPDATE messages SET role = 'tool', tokens = tokens + 1 WHERE session_key = $1 AND seq = 5`,
		[]string{"columns: message 5, role, shape, tokens"}, false, false, false,
	},
	"a message is missing": {
		`DELETE FROM messages WHERE session_key = $1 AND seq = 5`,
		[]string{"missing_message: message 5"}, true, false, false,
	},
	"the last message is missing": {
		`DELETE FROM messages WHERE session_key = $1 AND seq = (SELECT max(seq) FROM messages WHERE session_key = $1)`,
		[]string{"missing_message: message LAST"}, true, false, false,
	},
	"several messages are missing": {
		`DELETE FROM messages WHERE session_key = $1 AND seq BETWEEN 5 AND 8`,
		[]string{"missing_message: messages 5 to 8"}, true, false, false,
	},
	"a message has a wrong seq": {
		`UPDATE messages SET seq = 1000 WHERE session_key = $1 AND seq = 5`,
		[]string{"extra_message: message 1000", "missing_message: message 5"}, true, false, false,
	},
	"a row too many": {
		`INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, starts_unit, body, shape)
		 SELECT tenant_id, session_key, 1000, role, format, tokens, starts_unit, body, shape
		   FROM messages WHERE session_key = $1 AND seq = 2`,
		[]string{"extra_message: message 1000"}, true, false, false,
	},
	"a result's body": {
		`UPDATE result_chunks SET body = convert_to('another body', 'UTF8'), codec = 0 WHERE session_key = $1 AND n = 0
		    AND body_id = (SELECT body_id FROM results WHERE session_key = $1 AND ref = (` + storedRef + `))`,
		[]string{"result: STORED, body BODY"}, false, false, false,
	},
	"a result's body, without its chunks": {
		`DELETE FROM result_chunks
		  WHERE session_key = $1 AND body_id = (SELECT body_id FROM results WHERE session_key = $1 AND ref = (` + storedRef + `))`,
		[]string{"result: STORED, body BODY"}, false, false, false,
	},
	"a result's body, cut": {
		`UPDATE result_chunks SET body = substring(body FOR octet_length(body) / 2) WHERE session_key = $1 AND n = 0
		    AND body_id = (SELECT body_id FROM results WHERE session_key = $1 AND ref = (` + storedRef + `))`,
		[]string{"result: STORED, body BODY"}, false, false, false,
	},
	"a chunk": {
		`UPDATE result_chunks SET body = set_byte(body, 9, (get_byte(body, 9) + 1) % 256) WHERE session_key = $1 AND n = 2`,
		[]string{"chunk: LARGE chunk 2"}, false, false, false,
	},
	"the digest of a body": {
		`UPDATE result_bodies SET sha256 = sha256('x')
		  WHERE session_key = $1 AND id = (SELECT body_id FROM result_chunks WHERE session_key = $1 AND n = 2)`,
		[]string{"result: LARGE"}, true, false, false,
	},
	"a chunk is missing": {
		`DELETE FROM result_chunks WHERE session_key = $1 AND n = 1`,
		[]string{"result: LARGE"}, false, false, false,
	},
	"where a chunk begins": {
		`UPDATE result_chunks SET line = 9 WHERE session_key = $1 AND n = 0
		    AND body_id = (SELECT body_id FROM results WHERE session_key = $1 AND ref = (` + storedRef + `))`,
		[]string{"chunk: STORED, body BODY chunk 0"}, false, false, false,
	},
	"the lines of a body": {
		`UPDATE result_bodies SET lines = lines + 1 WHERE session_key = $1
		    AND id = (SELECT body_id FROM results WHERE session_key = $1 AND ref = (` + storedRef + `))`,
		[]string{"result: STORED, body BODY"}, false, false, false,
	},
	"a result's row": {
		`UPDATE results SET bytes = bytes + 1 WHERE session_key = $1 AND ref = (` + storedRef + `)`,
		[]string{"result: message SOURCE, STORED"}, false, false, false,
	},
	"a result's row is missing": {
		`DELETE FROM results WHERE session_key = $1 AND ref = (` + namedRef + `)`,
		[]string{"ref: checkpoint FIRST, REF"}, false, false, false,
	},
	"a body that nothing names": {
		`INSERT INTO result_bodies (tenant_id, session_key, id, sha256, touched_at)
		 SELECT tenant_id, key, '00000000-0000-7000-8000-000000000001', sha256(''), now() - interval '9 days'
		   FROM sessions WHERE key = $1`,
		[]string{"orphan: body 00000000-0000-7000-8000-000000000001", "result: body 00000000-0000-7000-8000-000000000001"},
		true, false, false,
	},
	"a pack": {
		`UPDATE message_packs SET body = set_byte(body, 99, (get_byte(body, 99) + 1) % 256) WHERE session_key = $1`,
		[]string{"pack: messages 1 to PACKED, pack"}, true, false, true,
	},
	"a pack is missing": {
		`DELETE FROM message_packs WHERE session_key = $1`,
		[]string{"pack: messages 1 to PACKED, no pack"}, true, false, true,
	},
	"a chunk of what fills a hole": {
		`UPDATE result_chunks SET body = set_byte(body, 9, (get_byte(body, 9) + 1) % 256) WHERE session_key = $1 AND n = 2`,
		[]string{"chunk: LARGE chunk 2"}, true, false, true,
	},
	"what fills a hole is missing": {
		`WITH gone AS (
		   DELETE FROM result_chunks
		    WHERE body_id = (SELECT body_id FROM result_chunks WHERE session_key = $1 AND n = 2)
		   RETURNING body_id)
		 DELETE FROM result_bodies b USING gone WHERE b.id = gone.body_id`,
		[]string{"hole: message LARGESEQ", "result: message LARGESEQ, LARGEREF"}, true, false, true,
	},
	"the tokens of a message in a pack": {
		`UPDATE messages SET tokens = tokens + 1 WHERE session_key = $1 AND seq = 2`,
		[]string{"columns: message 2, tokens"}, false, false, true,
	},
	"an old checkpoint's body, when its messages are in packs": {
		`UPDATE checkpoints SET body = substring(body FOR octet_length(body) / 2) WHERE session_key = $1 AND n = 1`,
		[]string{"checkpoint: checkpoint 1"}, false, false, true,
	},
	"an old checkpoint is missing": {
		`DELETE FROM checkpoints WHERE session_key = $1 AND n = 2`,
		[]string{"missing_checkpoint: checkpoint 2"}, false, false, false,
	},
	"the newest checkpoint is missing": {
		`DELETE FROM checkpoints WHERE session_key = $1 AND n = (SELECT checkpoint_n FROM sessions WHERE key = $1)`,
		[]string{"missing_checkpoint: checkpoint NEWEST"}, false, true, false,
	},
}

func TestEveryDamageIsFoundWhereItIsAndRepairedWhereThatCanBe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, plain)
	if _, err := w.admin.Exec(t.Context(), `SET session_replication_role = replica`); err != nil { // no foreign keys
		t.Fatal(err)
	}
	recorded := withLargeResult(conversation(t, "claude-code", "entire-8e"))
	server := api.New(api.Config{Store: w.store, Log: slog.New(slog.DiscardHandler)})
	bystander := w.save("bystander", recorded, 7_000, 12, true)
	for name, d := range damages {
		id := strings.ReplaceAll(name, " ", "-")
		id = strings.ReplaceAll(strings.ReplaceAll(id, ",", ""), "'", "")
		key := w.save(id, recorded, 7_000, 12, true)
		at := session.Address{Tenant: w.tenant.ID, ID: id}
		if d.packed {
			w.offload(key)
		}
		reader := reading{w, server, w.key(), id}
		before := reader.views()
		want := w.places(key.Key, d.want)
		tag, err := w.admin.Exec(t.Context(), d.sql, key.Key)
		if err != nil || tag.RowsAffected() == 0 {
			t.Fatalf("%s: %v, %d rows", name, err, tag.RowsAffected())
		}
		if diff := cmp.Diff(want, w.found(false)); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
		reader.readsWithoutHarm(name)
		w.found(true)
		if left := w.found(false); d.remain != (len(left) > 0) {
			t.Errorf("%s: after the repair %v are left", name, left)
		}
		if !d.remain && !d.other {
			if diff := cmp.Diff(before, reader.views()); diff != "" {
				t.Errorf("%s: the repaired view is another:\n%s", name, diff)
			}
		}
		if _, err := w.store.Delete(t.Context(), at, nil); err != nil {
			t.Fatal(err)
		}
	}
	if bystander.Key == uuid.Nil {
		t.Error("no bystander")
	}
	w.clean()
}

// places fills in what a damage's findings call LAST, NEWEST, FIRST and REF.
func (w *world) places(key uuid.UUID, want []string) (filled []string) {
	w.Helper()
	var last, newest, first, ref, stored, source, body, large, largeRef, largeSeq, packed string
	err := w.admin.QueryRow(w.Context(), `
		SELECT s.last_seq::text, s.checkpoint_n::text, min(l.n)::text, r.ref
		  FROM sessions s
		  JOIN results r ON r.session_key = s.key
		  JOIN (`+namedRefs+`) l ON l.ref = r.ref
		 WHERE s.key = $1 AND r.ref = (`+namedRef+`)
		 GROUP BY s.last_seq, s.checkpoint_n, r.ref`, key).Scan(&last, &newest, &first, &ref)
	if err != nil {
		w.Fatal(err)
	}
	err = w.admin.QueryRow(w.Context(), `
		SELECT ref, seq::text, body_id::text
		  FROM results
		 WHERE session_key = $1 AND ref = (`+storedRef+`)`, key).Scan(&stored, &source, &body)
	if err != nil {
		w.Fatal(err)
	}
	err = w.admin.QueryRow(w.Context(), `
		SELECT r.ref || ', body ' || r.body_id, r.ref, r.seq::text,
		       (SELECT coalesce(max(seq), 0)::text FROM messages m WHERE m.session_key = $1 AND m.body IS NULL)
		  FROM results r
		  JOIN result_chunks c USING (session_key, body_id)
		 WHERE session_key = $1 AND c.n = 2`, key).Scan(&large, &largeRef, &largeSeq, &packed)
	if err != nil {
		w.Fatal(err)
	}
	names := strings.NewReplacer("LARGEREF", largeRef, "LARGESEQ", largeSeq, "PACKED", packed, "LAST", last, "NEWEST", newest, "FIRST", first, "REF", ref,
		"STORED", stored, "SOURCE", source, "BODY", body, "LARGE", large)
	for _, place := range want {
		filled = append(filled, names.Replace(place))
	}
	return filled
}

// reading reads a session through the HTTP API.
type reading struct {
	*world
	server http.Handler
	key    string
	id     string
}

func (r *reading) get(path, encoding string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Authorization", "Bearer "+r.key)
	request.Header.Set("Accept-Encoding", encoding)
	answer := httptest.NewRecorder()
	r.server.ServeHTTP(answer, request)
	return answer
}

// views returns the messages of the session's view and of its log.
func (r *reading) views() []string {
	r.Helper()
	var views []string
	for _, query := range []string{"", "?view=full"} {
		answer := r.get("/v1/sessions/"+r.id+"/context"+query, "identity")
		var body struct{ Messages json.RawMessage }
		if err := json.Unmarshal(answer.Body.Bytes(), &body); err != nil || answer.Code != http.StatusOK {
			r.Errorf("%s: %d: %.200s", query, answer.Code, answer.Body)
		}
		views = append(views, string(body.Messages))
	}
	return views
}

var decompressor, _ = zstd.NewReader(nil)

// readsWithoutHarm reads all of the session and holds each answer to what it promises: JSON is JSON, a digest is that
// of the bytes, damage is said to be damage, and nobody blames the database.
func (r *reading) readsWithoutHarm(of string) {
	r.Helper()
	base := "/v1/sessions/" + r.id
	paths := []string{
		"", "/context", "/context?view=full", "/context?max_tokens=4000", "/context?format=anthropic", "/messages",
		"/checkpoints", "/checkpoints/1", "/checkpoints/2", "/compactions", "/results",
	}
	var listed struct{ Data []struct{ Ref string } }
	if err := json.Unmarshal(r.get(base+"/results", "identity").Body.Bytes(), &listed); err != nil {
		r.Error(err)
	}
	for _, result := range listed.Data {
		paths = append(paths, "/results/"+result.Ref, "/results/"+result.Ref+"?raw=true")
	}
	for _, path := range paths {
		for _, encoding := range []string{"identity", "zstd"} {
			r.harmless(of, path, r.get(base+path, encoding))
		}
	}
}

func (r *reading) harmless(of, path string, answer *httptest.ResponseRecorder) {
	r.Helper()
	body := answer.Body.Bytes()
	if answer.Header().Get("Content-Encoding") == "zstd" {
		var err error
		if body, err = decompressor.DecodeAll(body, nil); err != nil {
			r.Errorf("%s: %s answers %d with a frame that does not decompress: %v", of, path, answer.Code, err)
			return
		}
	}
	isJSON := strings.Contains(answer.Header().Get("Content-Type"), "json")
	sum := sha256.Sum256(body)
	digest := answer.Header().Get("X-Content-Sha256")
	switch {
	case answer.Code == http.StatusServiceUnavailable || bytes.Contains(body, []byte("database")) && answer.Code >= 500:
		r.Errorf("%s: %s blames the database: %d %.200s", of, path, answer.Code, body)
	case answer.Code >= 500 && !bytes.Contains(body, []byte(`"damaged"`)):
		r.Errorf("%s: %s answers %d %.300s", of, path, answer.Code, body)
	case isJSON && !json.Valid(body):
		r.Errorf("%s: %s answers %d with what is no JSON: %.200s", of, path, answer.Code, body)
	case strings.Contains(path, "raw=true") && answer.Code == http.StatusOK && digest != hex.EncodeToString(sum[:]):
		r.Errorf("%s: %s has the SHA-256 %x under the digest %s", of, path, sum, digest)
	}
}
