package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/google/uuid"
	"github.com/schollz/progressbar/v3"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/session"
)

// archiving are the arguments of a command that archives a session, or restores it.
type archiving struct {
	Session string `arg:"" help:"Session id."`
	Detach  bool   `help:"Do not wait for the end."`
}

// run calls a route, waits with a bar on a terminal, and prints the archive. An interrupt leaves the worker at it.
func (c *archiving) run(ctx context.Context, to *command.Console, route client.Route[session.Archive]) error {
	a, err := route.With(ctx, to.API, client.Options{Key: uuid.NewString()}, c.Session)
	if err == nil && !c.Detach {
		a, err = followArchive(ctx, to.API, a, os.Stderr)
	}
	if err != nil {
		return err
	}
	return to.Print(named("archive"), a.Raw, &a.Value)
}

type sessionsArchiveCommand struct {
	archiving `embed:""`
}

// Run archives the session, and prints its archive.
func (c *sessionsArchiveCommand) Run(ctx context.Context, to *command.Console) error {
	return c.run(ctx, to, client.ArchiveSession)
}

type sessionsUnarchiveCommand struct {
	archiving `embed:""`
}

// Run restores the session, and prints what its archive was.
func (c *sessionsUnarchiveCommand) Run(ctx context.Context, to *command.Console) error {
	return c.run(ctx, to, client.UnarchiveSession)
}

type sessionsArchivedCommand struct {
	Limit int `default:"100" help:"How many to list."`
}

// Run prints the archives.
func (c *sessionsArchivedCommand) Run(ctx context.Context, to *command.Console) error {
	return showList(ctx, to, "archives", client.ListArchives, c.Limit)
}

// followArchive waits until a session is archived, or back, and shows how far that is.
func followArchive(
	ctx context.Context, api *client.Client, a client.Answer[session.Archive], out *os.File,
) (client.Answer[session.Archive], error) {
	shown := command.NewMeter(out, -1, progressbar.OptionShowCount())
	defer shown.Finish()
	id, back := a.Value.Session, a.Value.State == session.Restoring
	for a.Value.State == session.Archiving || a.Value.State == session.Restoring {
		v := &a.Value
		line := fmt.Sprintf("%s: %d rows", v.State, v.DoneRows)
		if v.Error != nil {
			line += ", it will be tried again: " + *v.Error
		}
		shown.Update(v.DoneRows, max(v.Rows, v.DoneRows+1), string(v.State), line)
		err := api.Sleep(ctx, command.FollowEvery)
		if err == nil {
			var next client.Answer[session.Archive]
			next, err = client.ReadArchive.Call(ctx, api, id)
			if gone := (*client.Error)(nil); back && errors.As(err, &gone) && gone.Status == http.StatusNotFound {
				a.Value.State, a.Value.DoneRows = session.Restored, a.Value.Rows
				return a, nil
			}
			if err == nil {
				a = next
			}
		}
		if err != nil {
			return a, fmt.Errorf("session %s: the worker continues without this command: %w", id, err)
		}
	}
	return a, nil
}
