package importer

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// Agents whose models have no tools write an action into their text, and what came of it is the next message of the
// user: an observation. Both become a call and its result, which the person who works with the agent never said.

// spoken is an action in a text of an agent.
type spoken struct{ rest, name, input []byte } // the text without it (nil for none), the tool, its arguments

// actionID returns the id of the call that is made of the action in the message at a place.
func actionID(place int) []byte { return quote("action-" + strconv.Itoa(place)) }

// command returns the arguments of a shell's call; the command is a literal.
func command(literal []byte) []byte { return fill(`{"command":%}`, literal) }

// observations begin, and the last ends, a text that a harness wrote of what came of an action: mini-swe-agent's
// observation_template and timeout_template, SWE-agent's next_step_template with its variants and the prompt of its
// shell, OpenHands' and R2E-Gym's conversion of results for models without tools (fn_call_converter.py).
var observations = []string{
	"<returncode>", "<exception>", "Observation:", "The last command <command>", "OBSERVATION:", "EXECUTION TIMED OUT",
	"Your command ran successfully and did not produce any output", "EXECUTION RESULT of [", "Execution output of [",
}

const shellPrompt = "bash-$"

func isObservation(text string) bool {
	begins := func(mark string) bool { return strings.HasPrefix(text, mark) }
	return slices.ContainsFunc(observations, begins) || strings.HasSuffix(text, shellPrompt)
}

// The forms of an action: a call of OpenHands for models without tools, and a command in a block of code of a shell or
// in an element.
var (
	functionForm  = regexp.MustCompile(`(?s)<function=([\w.-]+)>(.*?)</function>`)
	parameterForm = regexp.MustCompile(`(?s)<parameter=([\w.-]+)>\n?(.*?)\n?</parameter>`)
	blockForm     = regexp.MustCompile("(?s)(?:^|\n)```(\\S*)[ \t]*\n(.*?)\n```")
	elementForm   = regexp.MustCompile(`(?s)<(command)>\n(.*?)\n</command>`)
	shells        = set("", "bash", "sh", "shell", "mswea_bash_command")
)

// speak returns the action in a text of an agent, the last one of its form, nil for none.
func speak(text string) *spoken {
	if at := last(functionForm, text, nil); at != nil {
		var members [][]byte
		for _, p := range parameterForm.FindAllStringSubmatch(text[at[4]:at[5]], -1) {
			members = append(members, fill("%:%", quote(p[1]), quote(p[2])))
		}
		return &spoken{rest: unspoken(text, at), name: quote(text[at[2]:at[3]]), input: inBraces(members)}
	}
	at := last(blockForm, text, shells)
	if at == nil {
		at = last(elementForm, text, nil)
	}
	if at == nil {
		return nil
	}
	return &spoken{rest: unspoken(text, at), name: quote("bash"), input: command(quote(text[at[4]:at[5]]))}
}

// last returns where the last match of a form is, and its two groups, of which the first is one of some names unless
// they are nil; nil for none.
func last(form *regexp.Regexp, text string, names map[string]bool) (found []int) {
	for _, at := range form.FindAllStringSubmatchIndex(text, -1) {
		if names == nil || names[text[at[2]:at[3]]] {
			found = at
		}
	}
	return found
}

// unspoken returns a text without the match, as a literal.
func unspoken(text string, match []int) []byte {
	return nonEmpty(quote(strings.TrimSpace(text[:match[0]] + text[match[1]:])))
}

// answerSpoken makes calls and results of actions and observations in the texts of a conversation.
func (f *File) answerSpoken(c *Conversation) {
	if c.Format != session.OpenAIChat {
		return
	}
	made := 0
	for i := 1; i < len(c.Messages); i++ {
		before, at := &c.Messages[i-1], &c.Messages[i]
		said, o := parseObject(before.Body), parseObject(at.Body)
		if said.text("role") != "assistant" || has(said["tool_calls"]) || o.text("role") != "user" ||
			!isObservation(textOf(o["content"])) {
			continue
		}
		if s := speak(textOf(said["content"])); s != nil {
			id := actionID(i)
			m := chatMessage{role: "assistant", content: s.rest, reasoning: nonEmpty(said["reasoning_content"])}
			m.addCall(id, s.name, s.input)
			before.Body, at.Body = m.body(), chatResult(id, o["content"])
			made++
		}
	}
	if made > 0 {
		f.note(c.Messages[0].Line, "%s: %d actions and observations in texts became calls and results", c.ID, made)
	}
}

// textOf returns a content that is nothing but one text, "" for others.
func textOf(content []byte) string {
	if blocks := parseArray(content); len(blocks) == 1 {
		content = parseObject(blocks[0])["text"]
	}
	return stringValue(content)
}
