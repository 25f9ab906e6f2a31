package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestAnotherSystemsConfigurationBecomesAPolicy(t *testing.T) {
	t.Parallel()
	file := write(t, "falai.json", []byte(`{"compaction":{"maxTokens":90000,"preserveRecentCount":6,"provider":"x"}}`))
	cli, err := parse("policy", "from", file)
	if err != nil {
		t.Fatal(err)
	}
	var out, notes bytes.Buffer
	if err := cli.Policy.From.translate(&out, &notes); err != nil {
		t.Fatal(err)
	}
	const want = `{
  "profile": "falai",
  "protect": {
    "last_messages": 6
  },
  "summarise": {
    "keep_messages": 6
  }
}
`
	if out.String() != want {
		t.Errorf("got %s", out.String())
	}
	for _, line := range []string{
		"compaction.preserveRecentCount protect.last_messages, summarise.keep_messages",
		"compaction.maxTokens window_tokens each session's, not the policy's",
		"compaction.provider not translated a service cannot be given an object of your program",
		`Set "window_tokens": 90000 for each session.`,
	} {
		if !strings.Contains(strings.Join(strings.Fields(notes.String()), " "), line) {
			t.Errorf("%q is not in\n%s", line, notes.String())
		}
	}
}

func TestAConfigurationThatItsSystemRefusesIsRefused(t *testing.T) {
	t.Parallel()
	file := write(t, "config.json", []byte(`{"compaction":{"compactionThreshold":0.3,"preserveRecentCount":1}}`))
	err := (&policyFromCommand{File: file}).translate(io.Discard, io.Discard)
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "codelia, cortex, falai, llm-proxy, tool-compaction") {
		t.Errorf("without a system: %v", err)
	}
	err = (&policyFromCommand{File: file, System: "falai"}).translate(io.Discard, io.Discard)
	for _, want := range []string{
		"  /compaction/compactionThreshold: compactionThreshold must be between 0.5 and 0.95, got 0.3",
		"  /compaction/preserveRecentCount: preserveRecentCount must be >= 2, got 1",
	} {
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
