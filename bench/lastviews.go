package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/compact/text"
	"github.com/varve-dev/varve/internal/replay"
	"github.com/varve-dev/varve/internal/replay/folder"
)

// viewsFile is the page with the views of some sessions.
const viewsFile = "docs/summaries.md"

// shownSessions are the sessions whose last view is shown, each in a window in which it is compacted.
var shownSessions = []struct {
	about, session string
	window         int
}{
	{
		"Coding: Claude Code on marot/spotter (MIT)",
		"claude-code/spotter-258c7280-ae70-4798-800f-63464d01a85d", 32_000,
	},
	{"Support: an airline's agent of tau-bench (MIT)", "tau-bench/airline-gpt4o-033", 8_000},
	{
		"Research: Claude Code on entireio/cli (MIT), with searches of the web",
		"claude-code/entire-55-04c1f4266f-0", 32_000,
	},
}

// measureLastViews replays the sessions whose views are shown.
func measureLastViews(ctx context.Context, b *bench) error {
	sessions, _, err := folder.Read(ctx, os.Getenv("VARVE_DATA"))
	if os.IsNotExist(err) {
		b.note("last views: not made, because there are no recorded conversations")
		return nil
	}
	if err == nil {
		err = folder.Ask(questionsFile, sessions)
	}
	if err != nil {
		return err
	}
	contenders, err := replay.Profiles(replay.Default)
	if err != nil {
		return err
	}
	for _, v := range shownSessions {
		i := slices.IndexFunc(sessions, func(s *replay.Session) bool { return s.Name == v.session })
		if i < 0 {
			return fmt.Errorf("there is no session %s", v.session)
		}
		last, err := replay.LastView(ctx, sessions[i], contenders[0], v.window)
		if err != nil {
			return err
		}
		b.lastViews += fmt.Sprintf("### %s\n\n%d messages, %d tokens; %d compactions in a window of %d tokens.\n\n",
			v.about, len(sessions[i].Messages), sessions[i].Tokens(), last.Compactions, v.window)
		b.lastViews += fmt.Sprintf("```text\n%s\n```\n\n%s\n", shortened(last.Summary), answerLines(last.Answers))
	}
	b.lastViews = strings.TrimSuffix(b.lastViews, "\n")
	return nil
}

// What is shown of a summary: the first lines of each section, and the beginning of each line.
const shownLines, shownChars = 4, 150

// shortened returns the beginnings of a summary's sections, with … for what is left out.
func shortened(summary string) string {
	var lines []string
	inSection := 0
	for line := range strings.Lines(summary) {
		line = strings.TrimRight(line, "\n")
		if inSection++; strings.HasPrefix(line, "## ") || strings.HasPrefix(line, "[Summary") {
			inSection = 0
		}
		switch {
		case line == "" || inSection > shownLines:
			continue
		case inSection == shownLines:
			line = "…"
		case text.Len([]byte(line)) > shownChars:
			line = string(text.First([]byte(line), shownChars)) + "…"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// answerLines returns a list of questions, with where the view has their answers.
func answerLines(answers []replay.Answer) string {
	var list strings.Builder
	for _, a := range answers {
		where := "not there"
		switch {
		case a.Held:
			where = "in the view"
		case a.Named:
			where = "behind a ref that the view names"
		}
		fmt.Fprintf(&list, "* %s **%s**\n", a.Question, strings.ToUpper(where[:1])+where[1:])
	}
	return list.String()
}

// publishLastViews writes the views of the sessions.
func (b *bench) publishLastViews() error {
	return writeDocs(viewsFile, map[string]string{"views": b.lastViews})
}
