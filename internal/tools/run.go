package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/varve-dev/varve/internal/admit"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/readback"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/spelling"
)

// Runner runs calls of tools in one session.
type Runner struct {
	Store *postgres.Store
	At    session.Address
	May   func(session.Scope) bool // what the caller may do

	Memory *admit.Gate // that scans and the views of large sessions draw from
	CPU    *admit.Gate // processors, for what scans or reads much
}

// Answer is what a call returns.
type Answer struct {
	Text       string
	Structured any
	Images     []Image
	IsError    bool
	Refs       []string // what was read back
}

// Image is an image of a result.
type Image struct {
	MediaType string
	Data      []byte
}

// ErrNoTool is returned for a name that no tool has, or none that the caller may use.
var ErrNoTool = errors.New("there is no such tool")

// Run runs a call. given is a JSON object with the arguments, or a JSON string that holds one; empty for none.
//
// Errors: ErrNoTool, InvalidError for arguments, ErrNotFound for what a ref names, DamagedError, ErrBusy.
func (r *Runner) Run(ctx context.Context, name string, given []byte) (*Answer, error) {
	d := Find(name)
	if d == nil || !r.May(d.Scope) {
		names := Names(All(r.May))
		return nil, fmt.Errorf("%w: %s%s; there are %s", ErrNoTool, spelling.Shorten(name), spelling.Hint(name, names),
			strings.Join(names, ", "))
	}
	with, err := d.parse(given)
	if err != nil {
		return nil, err
	}
	weight := int64(0)
	switch name {
	case GrepResults, SearchSession, GetMessages: // how much they read shows only when they have
		weight = 1
		turn, err := r.Memory.Acquire(ctx, r.At.Tenant, min(readback.ScanMemory, r.Memory.Size()))
		if err != nil {
			return nil, err
		}
		defer turn.Done()
	}
	var answer *Answer
	err = r.CPU.Do(ctx, r.At.Tenant, weight, func() (err error) {
		answer, err = r.do(ctx, name, with)
		return err
	})
	return answer, err
}

func (r *Runner) do(ctx context.Context, name string, with arguments) (*Answer, error) {
	switch name {
	case ReadResult:
		return r.readResult(ctx, with)
	case GrepResults:
		return r.grep(ctx, with)
	case ListResults:
		return r.list(ctx, with)
	case SearchSession:
		return r.search(ctx, with)
	case GetMessages:
		return r.messages(ctx, with)
	case GetContext:
		return r.context(ctx, with)
	}
	return r.compact(ctx, with)
}

// Refused returns the answer to a call that was wrong: what was wrong, and what to do.
func Refused(name, problem string) *Answer {
	text := problem
	if d := Find(name); d != nil {
		with := d.Example
		if near := nearRef.FindStringSubmatch(problem); near != nil {
			with = `{"ref":"` + near[1] + `"}`
		}
		text = fmt.Sprintf("%s: %s. A right call is %s %s", name, strings.TrimRight(problem, "."), name, with)
	}
	return &Answer{Text: text, IsError: true}
}

// nearRef matches the first of the refs that were probably meant, in the error of a wrong one.
var nearRef = regexp.MustCompile(`; message \d+ has (?:no result, the nearest are )?([ru][0-9.]+-[0-9a-f]{4})`)

// callOf writes a call as a model reads it.
func callOf(name string, with any) string {
	encoded, err := json.Marshal(with)
	if err != nil {
		return name
	}
	return name + " " + string(encoded)
}

// readOn returns the last line of an answer that has more behind it.
func readOn(name string, with any) string { return "[There is more: " + callOf(name, with) + "]" }
