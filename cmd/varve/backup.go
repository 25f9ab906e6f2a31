package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/varve-dev/varve/internal/backup"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/embedded"
	"github.com/varve-dev/varve/internal/process"
	"github.com/varve-dev/varve/internal/terminal"
)

type backupCommand struct {
	config.Database `embed:""`
	File            string `arg:"" help:"The file to write, which must not exist."`
}

// Help returns what is shown below the flags.
func (c *backupCommand) Help() string { return helpText("backup") }

// Run writes the backup and prints its manifest, or what it holds in a line.
func (c *backupCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	url, err := urlFor(settings, c.Database, backupLogin)
	if err != nil {
		return err
	}
	made, err := backup.Write(ctx, c.In(url), c.File, config.Version())
	if err != nil {
		return err
	}
	if settings.JSON {
		return command.WriteJSON(out, made)
	}
	fmt.Fprintf(out, "%s holds %s rows of %d tables, as they were at %s\n",
		c.File, thousands(made.Rows()), len(made.Tables), terminal.Cell(made.At))
	if made.Outside > 0 {
		fmt.Fprintf(os.Stderr, "%s bodies of results lie in a store of their own, and only their names in the file: "+
			"back that store up now\n", thousands(made.Outside))
	}
	return nil
}

type restoreCommand struct {
	config.Database `embed:""`
	config.Owner    `embed:""`
	File            string `arg:"" help:"The file that varve backup wrote."`
}

// Help returns what is shown below the flags.
func (c *restoreCommand) Help() string { return helpText("restore") }

// Validate reports everything that is wrong at once.
func (c *restoreCommand) Validate() error {
	return errors.Join(c.Database.Validate(), c.Owner.Validate())
}

// Run restores the backup and verifies what is in the database then.
func (c *restoreCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) (err error) {
	url := cmp.Or(c.OwnerURL, c.URL)
	if url == "" {
		var cluster *embedded.Server // with := the deferred function would set another err
		if cluster, err = embedded.Start(ctx, embedded.Config{Dir: settings.Data}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, cluster.Stop(context.WithoutCancel(ctx))) }()
		url = cluster.DSNOf(embedded.Owner)
	}
	held, err := backup.Restore(ctx, c.In(url), c.File)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "restored %s rows as they were at %s; verifying them\n",
		thousands(held.Rows()), terminal.Cell(held.At))
	db := c.Database
	db.URL = url
	store, err := process.OpenStore(ctx, db)
	if err != nil {
		return err
	}
	defer store.Pool().Close()
	left, err := (&verifyCommand{}).verify(ctx, store, newVerifyPrinter(settings, out))
	if err != nil {
		return err
	}
	return wrong(left)
}
