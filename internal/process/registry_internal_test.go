package process

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/models"
)

// until waits for what a change of the files brings.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-t.Context().Done():
			t.Fatal(what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func hasWindow(model string, want int) func() bool {
	return func() bool { return models.Of(model).Window() == want }
}

// stale returns what GET /metrics says of the file.
func stale(t *testing.T) float64 {
	t.Helper()
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "varve_models_stale" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

// It does not run beside other tests: the registry in force is one for the process, and each process that they start
// puts its own there.
func TestTheModelsOfTheOperatorAreFollowed(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ours := func(tokens string) string {
		return `{"models":[{"id":"followed","provider":"us","context_tokens":` + tokens + `,"sources":[{"of":"window","name":"us","date":"2026-01-31"}]}]}`
	}
	write("b-ours.json", ours("20000"))
	write("a-litellm.json", `{"followed":{"litellm_provider":"us","mode":"chat","max_input_tokens":5000},"from-litellm":{"litellm_provider":"us","mode":"chat","max_input_tokens":7000}}`)
	if err := useModels(t.Context(), config.Registry{ModelsFile: dir}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if !hasWindow("followed", 20_000)() || !hasWindow("from-litellm", 7_000)() {
		t.Errorf("%+v, %+v", models.Of("followed"), models.Of("from-litellm"))
	}
	write("b-ours.json", ours("30000")+" ")
	until(t, "a change is not read", hasWindow("followed", 30_000))
	write("b-ours.json", ours("40000")[:60])
	until(t, "a half-written file is not told", func() bool { return stale(t) == 1 })
	if !hasWindow("followed", 30_000)() {
		t.Error("a half-written file has changed the models")
	}
	write("b-ours.json", ours("50000")+"  ")
	until(t, "the mended file is not read", hasWindow("followed", 50_000))
	until(t, "the mended file is still said to be stale", func() bool { return stale(t) == 0 })
}
