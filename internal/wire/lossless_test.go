package wire_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/varve-dev/varve/internal/compact/compacttest"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
	"github.com/varve-dev/varve/internal/wire/wiretest"
)

// TestAViewThatIsReadInSaysWhatTheLogSays reads the renditions of well-formed conversations in again.
func TestAViewThatIsReadInSaysWhatTheLogSays(t *testing.T) {
	t.Parallel()
	for _, from := range session.Formats() {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(40) {
				bodies := compacttest.Session(rand.New(rand.NewPCG(seed, 11)), from, compacttest.Options{Messages: 1 + int(seed), ResultTokens: 20})
				for _, target := range session.Formats() {
					view := wiretest.Render(target, stored(from, bodies), wire.Options{})
					if diff := cmp.Diff(told(from, bodies), told(target, view.Bodies)); diff != "" {
						t.Fatalf("seed %d as %s (-log +view):\n%s", seed, target, diff)
					}
				}
			}
		})
	}
}

// TestCorpusViewsReadInSayWhatTheLogSays does so with recorded conversations.
func TestCorpusViewsReadInSayWhatTheLogSays(t *testing.T) {
	t.Parallel()
	read, _, err := compacttest.Recorded(wire.RecordedDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(read) == 0 {
		t.Log("no recorded conversations: set VARVE_DATA to a folder of them")
	}
	for i := range read {
		c := &read[i]
		if testing.Short() && c.Total() > 10_000 {
			continue
		}
		for _, target := range session.Formats() {
			view := wiretest.Render(target, stored(c.Format, c.Messages), wire.Options{})
			log := c.Messages
			if own, ok := wire.CompactionIn(target, stored(c.Format, log), wire.Options{}); ok {
				log = append(slices.Clone(log[:own.From]), log[own.To:]...)
			}
			log = slices.DeleteFunc(slices.Clone(log), func(m []byte) bool { return target != c.Format && wire.Compacts(session.OpenAIResponses, m) })
			missing, made := unmatched(withNames(told(c.Format, log), view.ToolNames), told(target, view.Bodies))
			if target == c.Format { // what is unknown is shown without the members that its provider does not take
				missing, made = unmatched(typesOf(missing), typesOf(made))
			}
			made = slices.DeleteFunc(made, func(line string) bool { // of images that a record has cut out
				return strings.HasPrefix(line, "text: [image: it is empty") || strings.Contains(line, trimmed)
			})
			missing = slices.DeleteFunc(missing, func(line string) bool { return strings.Contains(line, trimmed) })
			if kindsOf(view.Repairs)["reasoning_dropped"] > 0 { // of turns that were cut off while the model thought
				missing = slices.DeleteFunc(missing, func(line string) bool { return strings.HasPrefix(line, "thought: ") })
			}
			if len(missing)+len(made) > 0 {
				t.Errorf("%s of %s as %s, repairs %v\nmissing: %.300q\nmade:    %.300q", c.ID, c.Format, target, kindsOf(view.Repairs), missing, made)
			}
		}
	}
}

// trimmed is the place of an image that a record has cut out.
const trimmed = "[trimmed for fixture]"

// withNames gives the calls that were told the names that their tools have in a view.
func withNames(lines []string, names map[string]string) []string {
	for tool, name := range names {
		was := ": " + words(rawjson.Quote(nil, []byte(tool))) + " "
		for i, line := range lines {
			if strings.HasPrefix(line, "call ") {
				lines[i] = strings.Replace(line, was, ": "+name+" ", 1)
			}
		}
	}
	return lines
}

// typesOf cuts lines that show what no format knows before the first of their members.
func typesOf(lines []string) []string {
	for i := range lines {
		if before, _, is := strings.Cut(lines[i], "[opaque"); is {
			lines[i] = before
		}
	}
	return lines
}

func kindsOf(repairs []wire.Repair) map[string]int {
	kinds := map[string]int{}
	for _, r := range repairs {
		kinds[r.Kind]++
	}
	return kinds
}

// unmatched returns the lines of either list that are less often in the other.
func unmatched(want, got []string) (missing, made []string) {
	count := map[string]int{}
	for _, line := range got {
		count[line]++
	}
	for _, line := range want {
		if count[line]--; count[line] < 0 {
			missing = append(missing, line)
		}
	}
	for _, line := range got {
		if count[line] > 0 {
			count[line]--
			made = append(made, line)
		}
	}
	return missing, made
}

// TestNothingVanishesFromAView looks for every text, thought, call, result and picture of what random programs said,
// right and wrong, in every rendition of it.
func TestNothingVanishesFromAView(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*views) / 4 {
		checkContents(t, seed, randomView(rand.New(rand.NewPCG(seed, 17))))
		checkContents(t, seed, unusualView(rand.New(rand.NewPCG(seed, 23))))
	}
}

func checkContents(t *testing.T, seed uint64, view []wire.Stored) {
	t.Helper()
	for _, target := range session.Formats() {
		view := view
		if target == session.Anthropic { // where a thought at the end is left out
			view = append(slices.Clip(view), stored(target, [][]byte{[]byte(`{"role":"user","content":"and?"}`)})...)
		}
		// Pictures of results are shown when all results of their turn are there: none is waited for.
		made := wiretest.Render(target, view, wire.Options{Pending: wire.SynthesizePending})
		rendered := wholeView(view)
		if own, ok := wire.CompactionIn(target, view, wire.Options{}); ok {
			rendered = append(rendered[:own.From], rendered[own.To:]...)
		}
		for _, x := range []struct {
			log, said []wire.Stored
			names     map[string]string
		}{{rendered, stored(target, made.Bodies), made.ToolNames}, {view, wiretest.Translate(target, view), nil}} {
			said := x.said
			shown := strings.Join(contents(said, nil), "\n")
			for _, content := range contents(x.log, x.names) {
				if !strings.Contains(shown, strings.TrimSpace(content)) {
					t.Fatalf("seed %d as %s: %q vanished of\n%s\nin\n%s", seed, target, content, show(view), show(said))
				}
			}
		}
	}
}

// wholeView returns a view without halves of surrogate pairs.
func wholeView(view []wire.Stored) []wire.Stored {
	mended := slices.Clone(view)
	for i := range mended {
		mended[i].Body = rawjson.Whole(mended[i].Body)
	}
	return mended
}

// contents returns the texts of a view, wherever they are, and what else must not be lost. Of a file that a provider
// does not take, and of the images of a failed result in an AI SDK message, there is only a note. names are the other
// names of tools.
func contents(view []wire.Stored, names map[string]string) (list []string) {
	var add func(blocks []wire.Block, failed bool)
	add = func(blocks []wire.Block, failed bool) {
		for i := range blocks {
			p := &blocks[i]
			list = append(list, words(p.Text))
			if p.Kind == wire.Image && !failed {
				list = append(list, words(p.Media.Data), words(p.Media.URL))
			}
			switch p.Kind {
			case wire.Call:
				name := words(p.Name)
				if to, ok := names[text(p.Name)]; ok {
					name = to
				}
				list = append(list, name, strings.Trim(string(rawjson.Whole(p.Value)), `"`))
			case wire.Opaque:
				if strings.HasPrefix(string(p.Raw), `{"type":"source-url"`) { // its URL is in a note
					var page struct{ URL string }
					_ = json.Unmarshal(p.Raw, &page)
					list = append(list, page.URL)
					continue
				}
				if !strings.HasPrefix(string(p.Raw), `{"type":"compaction"`) && !strings.HasPrefix(string(p.Raw), `{"type":"mcp_approval_response"`) { // which have texts of their own, or nothing
					list = append(list, string(p.Raw))
				}
			}
			add(p.Content, p.IsError)
		}
	}
	for _, m := range view {
		for _, n := range wire.Decode(m.Format, m.Body) {
			add(n.Blocks, false)
		}
	}
	return list
}

// text returns the text of a string literal, nothing for none.
func text(literal []byte) (decoded string) {
	_ = json.Unmarshal(literal, &decoded)
	return decoded
}

// TestAViewGrowsAtItsEnd renders a well-formed conversation after each of its turns: what was sent stays as it was,
// to the byte, so that the provider's cache is good.
func TestAViewGrowsAtItsEnd(t *testing.T) {
	t.Parallel()
	for _, from := range session.Formats() {
		t.Run(string(from), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(20) {
				rng := rand.New(rand.NewPCG(seed, 13))
				options := compacttest.Options{Messages: 12, ResultTokens: 20}
				view := stored(from, compacttest.Session(rng, from, options))
				then := session.Formats()[rng.IntN(len(session.Formats()))]
				view = append(view, stored(then, compacttest.Session(rng, then, options))...)
				for _, target := range session.Formats() {
					checkGrowth(t, seed, target, view)
				}
			}
		})
	}
}

// checkGrowth leaves the last message out, and the user's that a repair puts behind it: what comes next may go on
// with it.
func checkGrowth(t *testing.T, seed uint64, target session.Format, view []wire.Stored) {
	t.Helper()
	o := wire.Options{}
	if slices.ContainsFunc(view, func(m wire.Stored) bool { return m.Format == session.Gemini }) {
		o.Model = "gemini-2.5-pro" // for newer ones calls that came unsigned say so while their turn lasts
	}
	whole := wiretest.Render(target, view, o)
	for n := 1; n < len(view); n++ {
		part := wiretest.Render(target, view[:n], o)
		settled := len(part.Bodies) - 1 - kindsOf(part.Repairs)["last_user"]
		for i := range max(0, settled) {
			if string(part.Bodies[i]) != string(whole.Bodies[i]) {
				t.Fatalf("seed %d as %s: message %d after %d of %d was\n%s\nand is\n%s", seed, target, i, n, len(view), part.Bodies[i], whole.Bodies[i])
			}
		}
	}
}
