package importer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"iter"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// draft is what the records of one list are put together to: messages in the order in which they begin, those of the
// main conversation and those of its agents.
type draft struct {
	file    *File
	run     object // the run that lists the records, nil for JSON lines
	line    int    // of the record that is being read
	branch  string // the agent whose conversation that record belongs to, "" for the main one
	slots   []*slot
	chats   map[string]*chatMessage // messages in pieces, by branch and id
	dialogs map[string]*dialog      // Anthropic's messages, by branch
	seen    map[[32]byte]bool       // digests of what first was asked for
}

// slot is the place of a message: where its first piece was.
type slot struct {
	branch string
	line   int
	body   []byte       // of a message that is whole
	chat   *chatMessage // of OpenAI Chat, in pieces
	turn   *turn        // of Anthropic, with the results of its calls
}

// reader returns the messages that a record holds. The error is the reason why the record is not imported: skipped if
// it is no part of a conversation. The messages count even beside an error.
type reader func(e entry) ([][]byte, error)

// perRecord makes a source's open of a reader that reads each record by itself.
func perRecord(read reader) func(*draft) reader {
	return func(*draft) reader { return read }
}

// adding makes a reader of a function that adds a record's messages to the draft by itself.
func adding(read func(e entry) error) reader {
	return func(e entry) ([][]byte, error) { return nil, read(e) }
}

// skipped is the error of a record that is no part of the conversation: the kind under which it is counted.
type skipped string

func (s skipped) Error() string { return string(s) }

// required are the members that a source may require of its records, with the reason to reject one without it.
var required = map[string]error{"role": errNoRole, "type": errNoType}

// The reasons to reject a record that several sources share.
var (
	errNoRole    = errors.New("no role")
	errNoType    = errors.New("no record type")
	errNoContent = errors.New("the message's content is neither a string nor a list of blocks")
)

func (f *File) newDraft(run object) *draft {
	return &draft{
		file:    f,
		run:     run,
		chats:   map[string]*chatMessage{},
		dialogs: map[string]*dialog{},
		seen:    map[[32]byte]bool{},
	}
}

func (d *draft) read(records iter.Seq[entry], read reader) {
	for e := range records {
		d.record(e, read)
	}
}

// record reads a record, and counts it as imported, skipped or rejected.
func (d *draft) record(e entry, read reader) {
	d.line, d.branch = e.line, ""
	err := required[d.file.kind.required]
	if err == nil || e.text(d.file.kind.required) != "" {
		var bodies [][]byte
		bodies, err = read(e)
		d.add(bodies...)
	}
	var kind skipped
	switch {
	case err == nil:
		d.file.Report.Imported++
	case errors.As(err, &kind):
		d.file.Report.Skipped[string(kind)]++
	default:
		d.file.reject(e.line, e.raw, "%s", err)
	}
}

// add appends whole messages of the record that is being read.
func (d *draft) add(bodies ...[]byte) {
	for _, body := range bodies {
		d.place(&slot{body: body})
	}
}

// addPrompt appends a system prompt that is beside the records, if it is a string that is not empty.
func (d *draft) addPrompt(prompt []byte) {
	if nonEmpty(prompt) != nil {
		d.line = 1
		d.add(message("system", prompt))
	}
}

// place appends a message that begins in the record that is being read.
func (d *draft) place(s *slot) *slot {
	s.branch, s.line = d.branch, d.line
	d.slots = append(d.slots, s)
	return s
}

// open returns the assistant's message of OpenAI Chat with that id, which begins here if it is new.
func (d *draft) open(id string) *chatMessage {
	key := d.branch + " " + id
	if d.chats[key] == nil {
		d.chats[key] = &chatMessage{role: "assistant"}
		d.place(&slot{chat: d.chats[key]})
	}
	return d.chats[key]
}

// first reports whether the draft meets a key for the first time.
func (d *draft) first(key ...[]byte) bool {
	sum := sha256.Sum256(bytes.Join(key, []byte{'\n'}))
	again := d.seen[sum]
	d.seen[sum] = true
	return !again
}

// finish appends the conversations to the file. The main one has the id, those of agents have their names behind it. If
// there is only one, it is the main one.
func (d *draft) finish(id string) {
	var names []string
	messages := map[string][]Message{}
	for _, s := range d.slots {
		if list := s.messages(); len(list) > 0 {
			if messages[s.branch] == nil {
				names = append(names, s.branch)
			}
			messages[s.branch] = append(messages[s.branch], list...)
		}
	}
	main := ""
	if len(names) == 1 || len(names) > 0 && d.file.kind.firstIsMain {
		main = names[0]
	}
	for _, name := range names {
		full := id
		if name != main {
			full = suffixed(id, d.file.kind.infix+strings.TrimPrefix(name, unnamed))
		}
		d.file.add(full, session.Format(d.file.kind.into), messages[name])
	}
}

// unnamed begins the names of agents that have no id in the file: no id begins with it.
const unnamed = "\x00"

// messages returns what stands in a slot: nothing for a message in pieces that is empty.
func (s *slot) messages() []Message {
	if s.turn != nil {
		return s.turn.messages(s.line)
	}
	body := s.body
	if s.chat != nil {
		body = s.chat.body()
	}
	if body == nil {
		return nil
	}
	return []Message{{Body: body, Line: s.line}}
}
