package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// question is something that the assistant looks for in the repository.
type question struct {
	says    string // before it searches
	pattern string // for grep
	in      string // extension of the files to search
}

// onceLines is how many lines of a file are read at once.
const onceLines = 220

// until asks questions, one after another and then again from the first, until the conversation has so many tokens.
func (s *story) until(tokens int, questions ...question) {
	for round := range 3 {
		for _, q := range questions {
			if round > 0 {
				q.says = "Back to this, and what I have not read of it. " + q.says
			}
			if s.failure != nil || s.tokens() >= tokens {
				return
			}
			s.study(q, tokens)
		}
	}
}

// study searches, then reads the files with the most hits, those that were read least often first, two at a time.
func (s *story) study(q question, tokens int) {
	found := s.assistant(q.says, search(q.pattern, q.in))
	files := s.best(found.text, 5)
	for i := 0; i < len(files) && s.failure == nil && s.tokens() < tokens; i += 2 {
		pair := files[i:min(i+2, len(files))]
		calls := make([]call, len(pair))
		for j, name := range pair {
			calls[j] = s.look(name)
		}
		s.assistant(reading(pair), calls...)
	}
}

func reading(names []string) string {
	if len(names) == 1 {
		return "Now " + names[0] + "."
	}
	return "I read " + names[0] + " and " + names[1] + "."
}

// look reads a file: the first time from its beginning, the next time what follows, and so on round.
func (s *story) look(name string) call {
	if s.seen == nil {
		s.seen = map[string]int{}
	}
	content, err := s.work.text(name)
	lines := strings.Count(content, "\n")
	time := s.seen[name]
	s.seen[name]++
	if err != nil || lines <= onceLines {
		return read(name)
	}
	parts := (lines + onceLines - 1) / onceLines
	return readPart(name, 1+(time%parts)*onceLines, onceLines)
}

// best are the files of grep's output, at most n.
func (s *story) best(output string, n int) []string {
	hits := map[string]int{}
	for line := range strings.Lines(output) {
		if name, _, ok := strings.Cut(line, ":"); ok && !strings.ContainsAny(name, " \t") {
			hits[name]++
		}
	}
	names := slices.SortedFunc(maps.Keys(hits), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.seen[a], s.seen[b]), cmp.Compare(hits[b], hits[a]), cmp.Compare(a, b))
	})
	return names[:min(n, len(names))]
}
