package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/varve-dev/varve/internal/clienttest"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
)

func parse(args ...string) (*commands, error) {
	var cli commands
	_, err := parser(&cli).Parse(args)
	return &cli, err
}

func TestACommandLineThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		want []string
	}{
		{
			"varve up with every setting out of its range, all reported at once",
			[]string{
				"up", "--database-connections=0", "--addr=foo", "--drain-delay=-1s", "--compactions=0", "--job-timeout=-1s", "--sweep-interval=0s",
				"--stop-timeout=-1s", "--log-level=foo", "--log-format=xml",
			},
			[]string{
				"VARVE_DATABASE_CONNECTIONS) is 0: it must be 2 to 1000", `VARVE_ADDR) is "foo"`, "VARVE_DRAIN_DELAY) is -1s", "VARVE_COMPACTIONS) is 0: it must be 1 to 1000",
				"VARVE_JOB_TIMEOUT) is -1s", "VARVE_SWEEP_INTERVAL) is 0s", "VARVE_STOP_TIMEOUT) is -1s", `VARVE_LOG_LEVEL) is "foo"`, `VARVE_LOG_FORMAT) is "xml"`,
			},
		},
		{"migrate with too few connections", []string{"migrate", "--database-connections=1"}, []string{"VARVE_DATABASE_CONNECTIONS) is 1"}},
		{"keys create with too few connections", []string{"keys", "create", "--database-connections=1"}, []string{"VARVE_DATABASE_CONNECTIONS) is 1"}},
		{"a key that has expired", []string{"keys", "create", "--expires=-1h"}, []string{"--expires is -1h0m0s"}},
		{"a tenant without a name", []string{"tenants", "create", ""}, []string{"1 to 255 bytes"}},
		{"a tenant with a long name", []string{"tenants", "create", strings.Repeat("ä", 128)}, []string{"at most 255 bytes"}},
		{"a tenant with a line end in its name", []string{"tenants", "create", "a\nb"}, []string{`of text: "a\nb" does not`}},
		{"the keys of such a tenant", []string{"keys", "list", "--tenant=\x7f"}, []string{"at most 255 bytes"}},
		{"a negative wait", []string{"compact", "s", "--wait=-1s"}, []string{`"-1s" is not a time to wait`}},
		{"a wait of words", []string{"compact", "s", "--wait=long"}, []string{`"long" is not a time to wait`}},
		{"a checkpoint of words", []string{"checkpoints", "s", "list"}, []string{`"list" is not the number of a checkpoint`}},
		{"--raw without a ref", []string{"results", "s", "--raw"}, []string{"--raw needs the ref"}},
		{"--offset without a ref", []string{"results", "s", "--offset=2"}, []string{"--offset and --char-offset need the ref"}},
		{"lines of a raw result", []string{"results", "s", "r", "--raw", "--limit=2"}, []string{"without --offset, --char-offset and --limit"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(tt.args...)
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v\nwant %q", err, want)
				}
			}
		})
	}
}

func TestWaitNeedsNoValue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		want time.Duration
	}{
		{"no --wait is none", []string{"compact", "s"}, 0},
		{"--wait alone is a minute", []string{"compact", "s", "--wait"}, time.Minute},
		{"also before the session", []string{"compact", "--wait", "s"}, time.Minute},
		{"a duration", []string{"compact", "s", "--wait=1m30s"}, 90 * time.Second},
		{"a number is seconds", []string{"compact", "s", "--wait=60"}, time.Minute},
		{"0 is none", []string{"compact", "s", "--wait=0"}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cli, err := parse(tt.args...)
			if err != nil || cli.Compact.Session != "s" || time.Duration(cli.Compact.Wait) != tt.want {
				t.Errorf("session %q, wait %s, %v; want %s", cli.Compact.Session, time.Duration(cli.Compact.Wait), err, tt.want)
			}
		})
	}
}

func TestABoundOfTheViewIsSentAsItIsGiven(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]string{"": "", "--max-tokens=0": "max_tokens=0", "--max-tokens=-1": "max_tokens=-1", "--max-tokens=9": "max_tokens=9"} {
		var got string
		api := clienttest.Of(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.URL.RawQuery
			fmt.Fprint(w, `{}`)
		})
		args := strings.Fields("context s " + flag)
		cli, err := parse(args...)
		if err != nil {
			t.Fatal(err)
		}
		if err := cli.Context.Run(t.Context(), &command.Console{API: api, Out: io.Discard}); err != nil || got != want {
			t.Errorf("%q asked for %q, want %q: %v", args, got, want, err)
		}
	}
}

func TestUpSeesThatItsAddressIsTakenBeforePostgreSQLStarts(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	out, err := program(t.Context(), "up", "--data", t.TempDir(), "--addr", listener.Addr().String()).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "another process listens there") || strings.Contains(string(out), "level=") {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = program(t.Context(), "up", "--data", t.TempDir(), "--addr", "host.invalid:80").CombinedOutput() // which no resolver may know
	if err == nil || strings.Contains(string(out), "another process") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAnOptionPrintsTheVersion(t *testing.T) {
	t.Parallel()
	out, err := program(t.Context(), "--version").Output()
	want := regexp.MustCompile(`^Varve ` + regexp.QuoteMeta(config.Version()) + ` \((commit [0-9a-f]{12}, )?go1\.\d+(\.\d+)?, schema \d+\)\n$`)
	if err != nil || !want.Match(out) {
		t.Errorf("varve --version printed %q, %v; want %s", out, err, want)
	}
}
