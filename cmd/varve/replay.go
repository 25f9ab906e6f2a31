package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/varve-dev/varve/internal/config"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replay/folder"
)

type replayCommand struct {
	Dir        string   `arg:"" help:"Folder of recorded conversations, in any format that varve import reads."`
	Policy     []string `sep:"none" placeholder:"FILE" help:"A policy to measure, under its file's name. Repeatable."`
	Profiles   string   `default:"all" help:"Profiles to measure: names with commas, all, or none."`
	Yardsticks string   `default:"all" help:"Yardsticks to measure: names with commas, all, or none."`
	Windows    []int    `default:"${replay_windows}" help:"Context windows in tokens."`
	Only       string   `help:"Measure only sessions whose name contains this."`
	Half       string   `enum:",odd,even" default:"" help:"Measure only one half of the sessions, odd or even."`
}

// Run measures the sessions of the folder and prints the tables.
func (c *replayCommand) Run(ctx context.Context, settings *config.Client, out io.Writer) error {
	contenders, err := c.contenders()
	if err != nil {
		return usageError(err.Error())
	}
	sessions, err := c.sessions()
	if err != nil {
		return err
	}
	tasks := replay.Tasks(sessions, contenders, c.Windows)
	if len(tasks) == 0 {
		return fmt.Errorf("no conversation in %s is long enough to be compacted in any of the windows", c.Dir)
	}
	outcomes, err := replay.MeasureAll(ctx, tasks, func(int) {})
	if err != nil {
		return err
	}
	report := replay.Summarise(outcomes, replay.Options{})
	if settings.JSON {
		document, err := json.Marshal(report)
		if err != nil {
			return err
		}
		return writeIndented(out, document)
	}
	return report.WriteText(out)
}

// sessions reads the sessions that the flags choose.
func (c *replayCommand) sessions() (chosen []*replay.Session, err error) {
	all, _, err := folder.Read(c.Dir)
	for _, s := range all {
		if strings.Contains(s.Name, c.Only) && (c.Half == "" || c.Half == half(s.Name)) {
			chosen = append(chosen, s)
		}
	}
	return chosen, err
}

// half returns the half that a session belongs to, which is always the same.
func half(name string) string {
	sum := fnv.New32a()
	sum.Write([]byte(name))
	if sum.Sum32()>>8%2 == 1 {
		return "odd"
	}
	return "even"
}

// contenders returns what the flags choose: the profiles, the policies, the yardsticks.
func (c *replayCommand) contenders() (list []replay.Contender, err error) {
	if c.Profiles != "none" {
		if list, err = replay.Profiles(names(c.Profiles)...); err != nil {
			return nil, err
		}
	}
	for _, file := range c.Policy {
		own, err := contenderOf(file)
		if err != nil {
			return nil, err
		}
		list = append(list, own)
	}
	yardsticks := names(c.Yardsticks)
	switch c.Yardsticks {
	case "all":
		yardsticks = replay.Yardsticks()
	case "none":
		yardsticks = nil
	}
	for _, name := range yardsticks {
		y, err := replay.Yardstick(name)
		if err != nil {
			return nil, err
		}
		list = append(list, y)
	}
	return list, uniqueNames(list)
}

// names returns the names in a list with commas, none for all.
func names(list string) []string {
	if list == "all" {
		return nil
	}
	return strings.Split(list, ",")
}

// contenderOf reads a policy, whose name is its file's.
func contenderOf(file string) (c replay.Contender, err error) {
	document, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	p, err := policy.Parse(document)
	if err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	name := filepath.Base(file)
	return replay.Under(strings.TrimSuffix(name, filepath.Ext(name)), p), nil
}

func uniqueNames(list []replay.Contender) error {
	seen := map[string]bool{}
	for _, c := range list {
		if seen[c.Name] {
			return errors.New("two contenders have the name " + c.Name + ": give one file another name")
		}
		seen[c.Name] = true
	}
	return nil
}

// replayWindows sets the windows that are measured if the flags name none.
func replayWindows() kong.Option {
	return kong.Vars{"replay_windows": "20000,26000,32000,40000,48000,64000,80000,96000,128000"}
}
