// Package doctor looks at an installation: what of it is wrong, and what to do.
//
// Start at Examine, which returns a finding for each thing that it has looked at. It changes nothing; whether a result
// store can be written to, it finds out by an object that it deletes again. What a database and a login must be is
// decided where the processes decide it, in packages postgres and process.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/config"
)

// Level is how much a finding matters.
type Level string

// The levels. What was not looked at is Skipped: its Text says why.
const (
	OK      Level = "ok"
	Skipped Level = "skipped"
	Warning Level = "warning"
	Failed  Level = "failed"
)

// Finding is what was found out about one thing.
type Finding struct {
	Subject string `json:"subject"`
	Level   Level  `json:"level"`
	Text    string `json:"text"`
	Todo    string `json:"todo,omitempty"` // if Text does not say it
}

// Installation is what is looked at.
type Installation struct {
	Settings error    // what is wrong with them, a line each
	Unknown  []string // variables that look like settings and are none

	Database config.Database
	Private  bool // it is the cluster of the varve up that runs on Data
	Data     string
	AdminURL string // of the operators' routes; "" if there are none
	Language config.LLM
	Unsealed bool   // the console is on, and has no secret that outlives a process
	API      string // its URL; "" if none is known
	Named    bool   // API is that of the settings, not of the varve up that runs on Data, or ran there last
}

// patience bounds what is asked of one server.
const patience = 5 * time.Second

// Examine looks at everything, as far as what it depends on is in order.
func Examine(ctx context.Context, at Installation) []Finding {
	found := settings(at)
	found = append(found, database(ctx, at)...)
	found = append(found, disks(at)...)
	found = append(found, authorities())
	found = append(found, models(ctx, at.Language)...)
	return append(found, api(ctx, at))
}

// Failures returns how many findings have failed.
func Failures(found []Finding) (n int) {
	for _, f := range found {
		if f.Level == Failed {
			n++
		}
	}
	return n
}

func settings(at Installation) (found []Finding) {
	if at.Settings != nil {
		for line := range strings.Lines(at.Settings.Error()) {
			found = append(found, Finding{"settings", Failed, strings.TrimSpace(line), ""})
		}
	}
	for _, name := range at.Unknown {
		found = append(found, Finding{"settings", Warning, name + " is set, but there is no such setting",
			"varve config lists those that there are"})
	}
	if len(found) == 0 {
		found = append(found, Finding{"settings", OK, "valid", ""})
	}
	return found
}

// failed returns the finding of an error. Errors that name what to run need no todo.
func failed(subject string, err error, todo string) Finding {
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", patience, err)
	}
	return Finding{subject, Failed, plain(err), todo}
}

// refusedTLS is what a server without TLS says, to a client that then tries without: not why that fails, too.
const refusedTLS = "server refused TLS connection"

// plain returns the text of an error. That of a connection has a line for each attempt, behind a tab.
func plain(err error) string {
	lines := strings.Split(err.Error(), "\n\t")
	told := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, refusedTLS) })
	if len(told) > 1 {
		lines = told
	}
	return strings.Join(lines, "\n")
}
