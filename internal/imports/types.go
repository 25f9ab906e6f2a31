package imports

import (
	"errors"
	"fmt"
	"time"

	"github.com/varve-dev/varve/internal/archive"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

var (
	errTaken = errors.New("another request has taken the import over")
	errEnded = errors.New("the import has ended")
)

// stored is an import with what its answers do not show, or show in another way.
type stored struct {
	protocol.Import
	Wanted  string // the source that the caller named, "" for none
	Source  string // what the first line was recognised as, "" before that
	Named   string // the session id that the caller named for the content, "" for none
	Attempt int    // counts the requests that sent lines
	Done    int64  // acknowledged lines
	Total   *int64 // all lines, nil if unknown
	Digest  []byte // of the acknowledged lines, in the caller's encoding
}

// answer returns the import as answers show it.
func answer(i stored) protocol.Import {
	a := i.Import
	a.Progress = protocol.ImportProgress{Done: i.Done, Total: i.Total, Unit: "lines"}
	if i.Source != "" {
		a.From = &i.Source
	}
	if i.Named != "" {
		a.Session = &i.Named
	}
	return a
}

// selected are lines of an import: those from From on, only of an Outcome unless that is "".
type selected struct {
	From    int64
	Outcome protocol.LineOutcome
	Limit   int
}

// maxBatch is the largest number of lines of an import that one transaction stores.
const maxBatch = 1000

// entry is a line of an import: a session, a message, the end of a session, or a line whose outcome is known already.
type entry struct {
	Line    int64 // in the file
	Session *madeSession
	Message *message
	End     *archive.End
	Outcome protocol.LineOutcome
	Detail  string
	More    int64 // how many lines after it have the same outcome, and nothing else: empty ones
}

// set records the line's outcome.
func (l *entry) set(outcome protocol.LineOutcome, detail string, args ...any) {
	l.Outcome, l.Detail = outcome, fmt.Sprintf(detail, args...)
}

// of returns the id of the session that a line is about, "" for none, and whether it may create it.
func (l *entry) of() (id string, creates bool) {
	switch {
	case l.Session != nil:
		return l.Session.ID, true
	case l.Message != nil:
		return l.Message.Session, true
	case l.End != nil:
		return l.End.Session, false
	}
	return "", false
}

// madeSession is a session that a line creates, unless one with this id exists.
type madeSession struct {
	ID        string
	Change    session.Change
	Tokens    *session.TokenHistory
	CreatedAt *time.Time // nil takes the time of the import
}

// message is a message that a line brings. With a Seq it is stored there, or compared with the message that is there;
// without one it is appended.
type message struct {
	Session string
	Format  session.Format
	// After is the client id of the message before it in its file, "" for the first; nil if it may be appended
	// anywhere.
	After *string
	session.ImportedMessage
}
