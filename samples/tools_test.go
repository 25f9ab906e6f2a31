package samples_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// commandTime is how long one shell command may take.
const commandTime = 5 * time.Minute

// call is one tool call; one of Read, Search, Shell, Write and Edit is set. Files are named by their path in the
// repository.
type call struct {
	Read               string
	offset, limit      int // lines to read; limit 0 is all of them
	Search, In         string
	Shell, Description string
	Write, Text        string
	Edit               string
	Before, After      string // the text that occurs once in the file, and what replaces it
}

type argument struct {
	name  string
	value any
}

// tool returns the tool's name and the arguments in the order in which they are written.
func (c call) tool() (name string, args []argument) {
	path := argument{"file_path", shown + "/" + cmp.Or(c.Read, c.Write, c.Edit)}
	switch {
	case c.Read != "" && c.limit > 0:
		return "Read", []argument{path, {"offset", c.offset}, {"limit", c.limit}}
	case c.Read != "":
		return "Read", []argument{path}
	case c.Search != "":
		return "Grep", []argument{
			{"pattern", c.Search}, {"path", shown}, {"glob", "**/*" + c.In}, {"output_mode", "content"},
		}
	case c.Shell != "":
		return "Bash", []argument{{"command", c.Shell}, {"description", c.Description}}
	case c.Write != "":
		return "Write", []argument{path, {"content", c.Text}}
	}
	return "Edit", []argument{path, {"old_string", c.Before}, {"new_string", c.After}}
}

func (c call) size() (bytes int) {
	_, args := c.tool()
	for _, a := range args {
		bytes += len(a.name) + len(fmt.Sprint(a.value))
	}
	return bytes
}

// answer returns what the agent's program tells the model about a call: its output, and what went wrong.
func (w *workspace) answer(ctx context.Context, c call) (result, error) {
	output, err := w.run(ctx, c)
	if ctx.Err() != nil {
		return result{}, ctx.Err()
	}
	var exit *exec.ExitError
	switch {
	case err == nil && output == "":
		output = "(no output)"
	case errors.As(err, &exit):
		output = fmt.Sprintf("Exit code %d\n%s", exit.ExitCode(), output)
	case err != nil:
		output = "Error: " + err.Error()
	}
	return result{text: strings.ToValidUTF8(w.hide.Replace(output), "\uFFFD"), failed: err != nil}, nil
}

func (w *workspace) run(ctx context.Context, c call) (output string, err error) {
	switch {
	case c.Read != "":
		text, err := w.text(c.Read)
		if err != nil {
			return "", err
		}
		return numbered(text, max(1, c.offset), c.limit), nil
	case c.Search != "":
		return w.search(ctx, c)
	case c.Shell != "":
		return w.command(ctx, "sh", "-c", c.Shell)
	case c.Write != "":
		return "File written: " + shown + "/" + c.Write, w.write(c.Write, c.Text)
	}
	return w.edit(c)
}

func numbered(text string, offset, limit int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	var b strings.Builder
	for i, line := range lines {
		if n := i + 1; n >= offset && (limit == 0 || n < offset+limit) {
			fmt.Fprintf(&b, "%6d\t%s\n", n, line)
		}
	}
	return b.String()
}

func (w *workspace) search(ctx context.Context, c call) (string, error) {
	names, err := w.files(".", c.In)
	if err != nil {
		return "", err
	}
	output, err := w.command(ctx, "grep", append([]string{"-nHE", "--", c.Search}, names...)...)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return "No matches found", nil
	}
	return output, err
}

func (w *workspace) edit(c call) (string, error) {
	text, err := w.text(c.Edit)
	if err != nil {
		return "", err
	}
	if n := strings.Count(text, c.Before); n != 1 {
		return "", fmt.Errorf("old_string occurs %d times in %s/%s, not once", n, shown, c.Edit)
	}
	changed := strings.Replace(text, c.Before, c.After, 1)
	first := strings.Count(text[:strings.Index(text, c.Before)], "\n") + 1
	snippet := numbered(changed, max(first-2, 1), strings.Count(c.After, "\n")+5)
	return "File edited. The changed lines:\n" + snippet, w.write(c.Edit, changed)
}

// command runs a program in the copy and returns what it printed, both streams together.
func (w *workspace) command(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = w.dir
	c.WaitDelay = time.Second
	c.Env = append(os.Environ(), "LC_ALL=C", "GOWORK=off", "PWD="+w.dir)
	output, err := c.CombinedOutput()
	return string(output), err
}
