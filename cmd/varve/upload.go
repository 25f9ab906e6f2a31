package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/varve-dev/varve/internal/importer"
	"github.com/varve-dev/varve/internal/session"
)

const (
	batchMessages = 200
	batchBytes    = 4 << 20

	// verifyMessages is how many stored messages are compared at a time before an import goes on behind them.
	verifyMessages = 1000
)

// upload brings one conversation into its session.
type upload struct {
	client   *Client
	settings json.RawMessage // body of the PUT that makes the session
	conv     importer.Conversation
	stored   func(messages, bytes int) // called after each step
}

// uploaded says what an upload did.
type uploaded struct {
	Session     string `json:"session"`
	Messages    int    `json:"messages"`     // in the file
	Appended    int    `json:"appended"`     // by this run
	LastSeq     int64  `json:"last_seq"`     // of the session
	TotalTokens int64  `json:"total_tokens"` // of the session
	Compaction  string `json:"compaction"`   // what the last append said
}

// run makes or finds the session, and appends what it does not hold yet.
func (u *upload) run(ctx context.Context) (uploaded, error) {
	var s struct {
		Format      session.Format `json:"format"`
		LastSeq     int64          `json:"last_seq"`
		TotalTokens int64          `json:"total_tokens"`
		Policy      struct {
			Cache struct {
				TTLSeconds int `json:"ttl_seconds"`
			} `json:"cache"`
		} `json:"policy"`
	}
	k := call{method: http.MethodPut, path: []string{"sessions", u.conv.ID}, body: u.settings, ok: []int{http.StatusOK, http.StatusCreated}}
	if _, err := u.client.decode(ctx, k, &s); err != nil {
		return uploaded{}, err
	}
	done := uploaded{Session: u.conv.ID, Messages: len(u.conv.Messages), LastSeq: s.LastSeq, TotalTokens: s.TotalTokens, Compaction: "none"}
	if s.LastSeq > 0 && s.Format != u.conv.Format {
		return done, &conflictError{fmt.Sprintf("session %s has format %s, the file %s; --session names another session", printable(u.conv.ID), s.Format, u.conv.Format)}
	}
	held := min(int(s.LastSeq), len(u.conv.Messages))
	if err := u.verify(ctx, held); err != nil {
		return done, err
	}
	u.stored(held, size(u.conv.Messages[:held]))
	for rest := u.conv.Messages[held:]; len(rest) > 0; {
		batch := nextBatch(rest)
		answer, err := u.append(ctx, batch, done.LastSeq)
		if err != nil {
			return done, err
		}
		done.Appended += len(batch)
		done.LastSeq, done.TotalTokens, done.Compaction = answer.LastSeq, answer.TotalTokens, string(answer.Compaction)
		u.stored(len(batch), size(batch))
		rest = rest[len(batch):]
	}
	if s.Policy.Cache.TTLSeconds > 0 && done.Appended > 0 {
		return done, u.compactCold(ctx)
	}
	return done, nil
}

// compactCold asks for the compaction that waits for a cold cache otherwise: no provider has seen what was imported. A
// session below its trigger has nothing to do.
func (u *upload) compactCold(ctx context.Context) error {
	k := call{method: http.MethodPost, path: []string{"sessions", u.conv.ID, "compact"}, ok: []int{http.StatusOK, http.StatusAccepted}}
	_, err := u.client.decode(ctx, k, &struct{}{})
	return err
}

// append adds a batch. expected_seq keeps the file's order if somebody else writes to the session; the client ids make
// the batch that was stored but not answered an answer on the second try.
func (u *upload) append(ctx context.Context, batch []importer.Message, lastSeq int64) (session.Appended, error) {
	var answer session.Appended
	k := call{
		method: http.MethodPost, path: []string{"sessions", u.conv.ID, "messages"}, body: appendBody(u.conv.Format, batch, lastSeq),
		ok: []int{http.StatusCreated, http.StatusOK},
	}
	if _, err := u.client.decode(ctx, k, &answer); err != nil {
		return answer, fmt.Errorf("messages %d to %d of session %s: %w", lastSeq+1, lastSeq+int64(len(batch)), printable(u.conv.ID), err)
	}
	return answer, nil
}

// appendBody is written by hand: encoding/json would rewrite the messages.
func appendBody(format session.Format, batch []importer.Message, lastSeq int64) []byte {
	b := make([]byte, 0, size(batch)+64*len(batch)+128)
	b = append(b, `{"format":"`+string(format)+`","expected_seq":`...)
	b = strconv.AppendInt(b, lastSeq, 10)
	b = append(b, `,"client_ids":[`...)
	for i, m := range batch {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `"`+m.ClientID+`"`...)
	}
	b = append(b, `],"messages":[`...)
	for i, m := range batch {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m.Body...)
	}
	return append(b, "]}"...)
}

func nextBatch(list []importer.Message) []importer.Message {
	bytes := 0
	for i, m := range list {
		bytes += len(m.Body)
		if i == batchMessages || i > 0 && bytes > batchBytes {
			return list[:i]
		}
	}
	return list
}

func size(list []importer.Message) int {
	n := 0
	for _, m := range list {
		n += len(m.Body)
	}
	return n
}

// verify checks that the session's messages up to held are the file's.
func (u *upload) verify(ctx context.Context, held int) error {
	for seq := int64(1); seq <= int64(held); {
		var p struct {
			Data []struct {
				Seq      int64           `json:"seq"`
				ClientID *string         `json:"client_id"`
				Message  json.RawMessage `json:"message"`
			} `json:"data"`
		}
		query := url.Values{"from_seq": {strconv.FormatInt(seq, 10)}, "to_seq": {strconv.Itoa(held)}, "limit": {strconv.Itoa(verifyMessages)}}
		if _, err := u.client.decode(ctx, call{method: http.MethodGet, path: []string{"sessions", u.conv.ID, "messages"}, query: query}, &p); err != nil {
			return err
		}
		if len(p.Data) == 0 {
			return u.differs(seq)
		}
		for _, m := range p.Data {
			want := u.conv.Messages[seq-1]
			if m.Seq != seq || m.ClientID == nil || *m.ClientID != want.ClientID || !bytes.Equal(m.Message, want.Body) {
				return u.differs(seq)
			}
			seq++
		}
	}
	return nil
}

func (u *upload) differs(seq int64) error {
	return &conflictError{fmt.Sprintf("session %s holds something else than the file from message %d on (line %d of the file): "+
		"it was written by somebody else, or the file has changed; --session names another session", printable(u.conv.ID), seq, u.conv.Messages[seq-1].Line)}
}
