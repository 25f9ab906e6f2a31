package config

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// Main runs a process. It reads the settings from the flags args and the environment, runs them until an interrupt or
// SIGTERM ends the context, and returns the exit code. A second signal ends the process at once.
func Main(name, description string, args []string, settings interface{ Run(context.Context) error }) (exit int) {
	parsed, err := kong.Must(settings, kong.Name(name), kong.Description(description), VersionFlag()).Parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	parsed.BindTo(ctx, (*context.Context)(nil))
	if err := parsed.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}
