package config

import (
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// version is set by the linker where a build has no version control: -ldflags "-X <this package>.version=0.1.0".
var version string

// Version returns the version of the program: what the linker set, else that of the module or the revision that Go
// recorded, else "unknown".
func Version() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case version != "":
		return version
	case !ok:
		return "unknown"
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}

// VersionFlag adds --version to a command line: it prints the version and ends the program.
func VersionFlag() kong.Option {
	flag := &struct {
		Version kong.VersionFlag `help:"Print the version and exit."`
	}{}
	return kong.OptionFunc(func(k *kong.Kong) error {
		if err := (kong.Vars{"version": Version()}).Apply(k); err != nil {
			return err
		}
		return kong.Embed(flag).Apply(k)
	})
}
