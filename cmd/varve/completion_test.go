package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/test/harness"
)

func TestCompletions(t *testing.T) {
	t.Parallel()
	var cli commands
	root := parser(&cli).Model.Node
	for line, want := range map[string]string{
		"p":                                "preview pins policy",
		"tenants re":                       "rename resume retention",
		"policy set --se":                  "--session",
		"keys create --role":               "--role",
		"keys create --role a":             "",
		"keys create --tenant rev":         "",
		"keys create --tenant=acme --expi": "--expires",
		"--json runs --lim":                "--limit",
		"compact --wa":                     "--wait",
		"tenants sus":                      "suspend",
		"completion z":                     "zsh",
		"context chat-42":                  "",
		"complet":                          "completion",
		"nothing of it --x":                "",
	} {
		var words []string
		for _, c := range completions(root, strings.Split(line, " ")) {
			words = append(words, c.word)
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestShellsComplete has each shell that is there load its script and complete with it, where no varve is in the PATH.
func TestShellsComplete(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := "#!/bin/sh\n" + asVarve + "=1 exec " + os.Args[0] + ` "$@"` + "\n"
	if err := harness.WriteProgram(filepath.Join(dir, "varve"), script); err != nil {
		t.Fatal(err)
	}
	for shell, lines := range map[string]string{
		"bash": `source <(./varve completion bash); COMP_WORDS=(./varve tenants re); COMP_CWORD=2; _varve; echo "${COMPREPLY[*]}"`,
		"zsh":  `compdef() { :; }; source <(./varve completion zsh); _describe() { print -l ${(P)2%%:*}; }; words=(./varve tenants re); CURRENT=3; _varve`,
		"fish": `./varve completion fish | source; complete -C './varve tenants re'`,
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(shell); err != nil {
				t.Skip(shell + " is not there")
			}
			cmd := exec.CommandContext(t.Context(), shell, "-c", lines)
			cmd.Dir = dir
			out, err := cmd.CombinedOutput()
			if !regexp.MustCompile(`(?s)\brename\s.*\bresume\s.*\bretention\s`).Match(out) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestEveryCommandHasAnExample holds the examples to the commands: each has one, and each can be parsed.
func TestEveryCommandHasAnExample(t *testing.T) {
	var cli commands
	example := regexp.MustCompile(`(?m)^  (?:(\w+)=(\S+) )?(?:.*\| )?varve (\S.*?)(?: [|>] .*|   *.*)?$`)
	for _, leaf := range parser(&cli).Model.Leaves(true) {
		all := example.FindAllStringSubmatch(leaf.Detail, -1)
		if len(all) == 0 {
			t.Errorf("%s has no example in the examples.txt of its feature, or in help/", leaf.FullPath())
		}
		for _, found := range all {
			t.Run(found[3], func(t *testing.T) {
				if found[1] != "" {
					t.Setenv(found[1], found[2])
				}
				var of commands
				parsed, err := parser(&of).Parse(shellWords(found[3]))
				if err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{of.Policy.Explain.Name, of.Policy.Profiles.Name, profileFlag(parsed)} {
					if name != "" && !slices.Contains(policy.Profiles(), name) {
						t.Errorf("there is no profile %s", name)
					}
				}
			})
		}
	}
}

// profileFlag returns the profile that a command line names, also one of a feature's commands.
func profileFlag(parsed *kong.Context) string {
	for _, flag := range parsed.Flags() {
		if flag.Name == "profile" {
			return flag.Target.String()
		}
	}
	return ""
}

// TestTheHelpOfAllFitsAScreen: it names each command once, with the flags of all.
func TestTheHelpOfAllFitsAScreen(t *testing.T) {
	t.Parallel()
	out, err := program(t.Context(), "--help").Output()
	if err != nil || strings.Count(string(out), "\n") > 24 {
		t.Errorf("%v\n%s", err, out)
	}
	var cli commands
	all := parser(&cli).Model
	for _, c := range all.Children {
		if n := len(regexp.MustCompile(`(?m)^  \w.*\b`+c.Name+`(,|$)`).FindAll(out, -1)); n != 1 && !c.Hidden {
			t.Errorf("help/varve.txt names %s %d times", c.Name, n)
		}
	}
	for _, f := range all.Flags {
		if !strings.Contains(string(out), "--"+f.Name) && !f.Hidden {
			t.Errorf("--%s is not there", f.Name)
		}
	}
	if out, err := program(t.Context(), "tenants", "--help").Output(); err != nil || !strings.Contains(string(out), "tenants resume <tenant>") {
		t.Errorf("%v\n%s", err, out)
	}
}

// shellWords divides a line at its spaces outside quotes.
func shellWords(line string) (words []string) {
	for _, found := range regexp.MustCompile(`'([^']*)'|"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		words = append(words, found[1]+found[2]+found[3])
	}
	return words
}
