package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/clienttest"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/session"
)

func TestClientReadsItsKeyFromTheDataDirectory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	settings := config.Client{URL: "http://127.0.0.1:1", Data: dir}
	if _, err := connect(&settings, io.Discard); exitCode(err) != exitAuth || !strings.Contains(err.Error(), "VARVE_KEY") {
		t.Errorf("without a key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key"), []byte("vk_x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if to, err := connect(&settings, io.Discard); err != nil || to.API.Key != "vk_x" {
		t.Errorf("with a key file: %+v, %v", to, err)
	}
	settings.Key = "vk_y"
	if to, err := connect(&settings, io.Discard); err != nil || to.API.Key != "vk_y" {
		t.Errorf("with VARVE_KEY: %+v, %v", to, err)
	}
	if got := upURL(dir); got != "http://127.0.0.1:8080" {
		t.Errorf("before a varve up: %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "url"), []byte("http://127.0.0.1:4711\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := upURL(dir); got != "http://127.0.0.1:4711" {
		t.Errorf("beside a varve up: %s", got)
	}
	for _, bad := range []string{"localhost:8080", "ftp://x", "http://", "%"} {
		if _, err := connect(&config.Client{URL: bad, Data: dir}, io.Discard); exitCode(err) != exitUsage {
			t.Errorf("URL %q: %v", bad, err)
		}
	}
}

func TestErrorsEndTheProgramWithTheirCode(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		code   int
	}{
		{"a missing session", 404, `{"code":"not_found","detail":"no such session"}`, exitNotFound},
		{"what HTTP would do", 404, `{"code":"not_found","detail":"no session: PUT /v1/sessions/{id} makes one"}`, exitNotFound},
		{"a bad key", 401, `{"code":"unauthorized","detail":"the key is unknown"}`, exitAuth},
		{"a stale seq", 412, `{"code":"stale_expected_seq","detail":"stale"}`, exitConflict},
		{"a key of another request", 422, `{"code":"idempotency_key_reused","detail":"x"}`, exitConflict},
		{"a wrong body", 422, `{"code":"invalid_request","detail":"2 members are wrong"}`, exitError},
		{"our fault", 500, `{"code":"internal","detail":"an internal error","request_id":"req_1"}`, exitError},
		{"another server's page", 502, `<html>`, exitUnavailable},
		{"too many requests", 429, `{"code":"limited","detail":"slow down"}`, exitLimited},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			api := clienttest.Of(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			})
			api.Patience = 0
			_, err := client.ReadSession.Call(t.Context(), api, "s")
			if exitCode(err) != tt.code {
				t.Errorf("%v ends with %d, want %d", err, exitCode(err), tt.code)
			}
			if got := complaint(err, false); got != "varve: "+err.Error() {
				t.Errorf("it complains %q", got)
			}
			if strings.Contains(err.Error(), "/v1/") {
				t.Errorf("it complains of a route: %v", err)
			}
			if got := complaint(err, true); json.Valid([]byte(tt.body)) && got != tt.body {
				t.Errorf("with --json: %s", got)
			}
		})
	}
	if got := complaint(errors.New("session \x1b[2J\u202e:\n\tgone"), false); got != "varve: session \ufffd[2J\ufffd:\n\tgone" {
		t.Errorf("a text that controls a terminal is shown as %q", got)
	}
	for err, want := range map[error]int{session.ErrNotFound: exitNotFound, context.Canceled: exitInterrupted, errors.New("x"): exitError} {
		if got := exitCode(err); got != want {
			t.Errorf("exitCode(%v) = %d, want %d", err, got, want)
		}
	}
}
