package config

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/varve-dev/varve/migrations"
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

// Revision returns the commit that the program was built from, "" if that is not known.
func Revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, set := range info.Settings {
		if set.Key == "vcs.revision" {
			return set.Value
		}
	}
	return ""
}

// Description returns the version with the commit, the version of Go and that of the schema.
func Description() string {
	versions, err := migrations.Versions()
	if err != nil {
		panic(err) // the files are in the program: every test fails then
	}
	text := "Varve " + Version() + " ("
	if revision := Revision(); revision != "" {
		text += "commit " + revision[:min(12, len(revision))] + ", "
	}
	return text + runtime.Version() + ", schema " + strconv.Itoa(versions[len(versions)-1]) + ")"
}

// VersionFlag adds --version to a command line: it prints the version and ends the program.
func VersionFlag() kong.Option {
	flag := &struct {
		Version kong.VersionFlag `help:"Print the version and exit."`
	}{}
	return kong.OptionFunc(func(k *kong.Kong) error {
		if err := (kong.Vars{"version": Description()}).Apply(k); err != nil {
			return err
		}
		return kong.Embed(flag).Apply(k)
	})
}
