package readback

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/session"
)

// ScanMemory is about how much memory a grep or a search takes, in bytes: a large result or message, packed and whole.
const ScanMemory = 16 << 20

// The bounds of a grep.
const (
	DefaultMatches = 50
	MaxMatches     = 500
	MaxContext     = 20
	MaxRefs        = 100

	literalBytes = 1 << 30 // that one call scans
	regexBytes   = 8 << 20
	grepTime     = 250 * time.Millisecond
)

// GrepWanted says what to look for. Zero fields mean the defaults.
type GrepWanted struct {
	Refs          []string // of results or messages; none for all results that are listed
	Pattern       string
	Regex         bool // the pattern is a regular expression of RE2, else a literal text
	IgnoreCase    bool
	Text          bool // look in the text of results that are JSON blocks, as Source.Text returns it
	Before, After int  // lines around a match
	MaxMatches    int
	MaxBytes      int
	Cursor        string // of the answer to go on from, whose other fields were the same

	bytes int64         // instead of literalBytes and regexBytes
	time  time.Duration // instead of grepTime
}

func (w *GrepWanted) check() error {
	if w.MaxMatches == 0 {
		w.MaxMatches = DefaultMatches
	}
	for _, field := range []bound{
		{"before", int64(w.Before), 0, MaxContext}, {"after", int64(w.After), 0, MaxContext},
		{"max_matches", int64(w.MaxMatches), 1, MaxMatches}, {"refs", int64(len(w.Refs)), 0, MaxRefs},
	} {
		if err := field.check(); err != nil {
			return err
		}
	}
	return checkBytes(&w.MaxBytes)
}

// budget returns what the call may spend.
func (w *GrepWanted) budget() *budget {
	b := &budget{bytes: literalBytes, deadline: time.Now().Add(grepTime)}
	if w.Regex {
		b.bytes = regexBytes
	}
	if w.bytes > 0 {
		b.bytes = w.bytes
	}
	if w.time > 0 {
		b.deadline = time.Now().Add(w.time)
	}
	return b
}

// Grep looks for a pattern line by line in results and messages, in the order of the refs, or in all results that are
// listed, by seq. It stops at MaxMatches, at MaxBytes, or when its budget is spent; NextCursor continues exactly there.
//
// Errors: InvalidError, ErrNotFound for a ref, ErrBusy if the tenant has too many greps and searches at once.
func Grep(ctx context.Context, store *postgres.Store, at session.Address, want GrepWanted) (*protocol.Matches, error) {
	if err := want.check(); err != nil {
		return nil, err
	}
	p, err := compile(want.Pattern, want.Regex, want.IgnoreCase)
	if err != nil {
		return nil, err
	}
	g := &grep{GrepWanted: want, store: store, at: at}
	g.mark = g.marker()
	if err := g.begin(); err != nil {
		return nil, err
	}
	done, err := takeTurn(ctx, at.Tenant)
	if err != nil {
		return nil, err
	}
	defer done()
	g.scan = scan{pattern: p, budget: want.budget(), next: g.first}
	for ref, err := range g.refs(ctx) {
		if err == nil {
			err = g.one(ctx, ref)
		}
		if err != nil {
			return nil, err
		}
		if g.stopped != "" {
			break
		}
	}
	return g.answer(), nil
}

// grep is a call of Grep.
type grep struct {
	GrepWanted
	scan
	protocol.Matches
	store   *postgres.Store
	at      session.Address
	mark    string // that its cursors have
	current string // the ref to begin with, "" for the first
	first   place
	written int // bytes of groups
}

// begin goes to the place of the cursor.
func (g *grep) begin() error {
	g.first = beginning
	if g.Cursor == "" {
		return nil
	}
	var ok bool
	g.current, g.first, ok = readCursor(g.Cursor, g.mark)
	if !ok || len(g.Refs) > 0 && !slices.Contains(g.Refs, g.current) {
		return errCursor
	}
	return nil
}

// marker tells the cursors of different calls apart.
func (g *grep) marker() string {
	return markOf(g.at.Tenant.String(), g.at.ID, strings.Join(g.Refs, " "), g.Pattern,
		fmt.Sprint(g.Regex, g.IgnoreCase, g.Text))
}

// refs returns the refs to look in, from the cursor's on.
func (g *grep) refs(ctx context.Context) iter.Seq2[string, error] {
	if len(g.Refs) == 0 {
		return listed(ctx, g.store, g.at, g.current)
	}
	return func(yield func(string, error) bool) {
		for _, ref := range g.Refs[max(slices.Index(g.Refs, g.current), 0):] {
			if !yield(ref, nil) {
				return
			}
		}
	}
}

// listed returns the refs of a session's results from one on, by seq and part.
func listed(ctx context.Context, store *postgres.Store, at session.Address, from string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		after := persist.Place{Part: -1}
		if from != "" {
			ref, err := session.ParseResultRef(from)
			if err != nil {
				yield("", errCursor)
				return
			}
			after = persist.Place{Seq: ref.Seq, Part: ref.Part - 1}
		}
		for {
			page, err := store.Results(ctx, at, persist.Filter{}, after, listedPage)
			if err != nil {
				yield("", err)
				return
			}
			for i := range page {
				if !yield(page[i].Ref, nil) {
					return
				}
			}
			if len(page) < listedPage {
				return
			}
			last := page[len(page)-1]
			after = persist.Place{Seq: last.Seq, Part: last.Part}
		}
	}
}

// listedPage is how many results are listed at once.
const listedPage = 100

// one looks in what one ref names. What is damaged is left out if it is one of several.
func (g *grep) one(ctx context.Context, ref string) error {
	src, of, err := g.open(ctx, ref)
	if g.Results == 0 {
		g.deadline = g.GrepWanted.budget().deadline // a call gets on even if the first one is slow to open
	}
	if err == nil {
		if g.next.at > of.Size() {
			return errCursor
		}
		err = g.look(ctx, src.Ref, of)
	}
	if errors.Is(err, session.ErrDamaged) && len(g.Refs) != 1 {
		g.Note = fmt.Sprintf("%s is damaged: it was not looked in", ref)
		g.found = g.found[:0]
		g.next = beginning
		return nil
	}
	return err
}

func (g *grep) open(ctx context.Context, ref string) (*Source, *persist.Content, error) {
	src, err := Open(ctx, g.store, g.at, ref)
	if err != nil {
		return nil, nil, err
	}
	of, err := src.Lines(ctx, g.Text)
	if len(g.Refs) == 1 && err == nil {
		sum := of.SHA256()
		g.SHA256 = hex.EncodeToString(sum[:])
		g.TotalBytes, g.TotalLines = new(of.Size()), new(of.Lines())
	}
	return src, of, err
}

// look scans one content and writes what it finds.
func (g *grep) look(ctx context.Context, ref string, of *persist.Content) error {
	g.wanted = g.GrepWanted.MaxMatches - g.Matches.Matches
	g.Results++
	if err := g.run(ctx, of); err != nil {
		return err
	}
	w := &groups{grep: g, ref: ref, r: newReader(of)}
	if err := w.write(ctx); err != nil {
		return err
	}
	if g.stopped != "" {
		g.NextCursor = new(cursorAt(ref, g.next, g.mark))
	}
	g.next = beginning
	g.found = g.found[:0]
	return nil
}

func (g *grep) answer() *protocol.Matches {
	if g.Groups == nil {
		g.Groups = []protocol.MatchGroup{}
	}
	g.ScannedBytes = g.scanned
	g.StoppedBy = g.stopped
	g.Truncated = g.stopped != ""
	if g.Matches.Matches == 0 && g.Note == "" {
		g.Note = "no match in what was scanned"
	}
	return &g.Matches
}
