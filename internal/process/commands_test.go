package process_test

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/varve-dev/varve/internal/process"
)

func TestEverythingWrongIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	for setting, c := range map[string]struct {
		command any
		flag    string
	}{
		"VARVE_ADDR":        {&process.APICommand{}, "--addr=foo"},
		"VARVE_COMPACTIONS": {&process.WorkerCommand{}, "--compactions=0"},
	} {
		_, err := kong.Must(c.command).Parse([]string{"--database-url=", c.flag, "--database-connections=0", "--log-level=foo"})
		for _, want := range []string{"DATABASE_URL is not set", setting, "VARVE_DATABASE_CONNECTIONS", "VARVE_LOG_LEVEL"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v\nwant %s", err, want)
			}
		}
	}
}
