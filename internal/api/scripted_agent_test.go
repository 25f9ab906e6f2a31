package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/varve-dev/varve/internal/session"
)

// plantedFact is something that was said once: the words of a question for it, and its answer.
type plantedFact struct {
	session  string
	question []string
	answer   string
}

var (
	attributes = []string{"retry budget", "owner team", "failover zone", "release tag", "cache prefix", "rollout date", "quota group", "signing alias", "shard count", "pager channel"}
	syllables  = []string{"bra", "del", "fin", "gor", "hul", "jen", "kel", "lum", "mor", "nix", "pol", "quin", "ros", "sul", "tor", "vek"}
)

// story makes conversations in which facts are said once, among others that are nearly the same.
type story struct {
	*world
	random *rand.Rand
	facts  []plantedFact
}

func (s *story) word(n int) string {
	var w strings.Builder
	for range n {
		w.WriteString(syllables[s.random.IntN(len(syllables))])
	}
	return w.String()
}

// tell appends a conversation, turn by turn, whose window is far smaller than it is.
func (s *story) tell(id, format, policy string, facts, after int) {
	s.Helper()
	s.must(http.StatusCreated, "PUT", "/v1/sessions/"+id, `{"format":"`+format+`","window_tokens":20000,"policy":`+policy+`}`)
	services := []string{}
	for range (facts + len(attributes) - 1) / len(attributes) {
		services = append(services, s.word(3))
	}
	for n := range facts + after {
		said := ""
		if n < facts {
			f := plantedFact{id, strings.Fields(attributes[n%len(attributes)] + " " + services[n/len(attributes)]), fmt.Sprintf("%s-%04d", s.word(2), s.random.IntN(10000))}
			said = fmt.Sprintf("The %s of %s is %s.", attributes[n%len(attributes)], f.question[2], f.answer)
			s.facts = append(s.facts, f)
		}
		s.must(http.StatusCreated, "POST", "/v1/sessions/"+id+"/messages", batch(format, s.turn(format, n, said)...))
	}
	for range 3 {
		s.must(http.StatusOK, "POST", "/v1/sessions/"+id+"/compact?wait=60", "")
	}
}

// turn returns the messages of a turn that says something: in the user's text, the agent's, or the middle of a result.
func (s *story) turn(format string, n int, said string) []string {
	var asked, answered string
	lines := make([]string, 40)
	for i := range lines {
		lines[i] = fmt.Sprintf("%03d %s %s took %d ms, %s", i, s.word(2), s.word(3), s.random.IntN(900), s.word(2))
	}
	switch n % 5 {
	case 0:
		asked = " " + said
	case 1:
		answered = " " + said
	default:
		lines[10+s.random.IntN(20)] = said
	}
	call, result := fmt.Sprintf("call_%d", n), strings.Join(lines, "\n")
	quote := func(text string) string { quoted, _ := json.Marshal(text); return string(quoted) }
	question, answer := user(fmt.Sprintf("Step %d: look at %s.%s", n, s.word(3), asked)), `{"role":"assistant","content":`+quote("I have looked at it."+answered)+`}`
	if format == "anthropic" {
		return []string{question, fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"cat %s"}}]}`, call, s.word(2)),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":%s}]}`, call, quote(result)), answer}
	}
	return []string{question, fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"Bash","arguments":"{\"command\":\"cat %s\"}"}}]}`, call, s.word(2)),
		fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, call, quote(result)), answer}
}

// script is an agent that can read and call, and knows nothing else.
type script struct {
	view  string
	call  func(name string, arguments map[string]any) string
	calls int
}

// passage matches the heading of what a search found: what to read, and from which line on.
var passage = regexp.MustCompile(`(?m)^([rum][0-9][-0-9a-f.]*) line (\d+) `)

// find answers a question by the line that has all of its words: of the view, or of what a search finds, which must be
// there when it is read. If no passage has such a line, the first one is read.
func (a *script) find(question []string) string {
	a.calls = 0
	if line := lineWith(a.view, question); line != "" {
		return line
	}
	a.calls++
	found := a.call("search_session", map[string]any{"query": strings.Join(question, " ")})
	before, _, _ := strings.Cut(found, cmp.Or(lineWith(found, question), found[min(len(found), 400):]))
	headings := passage.FindAllStringSubmatch(before, -1)
	if len(headings) == 0 {
		return ""
	}
	a.calls++
	nearest := headings[len(headings)-1]
	from, _ := strconv.Atoi(nearest[2])
	return lineWith(a.call("read_result", map[string]any{"ref": nearest[1], "offset": max(1, from-2)}), question)
}

// lineWith returns the line of a text that has all words.
func lineWith(text string, words []string) string {
	for line := range strings.Lines(text) {
		all := true
		for _, word := range words {
			all = all && strings.Contains(line, word)
		}
		if all {
			return line
		}
	}
	return ""
}

// TestAScriptedAgentFindsWhatLeft asks for the facts that left the views of ten sessions, with -short of four: an agent
// that holds MCP, and one that holds the definitions of the tools.
func TestAScriptedAgentFindsWhatLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.work()
	s := &story{world: w, random: rand.New(rand.NewPCG(12, 7))}
	const planted, after = 70, 12
	sessions := 10
	if testing.Short() {
		sessions = 4
	}
	for i := range sessions { // summaries keep much of what the user and the agent say, truncation keeps nothing
		policy := []string{`{}`, `{"summarise":{"enabled":false}}`}[i/2%2]
		s.tell(fmt.Sprintf("s%d", i), []string{"openai-chat", "anthropic"}[i%2], policy, planted, after)
	}
	url := w.serve(t)
	for name, hold := range map[string]func(id, token string) func(string, map[string]any) string{
		"MCP": func(_, token string) func(string, map[string]any) string {
			held := w.agent(t, url, versions[0], bearer{token: token})
			return func(name string, with map[string]any) string { return textOf(held.call(name, with)) }
		},
		"definitions": func(id, token string) func(string, map[string]any) string { return w.definitions(id, token) },
	} {
		asked, found, inTwo := 0, 0, 0
		var missed []string
		for i := range sessions {
			id := fmt.Sprintf("s%d", i)
			token := w.newToken(id, "").Text
			view := w.must(http.StatusOK, "GET", "/v1/sessions/"+id+"/context", "", "Authorization", "Bearer "+token).Body.String()
			a := &script{view: strings.NewReplacer(`\n`, "\n", `},{`, "\n").Replace(view), call: hold(id, token)}
			for _, f := range s.facts {
				if f.session != id || lineWith(a.view, f.question) != "" {
					continue
				}
				asked++
				switch line := a.find(f.question); {
				case !strings.Contains(line, f.answer):
					missed = append(missed, fmt.Sprintf("%s %v: %.80q", id, f.question, line))
				case a.calls <= 2:
					inTwo++
					fallthrough
				default:
					found++
				}
			}
		}
		t.Logf("%s: %d facts had left, %d were found, %d in two calls at most", name, asked, found, inTwo)
		if asked < 30*sessions || float64(inTwo) < 0.99*float64(asked) {
			t.Errorf("%s: %d facts had left, %d were found in two calls; missed: %.2000q", name, asked, inTwo, missed)
		}
	}
}

// definitions returns an agent's way to call the tools of which it holds the definitions.
func (w *world) definitions(id, token string) func(string, map[string]any) string {
	w.Helper()
	offered := w.must(http.StatusOK, "GET", "/v1/tools?format="+string(session.OpenAIChat), "", "Authorization", "Bearer "+token).Body.String()
	return func(name string, with map[string]any) string {
		if !strings.Contains(offered, `"name":"`+name+`"`) {
			w.Fatalf("there is no tool %s in %s", name, offered)
		}
		arguments, _ := json.Marshal(with)
		got := w.must(http.StatusOK, "POST", "/v1/sessions/"+id+"/tools/"+name, `{"arguments":`+string(arguments)+`}`, "Authorization", "Bearer "+token)
		return decoded[struct{ Text string }](got).Text
	}
}
