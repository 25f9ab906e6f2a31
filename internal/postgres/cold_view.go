package postgres

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/varve-dev/varve/internal/persist"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/tier/frozen"
)

var coldViews = promauto.NewCounter(prometheus.CounterOpts{
	Name: "varve_cold_views_total",
	Help: "Views of cold sessions that were read from the archive, so that the session stayed there.",
})

// coldViewBytes is the size of a view above which an archive does not have it: to read that brings the session back.
const coldViewBytes = 1 << 20

// ViewOfHidden returns the fields of a hidden session's view that its archive has, nil if the archive has none: the
// view is large, or damaged, or parts lie in PostgreSQL. The session's rows must not change meanwhile.
func (s *Store) ViewOfHidden(ctx context.Context, key session.Key) ([][]byte, error) {
	if s.results.ForArchives() == persist.Postgres {
		return nil, nil
	}
	s = s.Seeing(AllSessions)
	at := session.Address{Tenant: key.Tenant}
	err := s.query(ctx, key.Tenant, `
		SELECT id
		  FROM sessions
		 WHERE tenant_id = $1 AND key = $2`, []any{key.Tenant, key.Key}, one(&at.ID))
	if err != nil {
		return nil, err
	}
	var v View
	err = s.readView(ctx, at, newestView, viewArgs(at, ViewRead{Largest: coldViewBytes}, heldBody{}), &v)
	if err == nil && v.Checkpoint > 0 && !v.LeftOut {
		err = v.checkCheckpoint()
	}
	if err != nil && !errors.Is(err, session.ErrDamaged) {
		return nil, err
	}
	if err != nil || v.LeftOut {
		return nil, nil
	}
	return v.packedFields(), nil
}

// kept returns the fields of a view that its session's row does not have.
func (v *View) kept() []*[]byte {
	return []*[]byte{
		&v.Body, &v.Proof, &v.Validator, &v.OpenCalls, &v.Units, &v.System, &v.SystemShapes, &v.Tail, &v.TailShapes,
	}
}

func (v *View) packedFields() (fields [][]byte) {
	for _, field := range v.kept() {
		fields = append(fields, *field)
	}
	return fields
}

// coldViewSQL reads the row of a cold session, and where its view lies.
var coldViewSQL = `
	SELECT ` + viewColumns + `, a.store, a.objects[1], a.view_end
	  FROM sessions s
	  JOIN session_archives a ON a.tenant_id = s.tenant_id AND a.session_key = s.key
	 WHERE s.tenant_id = $1
	   AND s.id = $2
	   AND s.frozen_at IS NOT NULL
	   AND NOT s.archived
	   AND a.state = 'archived'
	   AND a.view_end IS NOT NULL`

// coldViewInto reads the view of a cold session from its archive. ErrNotFound if there is no such session, or its view
// has to be read another way: then the session has to come back first.
func (s *Store) coldViewInto(ctx context.Context, at session.Address, read ViewRead, v *View) error {
	var kind persist.Kind
	var object uuid.UUID
	var size int
	dest := append(v.columns()[:rowColumns], &kind, &object, &size)
	err := s.Seeing(WithCold).query(ctx, at.Tenant, coldViewSQL, []any{at.Tenant, at.ID}, one(dest...))
	if err != nil {
		return err
	}
	v.begin("", nil)
	v.Cold, v.LeftOut = true, false
	if v.Version == read.Known {
		for _, field := range v.kept() {
			*field = (*field)[:0]
		}
		return nil
	}
	large := v.TailBytes+int64(v.Size) > cmp.Or(read.Largest, math.MaxInt64)
	if large || v.Tokens > cmp.Or(read.MaxTokens, math.MaxInt64) { // its messages have to be named
		return session.ErrNotFound
	}
	start, err := s.results.GetPart(ctx, session.Key{Tenant: at.Tenant, Key: v.Key}, kind, object, 0, size)
	if err == nil {
		err = v.unpack(start)
	}
	if err != nil { // what is wrong is found when the session comes back
		return session.ErrNotFound
	}
	coldViews.Inc()
	return nil
}

// unpack reads the fields that the start of an archive has of a view, and checks them.
func (v *View) unpack(start []byte) error {
	v.Units = nil // its memory is never reused
	if err := frozen.ReadView(start, v.kept()...); err != nil {
		return err
	}
	if v.Checkpoint > 0 {
		if err := v.checkCheckpoint(); err != nil {
			return err
		}
	}
	return v.checkMessages()
}
