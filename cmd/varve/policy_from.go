package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/policy/foreign"
	"github.com/varve-dev/varve/internal/session"
)

type policyFromCommand struct {
	File   string `arg:"" help:"Configuration of another system, JSON or YAML; - is standard input."`
	System string `help:"cortex, falai, llm-proxy, codelia or tool-compaction; else as the file's name has it."`
}

// Run prints the policy to out, and to standard error what became of each setting.
func (c *policyFromCommand) Run(out io.Writer) error { return c.translate(out, os.Stderr) }

func (c *policyFromCommand) translate(out, notes io.Writer) error {
	system := cmp.Or(c.System, foreign.SystemOf(c.File))
	if system == "" {
		return command.Usage(fmt.Sprintf("--system must say of which system %s is: %s", c.File,
			strings.Join(foreign.Systems(), ", ")))
	}
	file, err := command.ReadFile(c.File)
	if err != nil {
		return err
	}
	t, err := foreign.Translate(system, file)
	var invalid *session.InvalidError
	if errors.As(err, &invalid) {
		lines := []string{c.File + " is no configuration that Varve can translate:"}
		for _, p := range invalid.Problems {
			lines = append(lines, strings.TrimPrefix("  "+p.Pointer+": "+p.Detail, "  : "))
		}
		return command.Usage(strings.Join(lines, "\n"))
	}
	if err != nil {
		return err
	}
	if err := listSettings(notes, t); err != nil {
		return err
	}
	return command.WriteIndented(out, json.RawMessage(t.Patch))
}

// listSettings prints what became of each setting.
func listSettings(out io.Writer, t *foreign.Translation) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tPOLICY\tNOTE")
	for _, s := range t.Translated {
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, strings.Join(s.Fields, ", "), s.Why)
	}
	for _, s := range t.Omitted {
		fmt.Fprintf(table, "%s\tnot translated\t%s\n", s.Name, s.Why)
	}
	if t.Window > 0 {
		fmt.Fprintf(table, "\nSet \"window_tokens\": %d for each session.\n", t.Window)
	}
	return table.Flush()
}
