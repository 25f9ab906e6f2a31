package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/varve-dev/varve/internal/config"
)

type upCommand struct {
	everything `embed:""`
	config.Log `embed:""`
}

// Validate reports everything that is wrong at once; kong looks into embedded structs only where their names are exported.
func (u *upCommand) Validate() error { return errors.Join(u.everything.Validate(), u.Log.Validate()) }

// Run serves until the process is told to stop.
func (u *upCommand) Run(ctx context.Context, settings *config.Client) error {
	if err := os.MkdirAll(settings.Data, 0o755); err != nil {
		return err
	}
	return u.serve(ctx, settings.Data, u.Logger(), func(_ context.Context, addr net.Addr, keyFile string) error {
		fmt.Fprintf(os.Stderr, `varve is ready on http://%s
try: curl -H "Authorization: Bearer $(cat %s)" http://%s/v1/sessions
`, addr, keyFile, addr)
		return nil
	})
}
