package config

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
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

// version is set by the linker: -ldflags "-X <this package>.version=0.1.0". Makefile and Dockerfile do.
var version string

// Version returns the version of the program: the one that the linker set, else that of the module, else "devel".
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// VersionFlag adds --version to a command line: it prints the version and ends the program.
func VersionFlag() kong.Option {
	flag := &struct {
		Version kong.VersionFlag `help:"Print the version and exit."`
	}{}
	return kong.OptionFunc(func(k *kong.Kong) error {
		if err := (kong.Vars{"version": "Varve " + Version()}).Apply(k); err != nil {
			return err
		}
		return kong.Embed(flag).Apply(k)
	})
}
