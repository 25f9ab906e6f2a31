// Command record makes the sample conversations in samples/*.json: three scripted coding sessions on a copy of this
// repository. What the assistant says and does is written down here; what its tools answer is what the commands really
// printed, with the copy's directory shown as /repo.
//
// Start at run. workspace.go copies the repository, tools.go runs the tools, story.go records one conversation,
// study.go reads the repository as far as a session's size needs it, encode.go writes the two provider formats, and
// each plot_*.go is one session.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
)

// minimumTokens is what a sample must have to be called long.
const minimumTokens = 120_000

// sample is one conversation to record.
type sample struct {
	file   string
	encode func(conversation) ([]byte, error)
	plot   func(*story) error
}

var samples = []sample{
	{"add-a-limit.openai-chat.json", encodeOpenAIChat, addALimit},
	{"follow-a-rename.anthropic.json", encodeAnthropic, followARename},
	{"find-a-failing-test.openai-chat.json", encodeOpenAIChat, findAFailingTest},
}

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

// run records every sample on a fresh copy, always in the same directory so that compiled packages are found again.
func run(ctx context.Context, repository, out string) error {
	temp, err := os.MkdirTemp("", "varve-samples-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	for _, s := range samples {
		if err := record(ctx, s, repository, filepath.Join(temp, "repo"), out); err != nil {
			return fmt.Errorf("%s: %w", s.file, err)
		}
	}
	return nil
}

func record(ctx context.Context, s sample, repository, dir, out string) error {
	work, err := newWorkspace(ctx, repository, dir)
	if err != nil {
		return err
	}
	told := &story{ctx: ctx, work: work}
	if err := s.plot(told); err != nil {
		return err
	}
	if told.tokens() < minimumTokens {
		return fmt.Errorf("the conversation has only %d tokens of the %d that a long one needs", told.tokens(), minimumTokens)
	}
	data, err := s.encode(told.said)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%s: %d turns, %d tool calls, about %d tokens, %d bytes\n", s.file, len(told.said.turns), told.calls, told.tokens(), len(data))
	return os.WriteFile(filepath.Join(out, s.file), data, 0o644)
}
