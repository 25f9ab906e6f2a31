package conformance

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"
)

// class is a rule in which Varve differs from a system on purpose.
type class struct {
	system string // "" for any
	name   string // with says a row of docs/compatibility.md
	says   string
	is     func(v vector, want, got object) bool // the difference is what the rule makes of the record, and nothing else
}

// classes are all rules in which Varve differs. None knows a vector: each sees the input, the record and the answer.
var classes = []class{
	{"cortex", "whole", "", isWholeCut},
	{"cortex", "own", "Each result is decided by its own tool, size, beginning and place, as they were when messages came; " +
		"what is beside it is not touched.", isOwn},
	{"falai", "own", "", isMoment},
	{"llm-proxy", "own", "", isStored},
	{"codelia", "own", "", isStoredOutput},
	{"cortex", "saved", "All that leaves the view is saved, once, and can be read back.", isSaved},
	{"", "limit", "A limit holds for every result, and a cut keeps something of it.", isLimit},
	{"falai", "whole", "Characters, limits, notices and the tokens of a message are whole.", isWhole},
	{"llm-proxy", "whole", "", isWholeCount},
	{"falai", "units", "A call and its results stay together, and a notice says what was dropped.", isUnit},
	{"tool-compaction", "units", "", isOpenCall},
	{"codelia", "units", "", isOpen},
	{"llm-proxy", "units", "", isPaired},
	{"", "nothing", "Where nothing can leave the view, or no answer comes, nothing is written.", isNothing},
	{"", "plain", "Names and previews are one line of plain characters, without secrets; no tag of an answer is one.", isPlain},
	{"", "manual", "What the manual says holds where the program does otherwise; a share is at most 1.", isManual},
	{"llm-proxy", "plain", "", isSecret},
	{"llm-proxy", "errors", "A result that is an error supersedes nothing: what is older may be all that is known.", isError},
	{"llm-proxy", "smaller", "A replacement that would not be smaller is not used.", isSmaller},
	{"llm-proxy", "bookkeeping", "A stage that fails is left out; metadata, names of settings and alerts of a proxy decide nothing.", isBookkeeping},
	{"codelia", "one message", "Retained facts and summary are one message; those of the system stay in their places or are in it.", isOneMessage},
	{"codelia", "untouched", "A result with pictures, or that is not too large, is not changed; lines have their ends.", isUntouched},
	{"codelia", "models", "A model is found by its name with a date or a provider; an unknown one has the default window.", isModel},
}

// classOf returns the class of a difference, "" for none. What is plain may differ otherwise, too. Where the answer
// differs, the record must be what the system's rules say: a class says nothing of another record.
func classOf(v vector, want, got object) string {
	if said := saidOf(v); said != nil && !agrees(v, normal(want), said, got) {
		return ""
	}
	plain := normal(plainOf(want))
	for _, c := range classes {
		if (c.system == "" || c.system == v.System) && (c.is(v, normal(want), got) || c.is(v, plain, got)) {
			return c.name
		}
	}
	return ""
}

// saidOf returns what a vector's system says, with the contents that are compared; nil where its rules leave it open.
func saidOf(v vector) object {
	v.Input = normal(v.asked)
	said := says(v)
	if v.System == "falai" && v.Op == "checkAndCompact" {
		for _, round := range append(objects(said["rounds"]), said) {
			asTexts(v, objects(round["history"]))
		}
	}
	return said
}

// agrees reports whether a record is what its system says, wherever the answer is not the record.
func agrees(v vector, want, said, got any) bool {
	if said == nil || same(want, got) || alike(v, want, said) || want == unknownModel && section(said)["error"] != nil {
		return true
	}
	switch want := want.(type) {
	case object:
		said, isObject := said.(object)
		for name, value := range want {
			if !isObject || !agrees(v, value, said[name], section(got)[name]) {
				return false
			}
		}
		return true
	case []any:
		said, _ := said.([]any)
		now, _ := got.([]any)
		if len(said) != len(want) {
			return false
		}
		for i := range want {
			if len(now) != len(want) && !alike(v, want[i], said[i]) || len(now) == len(want) && !agrees(v, want[i], said[i], now[i]) {
				return false
			}
		}
		return true
	}
	return false
}

// TestThePageListsTheClasses holds docs/compatibility.md to the classes.
func TestThePageListsTheClasses(t *testing.T) {
	t.Parallel()
	var listed, want [][2]string
	for _, c := range classRows() {
		listed = append(listed, [2]string{c.name, c.says})
	}
	for _, c := range classes {
		if c.says != "" {
			want = append(want, [2]string{c.name, c.says})
		}
	}
	if diff := gocmp.Diff(want, listed); diff != "" || len(want) >= 15 {
		t.Errorf("%d classes (-test +page):\n%s", len(want), diff)
	}
}

func same(a, b any) bool { return jsonText(a) == jsonText(b) }

// alike reports whether two values are the same but for the characters that a system cuts through, and the figures that
// count them.
func alike(v vector, a, b any) bool {
	figures := regexp.MustCompile(`~-?\d+ tokens trimmed|showing first \d+`)
	plain := func(value any) string {
		return figures.ReplaceAllString(strings.ReplaceAll(jsonText(value), "\ufffd", ""), "N")
	}
	return same(a, b) || v.Half && plain(a) == plain(b)
}

// normal returns a value as JSON has it.
func normal(value any) (o object) {
	decode([]byte(jsonText(value)), &o)
	return o
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func tokens4(s string) int { return (units(s) + 3) / 4 }

// messagesOf returns the messages of a record or an answer, whatever the system calls them.
func messagesOf(o object) []object {
	if o["history"] != nil {
		return objects(o["history"])
	}
	return objects(o["messages"])
}

// isLimit: what the system leaves whole above its limit, or throws away, is cut to the limit.
func isLimit(v vector, want, got object) bool {
	whole, now := text(v.Input["text"]), text(got["content"])
	switch v.Op {
	case "capToolResult":
		limit := int(number(section(v.Input["config"])["maxResultTokens"]))
		ends := func(s string) (head, tail string, found bool) {
			head, tail, found = strings.Cut(s, "\n\n... [")
			_, tail, _ = strings.Cut(tail, "] ...\n\n")
			return head, tail, found
		}
		head, tail, found := ends(now)
		first, last, _ := ends(text(want["content"]))
		return found && strings.HasPrefix(whole, head) && strings.HasSuffix(whole, tail) &&
			tokens4(head)+tokens4(tail) <= limit && tokens4(first)+tokens4(last) > limit
	case "applyBookend":
		over := tokens4(whole)
		return number(v.Input["headChars"]) == 0 && got["refused"] != nil || number(v.Input["tailChars"]) == 0 && alike(v, now, moreTrimmed(strings.TrimSuffix(text(want["content"]), whole), over))
	case "processToolMessage":
		return isBeginningKept(v, want, got)
	}
	return false
}

// isBeginningKept: of a first line that is too long the beginning stays before the notice.
func isBeginningKept(v vector, want, got object) bool {
	list, now, limit := objects(want["messages"]), messagesOf(got), messageBytes(v)
	for i, m := range list {
		notice := text(m["content"])
		whole := text(objects(v.Input["messages"])[i]["content"])
		kept, found := strings.CutSuffix(text(now[i]["content"]), notice)
		if !found || !strings.HasPrefix(notice, "\n\n[tool output truncated") {
			continue
		}
		_, first := utf8.DecodeRuneInString(whole)
		if kept == "" && first <= limit || len(kept) > limit || !strings.HasPrefix(whole, kept) {
			return false
		}
		m["content"] = now[i]["content"]
	}
	return same(normal(want), got)
}

// isWhole: a limit with a fraction is refused, no half of a character is kept, and each message has whole tokens.
func isWhole(v vector, want, got object) bool {
	if limit := number(section(v.Input["config"])["maxToolResultChars"]); limit != math.Trunc(limit) {
		if limit < 1 {
			return got["error"] != nil || got["refused"] != nil
		}
		was := "showing first " + strconv.FormatFloat(limit, 'f', -1, 64) + "]"
		var cut object
		decode([]byte(strings.ReplaceAll(jsonText(want), was, "showing first "+strconv.Itoa(int(limit))+"]")), &cut)
		return alike(v, cut, got)
	}
	v.Input = normal(v.asked)
	asTexts(v, objects(v.Input["messages"]))
	each := normal(falaiWhole(v, true))
	return !same(want, each) && (alike(v, each, got) || isUnit(v, each, got)) || isWholeCut(v, want, got)
}

// isMoment: white space that was too much when a message came is collapsed, also where a later message let the cap act.
func isMoment(v vector, want, got object) bool {
	v.Input = normal(v.asked)
	asTexts(v, objects(v.Input["messages"]))
	now := normal(falaiEngine{whole: true, checked: true}.says(v))
	return !same(want, now) && !same(now, normal(falaiWhole(v, true))) && (alike(v, now, got) || isUnit(v, now, got))
}

func cmpOr(value, other any) any {
	if value == nil {
		return other
	}
	return value
}

// isWholeCut: of a character that a cut goes through nothing is kept; the figures of the cut differ by that.
func isWholeCut(v vector, want, got object) bool {
	return v.Half && alike(v, normal(want), got)
}

// isUnit: a result whose call the system has summarised, or dropped, has its call before it.
func isUnit(v vector, want, got object) bool {
	given := objects(v.Input["messages"])
	return isWithCalls(want, got, given, given) || isWithCalls(want, got, given, falaiCut(v, given)) || isNotice(v, want, got)
}

// falaiCut returns the messages as they are when the engine has cut or collapsed each result.
func falaiCut(v vector, given []object) []object {
	e := falaiEngine{config: section(v.Input["config"]), whole: true}
	list := e.budget(given)
	for i, collapsed := range e.collapse(given) {
		if same(list[i], given[i]) {
			list[i] = collapsed
		}
	}
	return list
}

// isWithCalls: the results of a record that have lost their calls have them, and what is between, as in now.
func isWithCalls(want, got object, given, now []object) bool {
	called := map[string]int{}
	for i, m := range given {
		for _, c := range objects(m["tool_calls"]) {
			called[text(c["id"])] = i
		}
	}
	var list []object
	here, added := map[string]bool{}, 0
	for _, m := range messagesOf(want) {
		for _, c := range objects(m["tool_calls"]) {
			here[text(c["id"])] = true
		}
		id := text(m["tool_call_id"])
		if call, isCalled := called[id]; m["role"] == "tool" && !here[id] && isCalled {
			for i := call; i < len(given) && !same(given[i], m); i++ { // and what other results it has before this one
				list = append(list, now[i])
			}
			for _, c := range objects(given[call]["tool_calls"]) {
				here[text(c["id"])] = true
			}
			added++
		}
		list = append(list, m)
	}
	if left := slices.DeleteFunc(slices.Clone(list), isSummary); same(left, given) { // nothing else could leave
		list = left
	}
	return added > 0 && same(list, messagesOf(got))
}

// isNotice: of the messages that a failure of the model leaves, the oldest have no room beside the notice.
func isNotice(v vector, want, got object) bool {
	const notice = 24 // tokens that are kept free for it
	e := falaiEngine{config: section(v.Input["config"]), whole: true}
	more := len(messagesOf(want)) - len(messagesOf(got))
	if v.Op != "checkAndCompact" || isAnswered(v) || more < 1 || !same(messagesOf(want)[more:], messagesOf(got)) {
		return false
	}
	last := more - 1 // the beginning of the last unit that has no room
	for last > 0 && messagesOf(want)[last]["role"] == "tool" {
		last--
	}
	threshold := number(e.config["maxTokens"]) * number(e.config["compactionThreshold"])
	return float64(e.tokens(messagesOf(want)[last:])+notice) >= threshold
}

// isAnswered reports whether a vector's model writes something.
func isAnswered(v vector) bool {
	responses := objects(section(v.Input["llm"])["responses"])
	return len(responses) > 0 && text(responses[0]["message"]) != ""
}

// isOpenCall: a call that nothing has answered keeps its arguments.
func isOpenCall(v vector, want, got object) bool {
	answered, list, open := map[string]bool{}, messagesOf(want), false
	for _, m := range list {
		for _, r := range objects(m["toolResults"]) {
			answered[text(r["id"])] = true
		}
	}
	for i, m := range list {
		for k, c := range objects(m["toolCalls"]) {
			if !answered[text(c["id"])] {
				open = true
				c["arguments"] = objects(v.asked["messages"])[i]["toolCalls"].([]any)[k].(object)["arguments"]
			}
		}
	}
	return open && same(normal(want), got)
}

// isPlain: a preview has spaces for control characters, and a name in a line is ASCII.
func isPlain(_ vector, want, got object) bool { return same(plainOf(want), got) }

func plainOf(want object) any {
	return mapTexts(want, func(name, s string) string {
		if name == "preview" {
			return plainPreview(s)
		}
		if line := previewed.FindStringSubmatch(s); line != nil && line[3] != "" {
			preview := strings.TrimSuffix(strings.TrimPrefix(line[3], `: "`), `"`)
			return strings.Replace(s, line[2]+line[3], plainName(line[2])+`: "`+plainPreview(preview)+`"`, 1)
		}
		if summary, ok := strings.CutPrefix(s, "[Conversation Summary]\n"); ok {
			return "[Conversation Summary]\n" + summaryTag.ReplaceAllString(strings.TrimSpace(summary), "&lt;$1")
		}
		return namedCall.ReplaceAllStringFunc(s, plainName)
	})
}

var (
	namedCall  = regexp.MustCompile(`^\[tool_compaction\] .*`)
	summaryTag = regexp.MustCompile(`<(/?(?:retain|summary)>)`)
)

func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		if r > '~' {
			return '_'
		}
		return r
	}, s)
}

func plainPreview(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar { // half of a character
			return -1
		}
		if unicode.IsControl(r) && r != '\r' && r != '\t' {
			return ' '
		}
		return r
	}, s))
}

// mapTexts returns a value with other texts.
func mapTexts(value any, to func(name, s string) string) any {
	var walk func(name string, value any) any
	walk = func(name string, value any) any {
		switch value := value.(type) {
		case string:
			return to(name, value)
		case []any:
			list := make([]any, len(value))
			for i := range value {
				list[i] = walk(name, value[i])
			}
			return list
		case object:
			o := object{}
			for name, member := range value {
				o[name] = walk(name, member)
			}
			return o
		}
		return value
	}
	return walk("", normal(value))
}

// isNothing: the system asks a model although all messages stay, and puts its answer before them; or it takes an empty
// answer for one, where the oldest messages leave as after a failure.
func isNothing(v vector, want, got object) bool {
	if v.System == "falai" && isFailure(v, want, got) {
		return true
	}
	if rounds := objects(want["rounds"]); rounds != nil {
		return isNothingAgain(v, objects(got["rounds"]), rounds)
	}
	given, now := objects(v.Input["messages"]), messagesOf(got)
	if v.Op == "should_compact" { // of one result nothing is older
		results := slices.DeleteFunc(slices.Clone(given), func(m object) bool { return m["role"] != "tool" })
		return len(results) < 2 && want["result"] == false && got["result"] == true
	}
	if v.Op == "micro" {
		grows := len(jsonText(messagesOf(want))) > len(jsonText(given))
		return grows && same(given, now) || isEmptyContent(given, messagesOf(want), now)
	}
	asks := map[string]string{"falai": "checkAndCompact", "codelia": "compact"}[v.System] == v.Op
	if !asks || len(given) > 0 && !same(given, now) || len(given) == 0 && got["refused"] == nil && len(now) > 0 {
		return false
	}
	recorded := messagesOf(want)
	if recorded == nil { // the call of the model ends the loop
		return true
	}
	kept := slices.DeleteFunc(recorded, func(m object) bool {
		return !slices.ContainsFunc(given, func(g object) bool { return same(g, m) })
	})
	if v.System == "codelia" {
		given = slices.DeleteFunc(systemFirst(given), func(m object) bool {
			return textOf(m["content"]) == "" && m["tool_calls"] == nil && !slices.ContainsFunc(kept, func(k object) bool { return same(k, m) })
		})
	}
	return same(append([]object{}, kept...), append([]object{}, given...))
}

// systemFirst returns messages with those of the system at the head.
func systemFirst(list []object) []object {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b object) int {
		return map[bool]int{true: 1}[a["role"] != "system"] - map[bool]int{true: 1}[b["role"] != "system"]
	})
	return list
}

// isNothingAgain: rounds in which nothing new can leave change nothing, where the system writes its summary anew.
func isNothingAgain(v vector, now, recorded []object) bool {
	given := len(objects(v.Input["messages"]))
	added, _ := v.Input["rounds"].([]any)
	for i, round := range now {
		if i < len(added) {
			given += len(objects(added[i]))
		}
		list, was := messagesOf(round), messagesOf(recorded[i])
		if same(list, was) {
			continue
		}
		left := slices.ContainsFunc(list, func(m object) bool {
			return !slices.ContainsFunc(was, func(w object) bool { return same(w, m) }) && !isSummary(m)
		})
		if i > 0 && !same(list, messagesOf(now[i-1])) || len(was) < len(list) || len(list) == 0 && given > 0 || left {
			return false
		}
	}
	return true
}

// isSummary reports whether a message is one that falai's model wrote.
func isSummary(m object) bool { return strings.HasPrefix(text(m["content"]), "[Conversation Summary]") }

// isEmptyContent: a result without content stays as it is.
func isEmptyContent(given, recorded, now []object) bool {
	for i, m := range now {
		if content := jsonText(given[i]["content"]); !same(m, recorded[i]) && (!same(m, given[i]) || content != "null" && content != "[]") {
			return false
		}
	}
	return len(now) == len(given) && len(now) > 0
}

// isFailure: after an empty answer the oldest messages leave, as after a failure.
func isFailure(v vector, want, got object) bool {
	responses := objects(section(v.Input["llm"])["responses"])
	given, now, recorded := objects(v.Input["messages"]), messagesOf(got), messagesOf(want)
	if len(responses) == 0 || responses[0]["message"] != "" || len(recorded) == 0 || len(now) > len(given) {
		return false
	}
	return len(now) >= len(recorded)-1 && same(given[len(given)-len(now):], now)
}
