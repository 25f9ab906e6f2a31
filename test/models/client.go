package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// request is what is asked.
type request struct {
	method, path, key string
	body              any // nil for none
	idempotency       string
}

// answer is a whole answer.
type answer struct {
	status int
	body   []byte
}

// do sends a request once.
func (r *rig) do(ctx context.Context, q request) (answer, error) {
	address, ok := r.address.Load().(string)
	if !ok {
		return answer{}, errNoAPI
	}
	text, err := json.Marshal(q.body)
	if err != nil {
		return answer{}, err
	}
	if q.body == nil {
		text = nil
	}
	sent, err := http.NewRequestWithContext(ctx, q.method, "http://"+address+q.path, bytes.NewReader(text))
	if err != nil {
		return answer{}, err
	}
	sent.Header.Set("Authorization", "Bearer "+q.key)
	sent.Header.Set("Content-Type", "application/json")
	if q.idempotency != "" {
		sent.Header.Set("Idempotency-Key", q.idempotency)
	}
	response, err := r.client.Do(sent)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	whole, err := io.ReadAll(response.Body)
	return answer{response.StatusCode, whole}, err
}

// insist repeats a request until it is answered with something else than a failure.
func (r *rig) insist(ctx context.Context, q request) (answer, error) {
	var last string
	for range 600 {
		got, err := r.do(ctx, q)
		if err == nil && got.status < 500 && got.status != http.StatusTooManyRequests {
			return got, nil
		}
		last = fmt.Sprint(got.status, " ", short(got.body), " ", err)
		if sleep(ctx, 100*time.Millisecond); ctx.Err() != nil {
			return answer{}, ctx.Err()
		}
	}
	return answer{}, fmt.Errorf("%s %s is not answered: %s", q.method, q.path, last)
}

func short(text []byte) string { return string(text[:min(len(text), 400)]) }

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
