// Command record makes the sample conversations in samples/*.json: scripted coding sessions on a copy of this
// repository. What the assistant says and does is written down in stories/*.yaml; what its tools answer is what the
// commands really printed, with the copy's directory shown as /repo.
//
// Start at record. story.go has the form of a story and plays it, tools.go runs the tools, workspace.go copies the
// repository, encode.go writes the two provider formats.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

// minTokens is what a sample must have to be called long.
const minTokens = 120_000

func main() {
	repository := flag.String("repository", ".", "directory of the repository to work on a copy of")
	out := flag.String("out", "samples", "directory to write the conversations to")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *repository, *out); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

// run records every story on a fresh copy, always in the same directory so that compiled packages are found again.
func run(ctx context.Context, repository, out string) error {
	files, err := stories.ReadDir("stories")
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "varve-samples-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".yaml")
		if err := record(ctx, name, repository, filepath.Join(temp, "repo"), out); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func record(ctx context.Context, name, repository, dir, out string) error {
	story, err := readStory(name)
	if err != nil {
		return err
	}
	work, err := newWorkspace(ctx, repository, dir)
	if err != nil {
		return err
	}
	p := &player{ctx: ctx, work: work, seen: map[string]int{}}
	if err := p.play(story); err != nil {
		return err
	}
	if p.tokens() < minTokens {
		return fmt.Errorf("the conversation has %d tokens, a long one needs %d", p.tokens(), minTokens)
	}
	data, err := encoders[story.Format](story.System, p.turns)
	if err != nil {
		return err
	}
	file := name + "." + story.Format + ".json"
	fmt.Fprintf(os.Stderr, "%s: %d turns, about %d tokens, %d bytes\n", file, len(p.turns), p.tokens(), len(data))
	return os.WriteFile(filepath.Join(out, file), data, 0o644)
}
