package process_test

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/process"
)

// TestAnAddressInUseNamesItsSetting has a worker whose metrics' address another process has.
func TestAnAddressInUseNamesItsSetting(t *testing.T) {
	t.Parallel()
	other, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	settings := config.Worker{MetricsAddr: other.Addr().String()}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	err = process.Worker(t.Context(), settings, config.LLM{}, config.Database{}, log, func() {})
	if err == nil || !strings.Contains(err.Error(), "with --metrics-addr or VARVE_METRICS_ADDR") {
		t.Error(err)
	}
}
