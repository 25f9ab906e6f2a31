package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// commandTime is how long one shell command may take.
const commandTime = 90 * time.Second

// call is one tool call, with the arguments in the order in which they are written.
type call struct {
	tool string
	args []argument
	run  func(context.Context, *workspace) (output string, err error)
}

type argument struct {
	name  string
	value any
}

// read shows a file with line numbers.
func read(name string) call { return readPart(name, 1, 0) }

// readPart shows lines from offset on; limit 0 is all of them.
func readPart(name string, offset, limit int) call {
	args := []argument{{"file_path", shown + "/" + name}}
	if limit > 0 {
		args = append(args, argument{"offset", offset}, argument{"limit", limit})
	}
	return call{"Read", args, func(_ context.Context, w *workspace) (string, error) {
		text, err := w.text(name)
		if err != nil {
			return "", err
		}
		return numbered(text, offset, limit), nil
	}}
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

func (w *workspace) text(name string) (string, error) {
	path, err := w.path(name)
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(path)
	return string(data), err
}

// search runs grep over the repository's files of the given kind.
func search(pattern, extension string) call {
	args := []argument{{"pattern", pattern}, {"path", shown}, {"glob", "**/*" + extension}, {"output_mode", "content"}}
	return call{"Grep", args, func(ctx context.Context, w *workspace) (string, error) {
		names, err := w.files(".", extension)
		if err != nil {
			return "", err
		}
		output, err := w.command(ctx, "grep", append([]string{"-nHE", "--", pattern}, names...)...)
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() == 1 {
			return "No matches found", nil
		}
		return output, err
	}}
}

// shell runs a command line.
func shell(command, description string) call {
	args := []argument{{"command", command}, {"description", description}}
	return call{"Bash", args, func(ctx context.Context, w *workspace) (string, error) {
		return w.command(ctx, "sh", "-c", command)
	}}
}

// write makes or replaces a file.
func write(name, text string) call {
	args := []argument{{"file_path", shown + "/" + name}, {"content", text}}
	return call{"Write", args, func(_ context.Context, w *workspace) (string, error) {
		return "File written: " + shown + "/" + name, w.write(name, text)
	}}
}

// edit replaces a text that occurs once in a file.
func edit(name, before, after string) call {
	args := []argument{{"file_path", shown + "/" + name}, {"old_string", before}, {"new_string", after}}
	return call{"Edit", args, func(_ context.Context, w *workspace) (string, error) {
		text, err := w.text(name)
		if err != nil {
			return "", err
		}
		if n := strings.Count(text, before); n != 1 {
			return "", fmt.Errorf("old_string occurs %d times in %s/%s, not once", n, shown, name)
		}
		changed := strings.Replace(text, before, after, 1)
		first := strings.Count(text[:strings.Index(text, before)], "\n") + 1
		snippet := numbered(changed, max(first-2, 1), strings.Count(after, "\n")+5)
		return "File edited. The changed lines:\n" + snippet, w.write(name, changed)
	}}
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

// answer is what the agent's program tells the model about a call: its output, and what went wrong.
func (c call) answer(ctx context.Context, w *workspace) (text string, failed bool, err error) {
	output, err := c.run(ctx, w)
	if ctx.Err() != nil {
		return "", false, ctx.Err()
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
	return strings.ToValidUTF8(w.hide.Replace(output), "\uFFFD"), err != nil, nil
}
