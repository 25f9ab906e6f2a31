package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/audit"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/postgres"
)

type auditCommand struct {
	List   auditListCommand   `cmd:"" help:"List who did what, newest first."`
	Export auditExportCommand `cmd:"" help:"Write the whole trail as lines of JSON."`
	Verify auditVerifyCommand `cmd:"" help:"Prove that no row was changed, removed or put in."`
}

type auditListCommand struct {
	Action string     `help:"Only this action, e.g. session.erase."`
	Object string     `placeholder:"ID" help:"Only what was done to this session, key, import, …"`
	Actor  *uuid.UUID `placeholder:"ID" help:"Only what this key or session token did."`
	Since  *time.Time `format:"2006-01-02T15:04:05Z07:00" help:"Only from this time on, e.g. 2026-01-31T00:00:00Z."`
	Until  *time.Time `format:"2006-01-02T15:04:05Z07:00" help:"Only before this time."`
	Limit  int        `default:"20" help:"At most this many, up to 100."`

	Operator bool `help:"The operators' own trail, with the key of one."`
}

// Run prints rows of the tenant's trail, or of the operators'.
func (c *auditListCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	query := client.Query{"action": c.Action, "object": c.Object, "limit": c.Limit}
	if c.Actor != nil {
		query["actor"] = c.Actor
	}
	for name, at := range map[string]*time.Time{"since": c.Since, "until": c.Until} {
		if at != nil {
			query[name] = at.Format(time.RFC3339)
		}
	}
	if c.Operator {
		to, err := connectOperator(settings, out)
		if err != nil {
			return err
		}
		return show(ctx, to.Console, "audit", client.OperatorsAudit, client.Options{Query: query})
	}
	to, err := connect(settings, out)
	if err != nil {
		return err
	}
	return show(ctx, to, "audit", client.Audit, client.Options{Query: query})
}

// auditSource is where a trail comes from: the API, for whom the key belongs to, or the database.
type auditSource struct {
	config.Database `embed:""`
	Operator        bool `help:"The operators' own trail, by the key of one or from the database (DATABASE_URL)."`
}

// lines hands the trail behind a row to read, as the lines of an export.
func (s *auditSource) lines(
	ctx context.Context, settings *config.Client, after int64, read func(io.Reader) error,
) error {
	if s.Operator && !wellFormedOperator(settings.Key) {
		return withStore(ctx, settings, s.Database, func(store *postgres.Store) error {
			return storedLines(ctx, store, after, read)
		})
	}
	to, err := connect(settings, io.Discard)
	if err != nil {
		return err
	}
	export := to.API.ExportAudit
	if s.Operator {
		export = to.API.ExportOperatorsAudit
	}
	lines, err := export(ctx, after)
	if err != nil {
		return err
	}
	defer lines.Close()
	return read(lines)
}

// storedLines hands the operators' trail behind a row of the database to read, as the lines of an export.
func storedLines(ctx context.Context, store *postgres.Store, after int64, read func(io.Reader) error) error {
	lines, out := io.Pipe()
	defer lines.Close()
	go func() {
		page := func(after int64, limit int) (audit.Page, error) {
			return store.TrailPage(ctx, audit.Operator, after, limit)
		}
		out.CloseWithError(audit.Copy(out, after, page))
	}()
	return read(lines)
}

type auditExportCommand struct {
	auditSource `embed:""`
	Output      string `short:"o" placeholder:"FILE" help:"File to write as a whole; standard output if not given."`
}

// Run writes the trail, and verifies it on the way.
func (c *auditExportCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	write := func(out io.Writer) error {
		return c.lines(ctx, settings, 0, func(lines io.Reader) error {
			return checkTrail(io.TeeReader(lines, out), audit.Behind(audit.Head{}), os.Stderr, false)
		})
	}
	if c.Output == "" {
		return write(out)
	}
	return replaceFile(c.Output, write)
}

type auditVerifyCommand struct {
	auditSource `embed:""`
	File        string      `arg:"" optional:"" help:"An exported trail; that of the tenant if not given."`
	After       audit.Head  `placeholder:"N:HASH" help:"Only the rows behind this head, which was kept."`
	Expect      *audit.Head `placeholder:"N:HASH" help:"A row that the trail must have."`
}

// Help returns what is shown below the flags.
func (c *auditVerifyCommand) Help() string { return helpText("audit") }

// Validate returns an error for a file that is not of the operators' trail alone, and for a row that is not looked at.
func (c *auditVerifyCommand) Validate() error {
	switch {
	case c.File != "" && (c.Operator || c.After.N > 0):
		return errors.New("a file is verified as a whole: leave --operator and --after out")
	case c.Expect != nil && c.Expect.N <= c.After.N:
		return fmt.Errorf("--expect names row %d: it must be behind row %d of --after", c.Expect.N, c.After.N)
	}
	return c.Database.Validate()
}

// Run prints each row that is not as it was written, and the head of the chain.
func (c *auditVerifyCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	chain := audit.Behind(c.After)
	chain.Expected = c.Expect
	check := func(lines io.Reader) error { return checkTrail(lines, chain, out, settings.JSON) }
	if c.File == "" {
		return c.lines(ctx, settings, c.After.N, check)
	}
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	return check(bufio.NewReader(file))
}

// checkTrail holds the lines of a trail against its chain, and prints what is wrong and the head.
func checkTrail(lines io.Reader, chain *audit.Chain, out io.Writer, asJSON bool) error {
	broken := 0
	head, err := chain.Read(lines, func(b audit.Break) error {
		broken++
		return printValue(out, asJSON, "audit break", b)
	})
	if err != nil {
		return err
	}
	if err := printValue(out, asJSON, "audit head", struct {
		Begins audit.Head `json:"begins"`
		Head   audit.Head `json:"head"`
		Wrong  int        `json:"wrong"`
	}{chain.First(), head, broken}); err != nil {
		return err
	}
	return wrong(broken)
}
