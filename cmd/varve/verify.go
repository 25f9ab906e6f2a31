package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/schollz/progressbar/v3"

	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/verify"
)

// The exit codes of varve verify.
const (
	exitFindings   = 1
	exitUnverified = 2 // it could not look at everything
)

// share is a share of all sessions on the command line: 1% or 0.01.
type share float64

// UnmarshalText reads a share.
func (s *share) UnmarshalText(text []byte) error {
	number, isPercent := strings.CutSuffix(string(text), "%")
	value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if isPercent {
		value /= 100
	}
	if err != nil || !(value > 0 && value <= 1) {
		return fmt.Errorf("%.40q is no share: it must be like 1%% or 0.01, above 0 and at most 100%%", text)
	}
	*s = share(value)
	return nil
}

type verifyCommand struct {
	config.Database `embed:""`
	Tenant          tenantName `placeholder:"NAME" help:"Only the sessions of this tenant."`
	Session         string     `placeholder:"ID" help:"Only this session (of the tenant \"default\" if none is named)."`
	Sample          share      `placeholder:"SHARE" help:"Only a share of the sessions, drawn at random, e.g. 1%."`
	Repair          bool       `help:"Rebuild derived data that is wrong; never the log."`
	Receipt         string     `placeholder:"FILE" help:"Verify a receipt, and that what it names is gone."`
	Last            bool       `help:"Do not look, but print what the worker's verification found last."`
}

// Help returns what is shown below the flags.
func (c *verifyCommand) Help() string { return helpText("verify") }

// Validate returns an error for a receipt beside what it has nothing to do with.
func (c *verifyCommand) Validate() error {
	if c.Receipt != "" && (c.Tenant != "" || c.Session != "" || c.Sample != 0 || c.Repair || c.Last) {
		return errors.New("--receipt names what is looked at: leave the other flags out")
	}
	return c.Database.Validate()
}

// Run verifies, with a bar on a terminal, and prints each finding and how much was looked at.
func (c *verifyCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	left := 0
	err := withStore(ctx, settings, c.Database, func(store *postgres.Store) (err error) {
		if c.Receipt != "" {
			return c.receipt(ctx, store, settings, out)
		}
		left, err = c.verify(ctx, store, newVerifyPrinter(settings, out))
		return err
	})
	var known *failure
	switch {
	case err == nil:
		return wrong(left)
	case errors.Is(err, context.Canceled), errors.Is(err, session.ErrNotFound), errors.As(err, &known):
		return err
	}
	return &failure{exitUnverified, err.Error()}
}

// verify returns how many findings are left.
func (c *verifyCommand) verify(ctx context.Context, store *postgres.Store, to *verifyPrinter) (left int, err error) {
	scope, err := c.scope(ctx, store)
	if err != nil {
		return 0, err
	}
	if c.Last {
		return c.last(ctx, store, scope, to)
	}
	verifier := verify.Verifier{Store: store}
	err = verifier.Run(ctx, scope, c.Repair, to.report)
	to.meter.Finish()
	if err != nil {
		return to.left, err
	}
	return to.left, to.summary()
}

// shownFindings is how many findings of a tenant are printed that the worker has found.
const shownFindings = 1000

// last prints what the periodic verification found, and how far it is.
func (c *verifyCommand) last(
	ctx context.Context, store *postgres.Store, scope verify.Scope, to *verifyPrinter,
) (left int, err error) {
	verifier := verify.Verifier{Store: store}
	for _, tenant := range scope.Tenants {
		at, err := verifier.Verification(ctx, tenant.ID)
		if err != nil {
			return to.left, err
		}
		found, err := verifier.Findings(ctx, tenant.ID, shownFindings)
		if err != nil {
			return to.left, err
		}
		var report verify.Report
		for _, f := range found {
			if c.Session == "" || f.Session == c.Session {
				report.Findings = append(report.Findings, f)
			}
		}
		if err := to.report(0, 0, &report); err != nil {
			return to.left, err
		}
		if err := printValue(to.out, to.asJSON, "verification", verification{tenant.Name, at}); err != nil {
			return to.left, err
		}
	}
	return to.left, nil
}

// verification is how far the worker's verification of a tenant is.
type verification struct {
	Tenant string `json:"tenant"`
	verify.Verification
}

func (c *verifyCommand) scope(ctx context.Context, store *postgres.Store) (scope verify.Scope, err error) {
	scope.Session, scope.Share = c.Session, float64(c.Sample)
	if c.Tenant == "" && c.Session == "" {
		scope.Operator = c.Sample == 0
		scope.Tenants, err = store.Tenants(ctx)
		return scope, err
	}
	tenant, err := store.TenantNamed(ctx, cmp.Or(string(c.Tenant), defaultTenant))
	scope.Tenants = []session.Tenant{tenant}
	return scope, err
}

// verifyPrinter prints findings as they are found: with --json each as a line of JSON, and the sums as the last one.
type verifyPrinter struct {
	out    io.Writer
	asJSON bool
	meter  command.Meter
	all    verify.Report // without findings
	found  int
	left   int
}

// newVerifyPrinter returns a printer that shows on standard error how far it is.
func newVerifyPrinter(settings *config.Client, out io.Writer) *verifyPrinter {
	shown := command.NewMeter(os.Stderr, -1, progressbar.OptionShowCount())
	return &verifyPrinter{out: out, asJSON: settings.JSON, meter: shown}
}

// report prints what was found in a session, and how far the command is: a verify.Progress.
func (p *verifyPrinter) report(done, total int64, r *verify.Report) error {
	for i := range r.Findings {
		f := &r.Findings[i]
		p.found++
		if f.Repaired == "" {
			p.left++
		}
		if err := printValue(p.out, p.asJSON, "finding", f); err != nil {
			return err
		}
	}
	sums := *r
	sums.Findings = nil
	p.all.Add(&sums)
	text := fmt.Sprintf("%s of %s sessions", thousands(done), thousands(total))
	if p.found > 0 {
		text += ", " + thingsWrong(p.found)
	}
	p.meter.Update(done, total, text, text)
	return nil
}

// verified is the last line of varve verify.
type verified struct {
	verify.Report
	Findings int `json:"findings"`
	Left     int `json:"left"` // of them, that were not repaired
}

func (p *verifyPrinter) summary() error {
	return printValue(p.out, p.asJSON, "verified", verified{Report: p.all, Findings: p.found, Left: p.left})
}

// megabytes writes a number of bytes.
func megabytes(bytes int64) string { return fmt.Sprintf("%.1f MB", float64(bytes)/1e6) }
