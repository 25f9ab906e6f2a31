package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestItServesAndTellsWhatItWasAsked(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	lines, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-addr", "127.0.0.1:0", "-faults", "1", "-kinds", "503"}, out)
		out.Close()
	}()
	said := make(chan string, 2)
	go func() { // it answers a call after it has told of it
		for scanner := bufio.NewScanner(lines); scanner.Scan(); {
			said <- scanner.Text()
		}
	}()
	first := <-said
	url, ok := strings.CutPrefix(first, "listening on ")
	if !ok {
		t.Fatalf("it says %q", first)
	}
	body := strings.NewReader(`{"model":"m","input":"x"}`)
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/responses", body)
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", "Bearer k")
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if line, want := <-said, "/v1/responses m 503 503 ("; !strings.HasPrefix(line, want) {
		t.Errorf("it says %q, want %q", line, want)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestItRefusesFaultsThatAreNone(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), []string{"-kinds", "503,nonsense"}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("error %v, want one that names the fault", err)
	}
}
