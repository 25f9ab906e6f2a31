package importer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/session"
)

// draft is what the records of one list are put together to: messages in the order in which they begin, those of the
// main conversation and those of its agents.
type draft struct {
	file    *File
	run     object // the run that lists the records, nil if they are values of the file
	read    record
	line    int       // of the record that is being read
	at      time.Time // the same record's, zero if it has none
	branch  string    // the agent whose conversation that record belongs to, "" for the main one
	slots   []*slot
	chats   map[string]*chatMessage // messages in pieces, by branch and id
	dialogs map[string]*dialog      // Anthropic's messages, by branch
	seen    map[[32]byte]bool       // digests of what first was asked for
	later   []entry                 // records that can be read only when all others are
	atEnd   bool                    // whether those of later are being read
}

// slot is the place of a message: where its first piece was.
type slot struct {
	branch string
	line   int
	at     time.Time
	body   func() []byte // of the whole message; nil for none
}

// record adds the messages of a record to the draft. The error is the reason why the record is not imported: skipped if
// it is no part of a conversation. The messages count even beside an error.
type record func(d *draft, e entry) error

// The reasons to reject a record that several sources share.
var (
	errNoRole    = errors.New("no role")
	errNoType    = errors.New("no record type")
	errNoContent = errors.New("the message's content is neither a string nor a list of blocks")
)

// byType returns what reads records by their type. Those of other types are skipped.
func byType(types map[string]record) record {
	return func(d *draft, e entry) error {
		kind := e.text("type")
		read := types[kind]
		switch {
		case kind == "":
			return errNoType
		case read == nil:
			return skipped(kind)
		}
		return read(d, e)
	}
}

// asItIs adds a record that is a message.
func asItIs(d *draft, e entry) error {
	if e.text("role") == "" {
		return errNoRole
	}
	d.add(e.raw)
	return nil
}

func (f *File) newDraft(run object) *draft {
	d := &draft{
		file:    f,
		run:     run,
		read:    f.kind.record,
		chats:   map[string]*chatMessage{},
		dialogs: map[string]*dialog{},
		seen:    map[[32]byte]bool{},
	}
	if f.kind.open != nil {
		d.read = f.kind.open(d)
	}
	return d
}

func (d *draft) records(all iter.Seq[entry]) {
	for e := range all {
		d.record(e)
	}
}

// record reads a record and counts it.
func (d *draft) record(e entry) {
	d.line, d.branch = e.line, ""
	d.at = e.time()
	if err := d.read(d, e); !errors.Is(err, errLater) {
		d.file.count(e, err)
	}
}

// errLater is returned for a record that was put among those of later: it is counted when it is read again.
var errLater = errors.New("the record is read later")

// postpone has a record read again after all others, once.
func (d *draft) postpone(e entry) error {
	d.later = append(d.later, e)
	return errLater
}

// note notes something odd about the record that is being read.
func (d *draft) note(text string, args ...any) { d.file.note(d.line, text, args...) }

// absentFile returns the text, as a literal, that stands in the place of a file that an export does not have.
func (d *draft) absentFile(name string) []byte {
	d.note("the file %q is not in the export: a text stands in its place", name)
	return quote("[file " + name + "]")
}

// leave counts and notes something within a record that is not imported, as a record that is skipped is counted.
func (d *draft) leave(what string) {
	d.file.count(entry{}, skipped(what))
	d.note("a %s was left out", what)
}

// leavePart leaves out a part, or a block, of a message by its type.
func (d *draft) leavePart(kind string) {
	if kind == "" {
		d.leave("part without a type")
		return
	}
	d.leave("part of type " + kind)
}

// resultTexts returns those of a result's blocks that are texts: OpenAI Chat has no others there.
func (d *draft) resultTexts(blocks [][]byte) []byte {
	found := textBlocks(blocks)
	for range len(blocks) - len(found) {
		d.leave("image of a result")
	}
	return blocksOrText(found)
}

// add appends whole messages of the record that is being read.
func (d *draft) add(bodies ...[]byte) {
	for _, body := range bodies {
		d.place(func() []byte { return body })
	}
}

// addChat appends a message of OpenAI Chat. It returns an error if the message has no role or no content.
func (d *draft) addChat(m *chatMessage) error {
	body := m.body()
	switch {
	case m.role == "":
		return errNoRole
	case body == nil:
		return skipped(m.role + " without content")
	}
	d.add(body)
	return nil
}

// place appends a message that begins in the record that is being read.
func (d *draft) place(body func() []byte) *slot {
	s := &slot{branch: d.branch, line: d.line, at: d.at, body: body}
	d.slots = append(d.slots, s)
	return s
}

// open returns the assistant's message of OpenAI Chat with that id, which begins here if it is new.
func (d *draft) open(id string) *chatMessage {
	key := d.branch + " " + id
	if d.chats[key] == nil {
		d.chats[key] = &chatMessage{role: "assistant"}
		d.place(d.chats[key].body)
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
	d.atEnd = true
	for _, e := range d.later {
		d.record(e)
	}
	d.settle()
	var names []string
	messages := map[string][]Message{}
	for _, s := range d.slots {
		body := s.body()
		if body == nil {
			continue
		}
		if messages[s.branch] == nil {
			names = append(names, s.branch)
		}
		messages[s.branch] = append(messages[s.branch], Message{Body: body, Line: s.line, At: s.at})
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
