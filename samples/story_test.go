package samples_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// story is a file of stories/: a conversation without the answers of its tools.
type story struct {
	Format string            // a key of encoders
	System string            // the system prompt
	Files  map[string]string // that are in the repository before the conversation begins
	Steps  []step
}

// step is one of three: the user says something, the assistant says something and makes calls, or the assistant asks
// questions until the conversation has that many tokens.
type step struct {
	User        string
	Says        string
	Calls       []call
	LastCall    string     `yaml:"last_call"` // "fails" or "passes": how the last call must end; "" for either
	UntilTokens int        `yaml:"until_tokens"`
	Questions   []question // asked one after another, and then again from the first
}

// question is something that the assistant looks for in the repository.
type question struct {
	Says   string
	Search string // for grep
	In     string // extension of the files
}

// readStory reads a file of stories/. It returns an error for a member that stories do not have.
func readStory(file string) (s story, err error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	err = decoder.Decode(&s)
	if err == nil && encoders[s.Format] == nil {
		err = fmt.Errorf("there is no format %q", s.Format)
	}
	return s, err
}

// turn is what the user says, or what the assistant says with its calls and their results.
type turn struct {
	user    string
	says    string
	calls   []call
	results []result
}

type result struct {
	text   string
	failed bool
}

// player plays a story and keeps what was said.
type player struct {
	ctx   context.Context
	work  *workspace
	turns []turn
	bytes int
	seen  map[string]int // how often a file was read
}

func (p *player) play(s story) error {
	for name, text := range s.Files {
		if err := p.work.write(name, text); err != nil {
			return err
		}
	}
	for _, step := range s.Steps {
		if err := p.step(step); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) step(s step) error {
	if s.UntilTokens > 0 {
		return p.studyUntil(s.UntilTokens, s.Questions)
	}
	if s.User != "" {
		p.bytes += len(s.User)
		p.turns = append(p.turns, turn{user: s.User})
		return nil
	}
	last, err := p.assistant(s.Says, s.Calls...)
	if err == nil && s.LastCall != "" && last.failed != (s.LastCall == "fails") {
		err = fmt.Errorf(
			"after %q the last call should end with %q, but answered: %.300s", s.Says, s.LastCall, last.text,
		)
	}
	return err
}

// assistant says something and makes calls, all in one message; it returns what the last one answered.
func (p *player) assistant(says string, calls ...call) (last result, err error) {
	t := turn{says: says, calls: calls}
	p.bytes += len(says)
	for _, c := range calls {
		if last, err = p.work.answer(p.ctx, c); err != nil {
			return last, err
		}
		t.results = append(t.results, last)
		p.bytes += len(last.text) + c.size()
	}
	p.turns = append(p.turns, t)
	return last, nil
}

// tokens returns the size by the measure of 4 bytes a token.
func (p *player) tokens() int { return p.bytes / 4 }

func (p *player) studyUntil(tokens int, questions []question) error {
	for round := range 3 {
		for _, q := range questions {
			if round > 0 {
				q.Says = "Back to this, and what I have not read of it. " + q.Says
			}
			if p.tokens() >= tokens {
				return nil
			}
			if err := p.study(q, tokens); err != nil {
				return err
			}
		}
	}
	return nil
}

// study searches, then reads the files with the most hits, those that were read least often first, two at a time.
func (p *player) study(q question, tokens int) error {
	found, err := p.assistant(q.Says, call{Search: q.Search, In: q.In})
	if err != nil {
		return err
	}
	for pair := range slices.Chunk(p.best(found.text, 5), 2) {
		if p.tokens() >= tokens {
			return nil
		}
		calls := make([]call, len(pair))
		for i, name := range pair {
			calls[i] = p.look(name)
		}
		says := "Now " + pair[0] + "."
		if len(pair) == 2 {
			says = "I read " + pair[0] + " and " + pair[1] + "."
		}
		if _, err := p.assistant(says, calls...); err != nil {
			return err
		}
	}
	return nil
}

// onceLines is how many lines of a file are read at once.
const onceLines = 220

// look reads a file: the first time from its beginning, the next time what follows, and so on from the beginning again.
func (p *player) look(name string) call {
	content, err := p.work.text(name)
	lines := strings.Count(content, "\n")
	times := p.seen[name]
	p.seen[name]++
	if err != nil || lines <= onceLines {
		return call{Read: name}
	}
	parts := (lines + onceLines - 1) / onceLines
	return call{Read: name, offset: 1 + (times%parts)*onceLines, limit: onceLines}
}

// best returns the files of grep's output, n or fewer.
func (p *player) best(output string, n int) []string {
	hits := map[string]int{}
	for line := range strings.Lines(output) {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.ContainsAny(name, " \t") {
			hits[name]++
		}
	}
	names := slices.SortedFunc(maps.Keys(hits), func(a, b string) int {
		return cmp.Or(cmp.Compare(p.seen[a], p.seen[b]), cmp.Compare(hits[b], hits[a]), cmp.Compare(a, b))
	})
	return names[:min(n, len(names))]
}
