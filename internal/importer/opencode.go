package importer

import "strings"

// An export (opencode export) is a session with its messages and their parts. Each step of the model, which begins with
// step-start, becomes a message with its texts, thoughts and calls, and one for the result of each call.
//
//   - What was undone (revert) is another branch.
//   - Snapshots, patches and the ends of steps say nothing to the model.
var opencode = source{
	name:   OpenCode,
	title:  "opencode's exports",
	detect: marked("info.id messages.0.info.role messages.0.parts[]", "info.sessionID info.role parts[]"),
	into:   OpenAIChat,
	runs:   layout{lists: []string{"messages"}, bare: true},
	open: func(d *draft) record {
		return (&opencodeLog{revert: d.run.text("info.revert.messageID")}).message
	},
}

// opencodeLog is a session being read.
type opencodeLog struct {
	revert string // the first message that was undone, "" for none
	undone bool
}

func (l *opencodeLog) message(d *draft, e entry) error {
	d.at = moment(e.at("info.time.created"))
	role := e.text("info.role")
	l.undone = l.undone || l.revert != "" && e.text("info.id") == l.revert
	switch {
	case l.undone && d.file.wanted == "reverted":
		d.file.found = true
	case l.undone:
		if d.first([]byte("revert")) {
			d.note("this message and those behind it were undone: they are imported with branch reverted")
		}
		return anotherBranch
	case role == "":
		return errNoRole
	}
	step := &opencodeStep{draft: d, said: &chatMessage{role: role}}
	for part := range objects(e.object["parts"]) {
		step.part(part)
	}
	step.end()
	if step.added == 0 {
		return skipped(role + " without content")
	}
	return nil
}

// opencodeStep is a step being read.
type opencodeStep struct {
	draft   *draft
	said    *chatMessage
	results [][]byte
	added   int
}

func (s *opencodeStep) part(part object) {
	switch kind := part.text("type"); kind {
	case "step-start":
		s.end()
	case "text":
		if part.is("ignored") {
			s.draft.leave("text that the model was not shown")
			break
		}
		s.said.addTexts(part["text"])
	case "reasoning":
		s.said.think(part["text"])
	case "tool":
		s.said.addCall(part["callID"], part["tool"], part.at("state.input"))
		if result := part.first("state.output", "state.error"); result != nil {
			s.results = append(s.results, resultMessage(part["callID"], inString(result)))
		}
		for range parseArray(part.at("state.attachments")) {
			s.draft.leave("file of a result")
		}
	case "file":
		if linked(part["url"]) && strings.HasPrefix(part.text("mime"), "image/") {
			s.said.addImages(part["url"])
			break
		}
		s.said.addText(quote("[file " + part.text("filename") + "]"))
		s.draft.note("the file %q is not imported: a text stands in its place", part.text("filename"))
	case "step-finish", "snapshot", "patch":
	default:
		s.draft.leavePart(kind)
	}
}

// end adds the step's messages.
func (s *opencodeStep) end() {
	if body := s.said.body(); body != nil {
		s.draft.add(body)
		s.draft.add(s.results...)
		s.added++
	}
	s.said, s.results = &chatMessage{role: s.said.role}, nil
}
