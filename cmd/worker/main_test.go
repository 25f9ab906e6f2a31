package main

import (
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestEverythingWrongIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := kong.Must(&settings{}).Parse([]string{"--database-url=", "--compactions=0", "--database-connections=0", "--log-level=foo"})
	for _, want := range []string{"DATABASE_URL is not set", "VARVE_COMPACTIONS", "VARVE_DATABASE_CONNECTIONS", "VARVE_LOG_LEVEL"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
