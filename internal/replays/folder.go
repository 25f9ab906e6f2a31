package replays

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/schollz/progressbar/v3"

	"github.com/varve-dev/varve/internal/command"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replay/folder"
)

type runCommand struct {
	Dir        string    `arg:"" optional:"" help:"Folder of conversations, in any format that varve import reads."`
	Policy     []string  `sep:"none" placeholder:"FILE" help:"A policy: a file, tenant or tenant@3. Repeatable."`
	Profiles   string    `help:"Profiles to measure: names with commas, all, or none. Default: all of a folder."`
	Yardsticks string    `help:"Yardsticks to measure, in the same way."`
	Without    bool      `help:"Measure the default policy without each of its stages and settings, too."`
	Windows    []int     `help:"Windows in tokens. Default: nine from 20,000 for a folder, else the sessions' own."`
	Only       string    `help:"Measure only sessions of the folder whose name contains this."`
	Half       string    `enum:",odd,even" default:"" help:"Measure only one half of the folder, odd or even."`
	ModelPrice []float64 `placeholder:"1,5" help:"Price of a model's input and output, in the session's input tokens."`
	Seeds      int       `default:"3" help:"How often facts are planted in each session of a folder; 0: not at all."`
	Questions  string    `placeholder:"FILE" help:"Questions to ask, besides the folder's questions.json."`
	FactsIn    []int     `default:"32000,64000" help:"Windows in which planted facts are followed."`

	reportFiles    `embed:""`
	storedSessions `embed:""`
}

// folderWindows are the windows of a folder's measurement if the flags name none.
var folderWindows = []int{20_000, 26_000, 32_000, 40_000, 48_000, 64_000, 80_000, 96_000, 128_000}

// Run measures the sessions of the folder, or stored ones, and prints the tables.
func (c *runCommand) Run(ctx context.Context, with *command.Connecting) error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Dir != "" {
		return c.ofFolder(ctx, with)
	}
	to, err := with.Console()
	if err != nil {
		return err
	}
	return c.ofTenant(ctx, to)
}

func (c *runCommand) ofFolder(ctx context.Context, with *command.Connecting) error {
	contenders, err := c.contenders()
	if err != nil {
		return command.Usage(err.Error())
	}
	sessions, err := c.sessions(ctx)
	if err != nil {
		return err
	}
	options := replay.Options{Windows: c.Windows}
	if len(c.Windows) == 0 {
		c.Windows = folderWindows
		options.Windows = []int{32_000, 64_000, 128_000}
	}
	tasks := replay.Tasks(sessions, contenders, c.Windows)
	facts, err := replay.FactTasks(sessions, contenders, c.FactsIn, c.Seeds)
	if err != nil {
		return err
	}
	if tasks = append(tasks, facts...); len(tasks) == 0 {
		return fmt.Errorf("no conversation in %s is long enough to be compacted in any of the windows", c.Dir)
	}
	outcomes, err := measure(ctx, tasks, os.Stderr)
	if err != nil {
		return err
	}
	report := replay.Summarise(outcomes, options)
	if err := c.write(report, with.JSON, with.Out); err != nil {
		return err
	}
	if behind := report.Behind(replay.Rivals(), 20_000, 32_000); behind != nil {
		return errors.New(strings.Join(behind, "\n"))
	}
	return nil
}

// measure does the tasks and shows how many are done.
func measure(ctx context.Context, tasks []replay.Task, out *os.File) ([]replay.Outcome, error) {
	total := int64(len(tasks))
	shown := command.NewMeter(out, total, progressbar.OptionShowCount())
	defer shown.Finish()
	var one sync.Mutex
	return replay.MeasureAll(ctx, tasks, func(done int) {
		one.Lock()
		defer one.Unlock()
		shown.Update(int64(done), total, "measurements", fmt.Sprintf("%d of %d measurements", done, total))
	})
}

// reportFiles are files that a report is written to besides.
type reportFiles struct {
	CSV string `name:"csv" placeholder:"FILE" help:"Write the rows of the tables to a file, too."`
	SVG string `name:"svg" placeholder:"FILE" help:"Draw the far calls against tokens and against cost."`
}

// write writes the files that the flags name, and prints the report.
func (f *reportFiles) write(report *replay.Report, asJSON bool, out io.Writer) error {
	for _, file := range []struct {
		name  string
		write func(io.Writer) error
	}{{f.CSV, report.WriteCSV}, {f.SVG, report.WriteSVG}} {
		if file.name == "" {
			continue
		}
		var text bytes.Buffer
		if err := file.write(&text); err != nil {
			return err
		}
		if err := os.WriteFile(file.name, text.Bytes(), 0o644); err != nil {
			return err
		}
	}
	if !asJSON {
		return report.WriteText(out)
	}
	document, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return command.WriteIndented(out, document)
}

// sessions reads the sessions that the flags choose.
func (c *runCommand) sessions(ctx context.Context) (chosen []*replay.Session, err error) {
	all, _, err := folder.Read(ctx, c.Dir)
	if err == nil && c.Questions != "" {
		err = folder.Ask(c.Questions, all)
	}
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
func (c *runCommand) contenders() (list []replay.Contender, err error) {
	if names := listed(c.Profiles, "all", policy.Profiles()); len(names) > 0 {
		if list, err = replay.Profiles(names...); err != nil {
			return nil, err
		}
	}
	for _, file := range c.Policy {
		own, err := contenderOf(file)
		if err != nil {
			return nil, err
		}
		if len(c.ModelPrice) > 0 {
			own = own.Priced(replay.Price{Input: c.ModelPrice[0], Output: c.ModelPrice[1]})
		}
		list = append(list, own)
	}
	for _, name := range listed(c.Yardsticks, "all", replay.Yardsticks()) {
		y, err := replay.Yardstick(name)
		if err != nil {
			return nil, err
		}
		list = append(list, y)
	}
	if c.Without {
		less, err := replay.Without()
		if err != nil {
			return nil, err
		}
		list = append(list, less...)
	}
	return list, uniqueNames(list)
}

// listed returns the names in a flag: with commas, all of them, or none. Without a flag it is the fallback.
func listed(flag, fallback string, all []string) []string {
	switch text := cmp.Or(flag, fallback); text {
	case "all":
		return all
	case "none":
		return nil
	default:
		return strings.Split(text, ",")
	}
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
	return replay.Under(fileName(file), p), nil
}

// fileName returns the name of a file without its folder and its ending.
func fileName(file string) string {
	name := filepath.Base(file)
	return strings.TrimSuffix(name, filepath.Ext(name))
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
