package imports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/ingest"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/protocol"
	"github.com/varve-dev/varve/internal/rawjson"
	"github.com/varve-dev/varve/internal/session"
)

// hasPins reports whether the end of a session lists pins.
func hasPins(end []byte) bool {
	for key := range rawjson.Members(end, 0) {
		if string(key.Of(end)) == `"pins"` {
			return true
		}
	}
	return false
}

// restorePins pins what the end of a session lists, whose messages are stored. A pin that cannot be restored rejects
// the line; the others are restored nevertheless.
func (f *feed) restorePins(ctx context.Context, d *request.Document, read *entry) error {
	if len(d.Problems) > 0 || len(read.End.Pins) == 0 {
		return nil
	}
	if len(read.End.Pins) > session.MaxPins {
		d.Wrong("/pins", request.InvalidRequest, "a session has %d pins at most, not %d", session.MaxPins,
			len(read.End.Pins))
		return nil
	}
	at := session.Address{Tenant: f.Tenant, ID: read.End.Session}
	known, err := f.knownPins(ctx, at)
	var lost []string
	for i := range read.End.Pins {
		p := &read.End.Pins[i]
		if err != nil || known[p.Ref] {
			continue
		}
		err = f.restorePin(ctx, at, p)
		isLost := func(reason error) bool { return errors.Is(err, reason) }
		if slices.ContainsFunc(lostPins, isLost) {
			lost, err = append(lost, fmt.Sprintf("pin %s: %s", p.Ref, err)), nil
		}
	}
	if len(lost) > 0 {
		read.set(protocol.LineRejected, "%s", strings.Join(lost, "; "))
	}
	return err
}

// knownPins returns the refs of the pins that a session has already: it keeps them as they are.
func (f *feed) knownPins(ctx context.Context, at session.Address) (map[string]bool, error) {
	found, err := f.Store.Pins(ctx, at)
	if errors.Is(err, session.ErrNotFound) {
		err = nil // so that each pin is lost
	}
	refs := map[string]bool{}
	for i := range found {
		refs[found[i].Ref] = true
	}
	return refs, err
}

var errOtherMessage = errors.New("the session has another message there")

// lostPins are the errors that are of a pin, and not of the store.
var lostPins = []error{session.ErrNotFound, session.ErrTooManyPins, ingest.ErrNothingToPin, errOtherMessage}

func (f *feed) restorePin(ctx context.Context, at session.Address, archived *session.ArchivedPin) error {
	ref, err := session.ParsePinRef(archived.Ref)
	if err != nil {
		return err
	}
	p, m, err := ingest.Pinned(ctx, f.Store.Store, at, ref)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(m.Body); archived.SHA256 != "" && hex.EncodeToString(sum[:]) != archived.SHA256 {
		return errOtherMessage
	}
	p.CreatedAt = archived.CreatedAt
	p.Note = postgres.Text(archived.Note[:min(len(archived.Note), session.MaxIDBytes)])
	_, err = f.Store.PutPin(ctx, at, p, math.MaxInt)
	return err
}
