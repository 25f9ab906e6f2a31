package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/varve-dev/varve/internal/api/request"
	"github.com/varve-dev/varve/internal/postgres"
	"github.com/varve-dev/varve/internal/session"
	"github.com/varve-dev/varve/internal/view"
)

// wholeUnits is the size of a view of which all units are read for a page of them.
const wholeUnits = 512 << 10

// readUnits handles GET /v1/sessions/{id}/context/units: the stored view unit by unit, beside what each stands for.
func (s *Server) readUnits(req *request.Request) error {
	q := req.Query()
	want := viewRequest{at: req.Address()}
	want.Largest = s.smallView()
	want.Admit, want.Heavy = req.Admit, req.Heavy
	want.readAsOf(q)
	from := q.Integer("from_seq", 1, session.MaxSessionMessages+1, 1)
	limit := int(q.Integer("limit", 1, session.MaxMessagePage, defaultMessages))
	repairs := q.Flag("repairs")
	want.readFormat(q)
	want.dialect = dialectOf(q)
	if err := cmp.Or(req.Err(), want.checkFormat()); err != nil {
		return err
	}
	stored := views.Get().(*postgres.View)
	defer freeView(stored)
	if !repairs {
		want.Largest = min(want.Largest, wholeUnits)
	}
	want.MaxTokens = 1 // a view of more is read with the tokens of its messages
	err := s.openView(req, want, postgres.Version{}, stored)
	want.MaxTokens = 0
	if err == nil {
		err = want.settleDialect(stored)
	}
	switch {
	case err != nil || !stored.LeftOut:
	case repairs:
		err = want.Fill(req.Ctx, req.Store, want.at, stored)
	default:
		err = want.FillStretch(req.Ctx, req.Store, want.at, stored, from, limit)
	}
	if err != nil {
		return err
	}
	var page unitPage
	var notes view.Notes
	err = req.Heavy(stored.Bytes(), func() (err error) {
		if page, err = unitsOf(req.Ctx, stored, want.Format, from, limit); err == nil && repairs {
			notes, err = repairsOf(req, &want, stored)
		}
		return err
	})
	if err != nil {
		return err
	}
	body := req.Buffer()
	body.B = page.append(body.B, stored)
	if len(notes.Repairs) > 0 {
		body.B = append(view.AppendMember(body.B[:len(body.B)-1], "repairs", notes.Repairs), '}')
	}
	return req.Bytes(http.StatusOK, request.JSONType, body.B)
}

// repairsOf returns what a read of a view repairs. One of which no valid view can be made has no repairs either.
func repairsOf(req *request.Request, want *viewRequest, stored *postgres.View) (notes view.Notes, err error) {
	if want.AsStored(stored) {
		return notes, nil
	}
	_, notes, err = want.Make(req.Ctx, stored)
	if errors.As(err, new(*view.BrokenError)) {
		return view.Notes{}, nil
	}
	return notes, err
}

// unitPage is a page of units.
type unitPage struct {
	units []view.Placed
	next  *int64 // where the next page begins, nil at the end
}

// unitsOf returns the units from a seq on, until they have as many messages as a page may, in a format or as they are
// stored.
func unitsOf(ctx context.Context, v *postgres.View, target session.Format, from int64, limit int) (unitPage, error) {
	all, err := view.Place(v)
	if err != nil {
		return unitPage{}, err
	}
	var page unitPage
	messages, size := 0, 0
	for i := range all {
		u := &all[i]
		if u.Last < from {
			continue
		}
		more := u.Bytes()
		if messages > 0 && (messages+len(u.Messages) > limit || size+more > maxMessagePageBytes) {
			page.next = &u.First
			break
		}
		messages, size = messages+len(u.Messages), size+more
		if err := u.Translate(ctx, target); err != nil {
			return page, err
		}
		page.units = append(page.units, *u)
	}
	return page, nil
}

// append writes a protocol.ViewUnits.
func (p *unitPage) append(dst []byte, v *postgres.View) []byte {
	dst = strconv.AppendInt(append(dst, `{"checkpoint":`...), int64(v.Checkpoint), 10)
	dst = view.AppendMember(dst, "through_seq", v.Through)
	dst = view.AppendMember(dst, "last_seq", v.LastSeq)
	dst = view.AppendMember(dst, "tokens", v.Tokens)
	dst = view.AppendMember(dst, "degraded", v.Damage != nil)
	dst = append(dst, `,"data":[`...)
	dst = view.AppendMember(append(p.appendUnits(dst), ']'), "has_more", p.next != nil)
	return append(view.AppendMember(dst, "next_seq", p.next), '}')
}

func (p *unitPage) appendUnits(dst []byte) []byte {
	for i := range p.units {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendUnit(dst, &p.units[i])
	}
	return dst
}

// appendUnit writes a protocol.ViewUnit. Its messages keep their bytes.
func appendUnit(dst []byte, u *view.Placed) []byte {
	dst = strconv.AppendInt(append(dst, `{"first_seq":`...), u.First, 10)
	dst = view.AppendMember(dst, "last_seq", u.Last)
	dst = view.AppendMember(dst, "tokens", u.Tokens)
	dst = view.AppendMember(dst, "pinned", u.Pinned)
	dst = append(dst, `,"messages":[`...)
	for i := range u.Messages {
		m := &u.Messages[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"seq":`...)
		if m.Seq > 0 {
			dst = strconv.AppendInt(dst, m.Seq, 10)
		} else {
			dst = append(dst, "null"...)
		}
		dst = append(view.AppendMember(dst, "format", m.Format), `,"message":`...)
		dst = append(append(dst, m.Body...), '}')
	}
	return append(dst, "]}"...)
}
