// Package importer reads the conversation files of other programs into messages of a format that Varve stores. It is
// pure over bytes: no network, no files, no clock.
//
// Start at Read and at the table in sources.go: each source is described in a file of its own. detect.go
// asks the sources what a file is; signal.go tells the providers' formats apart by the members of their messages, and
// transcript.go finds the messages in requests and responses. records.go finds the records of a file, and
// draft.go puts what sources make of them together to conversations: turn.go has the messages of Anthropic,
// chat_message.go those of OpenAI Chat.
//
// Every message, block and string keeps its original bytes: a message that a file spreads over several lines, or
// writes in another shape, is put together from those bytes and never encoded again.
//
// Nothing is dropped in silence: a record that is no conversation is counted by kind in Report.Skipped, and one that
// should be but cannot be read is kept with its place and the reason in Report.Rejected.
package importer

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/wire"
)

// File is what one file holds.
type File struct {
	Source        Source
	Conversations []Conversation
	Report        Report
	kind          source
	wanted        string         // the branch that is read, "" for the one that was gone on with
	found         bool           // whether the file has that branch
	names         map[string]int // ids of conversations, each with the last number that was appended to it
}

// Conversation is a list of messages that belong together; each becomes one session.
type Conversation struct {
	ID       string
	Format   session.Format
	Messages []Message
}

// Message is one message with its place in the file.
type Message struct {
	Body     []byte
	Line     int       // where the message begins: the line, in a document the message's position; both from 1
	ClientID string    // the same each time the file is read, so that an import can be repeated
	At       time.Time // when it was recorded, zero if the file does not say it
}

// Report counts what became of everything in a file.
type Report struct {
	Lines    int            // records, lines that hold none, and parts of messages that were left out
	Imported int            // how many of them are conversation
	Skipped  map[string]int // the others, by kind
	Rejected []Rejected     // what cannot be read or stored
	Notes    []Note         // what was read, but is odd
}

// Rejected is a piece of a file that cannot be imported.
type Rejected struct {
	Line   int
	Reason string
}

// Note is something odd about a line that was imported all the same.
type Note struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// Read reads a file's content. id names its first conversation (SessionID makes one from a file's name), others have it
// with a suffix. from is the kind of the content, or Auto. The error is an *UnsupportedError if it is of no kind, or
// that of a context that has ended.
func Read(ctx context.Context, id string, data []byte, from Source) (*File, error) {
	return ReadBranch(ctx, id, data, from, "")
}

// ReadBranch does what Read does for one branch of a conversation that went back and on again, by the name that a note
// of Read has for it. Its id gets that name behind it. Without a name it is the branch that was gone on with.
func ReadBranch(ctx context.Context, id string, data []byte, from Source, branch string) (*File, error) {
	data, reversed, more := page(inUTF8(data))
	if err := cutOff(data); err != nil {
		return nil, err
	}
	if from == Auto {
		found, err := detect(data)
		if err != nil {
			return nil, err
		}
		from = found
	}
	kind := firstSource(func(s source) bool { return s.name == from })
	if kind.name == Auto {
		return nil, fmt.Errorf("%q is no kind of file that can be imported", from)
	}
	f := &File{Source: from, Report: Report{Skipped: map[string]int{}}, kind: kind, wanted: branch,
		names: map[string]int{}}
	if branch != "" {
		id = suffixed(id, "-"+branch)
	}
	if reversed {
		f.note(1, "the list has the newest first: it was read from its end")
	}
	if more {
		f.note(1, "the list is one page: it says that there are more (has_more)")
	}
	read := (*File).readRuns
	if kind.read != nil {
		read = kind.read
	}
	if err := read(f, id, data); err != nil {
		return nil, err
	}
	if branch != "" && !f.found {
		return nil, fmt.Errorf("the file has no branch %q: the notes of an import without one name those that it has",
			branch)
	}
	slices.SortStableFunc(f.Report.Rejected, func(a, b Rejected) int { return cmp.Compare(a.Line, b.Line) })
	for i := range f.Conversations {
		f.answerSpoken(&f.Conversations[i])
		f.Conversations[i].Messages = f.storable(f.Conversations[i])
		if err := f.noteRepairs(ctx, f.Conversations[i]); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// storable returns the messages that a session can hold, with their client ids, and rejects the others.
func (f *File) storable(c Conversation) []Message {
	kept := c.Messages[:0]
	for _, m := range c.Messages {
		if _, err := wire.Accept(c.Format, m.Body); err != nil {
			f.reject(m.Line, "the message cannot be stored: "+err.Error())
			continue
		}
		sum := sha256.Sum256(m.Body)
		m.ClientID = "i" + strconv.Itoa(len(kept)+1) + "-" + hex.EncodeToString(sum[:8])
		kept = append(kept, m)
	}
	return kept
}

// noteRepairs notes what views of a conversation will repair because its provider would refuse it: one line for each
// kind of repair. A view that gets a last message of the user is not noted: that is no fault of the file.
func (f *File) noteRepairs(ctx context.Context, c Conversation) error {
	view := make([]wire.Stored, len(c.Messages))
	for i := range c.Messages {
		view[i] = wire.Stored{Format: c.Format, Body: c.Messages[i].Body, Seq: int64(i + 1)}
	}
	made, err := wire.Render(ctx, c.Format, view, wire.Options{})
	if err != nil {
		return err
	}
	repairs := made.Repairs
	times := map[string]int{}
	for _, r := range repairs {
		times[r.Kind]++
	}
	delete(times, "last_user")
	for _, r := range repairs {
		if times[r.Kind] == 0 {
			continue
		}
		line := 1
		if r.Seq > 0 {
			line = c.Messages[r.Seq-1].Line
		}
		f.note(line, "views of %s repair what %s forbids (%s × %d): %s", c.ID, r.Rule, r.Kind, times[r.Kind], r.Detail)
		delete(times, r.Kind)
	}
	return nil
}

// add appends a conversation unless it is empty. A second one of the same id gets a number behind it.
func (f *File) add(id string, format session.Format, messages []Message) {
	if len(messages) == 0 {
		return
	}
	f.Conversations = append(f.Conversations, Conversation{ID: f.free(id), Format: format, Messages: messages})
}

// free returns the id, or the id with a number where another conversation of the file has it already.
func (f *File) free(id string) string {
	free := id
	for f.names[free] > 0 {
		f.names[id]++
		free = suffixed(id, "-"+strconv.Itoa(f.names[id]))
	}
	f.names[free] = 1
	return free
}

// skipped is the error of a record that is no part of the conversation: the kind under which it is counted.
type skipped string

func (s skipped) Error() string { return string(s) }

// count counts a record: as imported without an error, as skipped, or as rejected.
func (f *File) count(e entry, err error) {
	f.Report.Lines++
	var kind skipped
	switch {
	case err == nil:
		f.Report.Imported++
	case errors.As(err, &kind):
		f.Report.Skipped[string(kind)]++
	default:
		f.reject(e.line, err.Error())
	}
}

func (f *File) reject(line int, reason string) {
	f.Report.Rejected = append(f.Report.Rejected, Rejected{Line: line, Reason: reason})
}

func (f *File) note(line int, text string, args ...any) {
	f.Report.Notes = append(f.Report.Notes, Note{Line: line, Text: fmt.Sprintf(text, args...)})
}
