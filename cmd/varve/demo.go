package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/demo"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/terminal"
)

type demoCommand struct {
	config.LLM `embed:""`

	Files []string `arg:"" optional:"" name:"file" help:"Conversations of your own; three samples if not given."`
	Stays bool     `name:"console" help:"Stay up in the end, and print a link that signs in to the console once."`
}

// Help returns what is shown below the flags.
func (c *demoCommand) Help() string { return helpText("demo") }

// Validate returns an error for files that would end up in one session, and for models that cannot be.
func (c *demoCommand) Validate() error {
	return errors.Join((&importCommand{Files: c.Files}).Validate(), c.LLM.Validate())
}

// Run demonstrates; the report goes to standard output, progress to standard error.
func (c *demoCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	dir := filepath.Join(settings.Data, "demo")
	if err := emptyDemo(ctx, dir); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "starting PostgreSQL, API and worker in %s\n", dir)
	if err := c.serve(ctx, dir, out); err != nil {
		if ctx.Err() != nil {
			return ctx.Err() // interrupted: what failed because of it is of no use
		}
		return fmt.Errorf("%w\n(the log is in %s)", err, filepath.Join(dir, "varve.log"))
	}
	return nil
}

// serve runs all of Varve in dir for as long as the demonstration takes.
func (c *demoCommand) serve(ctx context.Context, dir string, out io.Writer) (err error) {
	logFile, err := os.Create(filepath.Join(dir, "varve.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, logFile.Close()) }()
	ctx, done := context.WithCancel(ctx)
	defer done()
	all := everything{
		Database: config.Database{Connections: 8},
		API:      config.API{Addr: "127.0.0.1:0", Console: "on", SignIn: rand.Text()},
		LLM:      c.LLM,
		Worker: config.Worker{
			Compactions: 2, JobTimeout: time.Minute, SweepInterval: 5 * time.Second, StopTimeout: 10 * time.Second,
		},
	}
	log := slog.New(slog.NewTextHandler(logFile, nil))
	return all.serve(ctx, dir, log, func(ctx context.Context, addr net.Addr, keyFile string) error {
		defer done()
		to, err := connect(&config.Client{URL: "http://" + addr.String(), Data: filepath.Dir(keyFile)}, out)
		if err != nil {
			return err
		}
		if err := c.show(ctx, to, dir); err != nil || !c.Stays {
			return err
		}
		fmt.Fprintf(os.Stderr, consoleLink, addr, all.SignIn)
		<-ctx.Done()
		return nil
	})
}

// show imports the files and demonstrates with them. A file that cannot be imported does not keep the others from being
// shown.
func (c *demoCommand) show(ctx context.Context, to *command.Console, dir string) error {
	files := c.Files
	if len(files) == 0 {
		var err error
		if files, err = demo.WriteSamples(filepath.Join(dir, "samples")); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "importing %s\n", terminal.Count(len(files), "file"))
	asked := importCommand{Files: files, Rejected: filepath.Join(dir, "import"), WindowTokens: demo.Window}
	model, err := c.LLM.Asked()
	if err != nil {
		return err
	}
	run := newImportRun(&asked, to.API, demo.Policy(model))
	problems := run.all(ctx)
	run.progress.Finish()
	if err := run.print(to.Out, os.Stderr, false); err != nil {
		return err
	}
	d := demo.Demo{
		Dir: dir, API: to.API, Out: to.Out, Notes: os.Stderr, Model: model,
		Width: min(max(terminal.Width(os.Stdout, 120), 60), 160),
	}
	for i := range run.files {
		if file := &run.files[i]; file.Error == "" {
			problems = append(problems, d.Add(ctx, file.File))
		}
	}
	problems = append(problems, d.Run(ctx))
	return errors.Join(problems...)
}

// emptyDemo removes what an earlier demonstration left, and nothing else.
func emptyDemo(ctx context.Context, dir string) error {
	if err := embedded.Remove(ctx, dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, name := range []string{"varve.log", "samples", "import"} { // all there is if PostgreSQL never started
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s holds %s, which is not from a demonstration: move it away or choose another --data",
			dir, entries[0].Name())
	}
	return os.MkdirAll(dir, 0o755)
}
