package config

import (
	"runtime/debug"

	"github.com/alecthomas/kong"
)

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
		if err := (kong.Vars{"version": Version()}).Apply(k); err != nil {
			return err
		}
		return kong.Embed(flag).Apply(k)
	})
}
