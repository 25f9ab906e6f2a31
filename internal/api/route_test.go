package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func TestAParameterThatARouteDoesNotKnowIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(http.StatusCreated, "PUT", "/v1/sessions/s", `{"format":"openai-chat"}`)
	names := strings.NewReplacer(":id", "s", ":ref", "r1.0-abcd", ":n", "1", ":tenant", w.tenant.String())
	for _, route := range w.server.Routes() {
		method, path, _ := strings.Cut(route, " ")
		if !strings.HasPrefix(path, "/v1/") {
			continue
		}
		got := w.ask(method, parameter.ReplaceAllString(names.Replace(path), uuid.NewString())+"?zz=1", "")
		if got.Code != http.StatusBadRequest || method != "HEAD" && decoded[problem](got).Error.Code != "unknown_field" {
			t.Errorf("%s: %d %s", route, got.Code, got.Body)
		}
	}
}
