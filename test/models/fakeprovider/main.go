// Command fakeprovider serves the fake provider of language models (internal/llm/fake) on a port, so that Varve can be
// tried with models and without a key, and under faults:
//
//	go run ./test/models/fakeprovider -addr 127.0.0.1:8099 -faults 0.3 -seed 7
//	OPENAI_BASE_URL=http://127.0.0.1:8099/v1 OPENAI_API_KEY=any VARVE_LLM_ALLOW_PRIVATE=true varve demo
//	ANTHROPIC_BASE_URL=http://127.0.0.1:8099 ANTHROPIC_API_KEY=any VARVE_LLM_ALLOW_PRIVATE=true varve demo
//
// It prints a line for each call: its path, model, fault, status, and tokens.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/varve-dev/varve/internal/llm/fake"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fakeprovider:", err)
		os.Exit(2)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("fakeprovider", flag.ContinueOnError)
	address := flags.String("addr", "127.0.0.1:8099", "to listen on")
	faults := flags.Float64("faults", 0, "the share of the calls that meet a fault, 0 to 1")
	kinds := flags.String("kinds", "", "the faults, separated by commas; all by default: "+names())
	seed := flags.Uint64("seed", 1, "of the choice of faults")
	delay := flags.Duration("delay", 0, "before each answer")
	key := flags.String("key", "", "that requests must have; any by default")
	if err := flags.Parse(args); err != nil {
		return err
	}
	options := fake.Options{Faults: *faults, Seed: *seed, Delay: *delay, Key: *key, Brief: true}
	for name := range strings.FieldsFuncSeq(*kinds, func(r rune) bool { return r == ',' }) {
		if !fake.Knows(name) {
			return fmt.Errorf("-kinds: no fault is named %q: the faults are %s", name, names())
		}
		options.Kinds = append(options.Kinds, fake.Fault(name))
	}
	options.Ended = func(c fake.CallRecord) { fmt.Fprintln(out, described(&c)) }
	server := fake.New(options)
	if err := server.Start(*address); err != nil {
		return err
	}
	defer server.Close()
	fmt.Fprintln(out, "listening on", server.URL())
	<-ctx.Done()
	return nil
}

func names() string {
	var all []string
	for _, f := range fake.Faults() {
		all = append(all, string(f))
	}
	return strings.Join(all, ", ")
}

// described returns a call in a line.
func described(c *fake.CallRecord) string {
	state := "answered"
	switch {
	case c.Refused != "":
		state = "refused: " + c.Refused
	case c.Fault != "":
		state = string(c.Fault)
	case !c.Paid:
		state = "the caller went away"
	}
	return fmt.Sprintf("%s %s %d %s (%d tokens, %d written, %v)", c.Request.Protocol, c.Request.Model, c.Status, state,
		c.Usage.Input, c.Usage.Output, c.Ended.Sub(c.Began).Round(time.Millisecond))
}
