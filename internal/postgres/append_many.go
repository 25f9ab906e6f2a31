package postgres

import (
	"strings"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/varve-dev/varve/internal/session"
)

// appendManyNames are all parameters of the statement of several appends: what each of them has, with an entry for each
// append, and their messages, with an entry for each message.
var appendManyNames = strings.Fields(`
	tenant each_session each_format each_count each_tokens each_expected_seq
	each_basis_format each_basis_model each_basis_window each_pinned each_bytes each_largest
	each_route each_request each_digest each_named each_used each_counted each_usage each_exact_tokens
	roles message_tokens client_ids calls answers starts_unit flags bodies digests shapes item_ids numbers owners`)

// manyStatement returns the statement of several appends, and its parameters.
func manyStatement(all []*appending) (sql string, args []any) {
	var form appendForm
	for _, a := range all {
		form.keyed = form.keyed || a.params.route != nil || a.params.messages.named
		form.measured = form.measured || a.params.usage != nil || a.params.exact != nil
	}
	s := appendManySQL()[form]
	return s.sql, s.args(append([]any{
		all[0].params.tenant,
		each(all, func(p *appendParams) string { return p.session }),
		each(all, func(p *appendParams) int16 { return p.format }),
		each(all, func(p *appendParams) int64 { return p.count }),
		each(all, func(p *appendParams) int64 { return p.tokens }),
		each(all, func(p *appendParams) *int64 { return p.expectedSeq }),
		each(all, func(p *appendParams) *int16 { return p.basis.format }),
		each(all, func(p *appendParams) *string { return p.basis.model }),
		each(all, func(p *appendParams) *int64 { return p.basis.window }),
		each(all, func(p *appendParams) int64 { return p.pinned }),
		each(all, func(p *appendParams) int64 { return p.bytes }),
		each(all, func(p *appendParams) int32 { return p.largest }),
		each(all, func(p *appendParams) *string { return p.route }),
		each(all, func(p *appendParams) *string { return p.request }),
		each(all, func(p *appendParams) []byte { return p.digest }),
		each(all, func(p *appendParams) bool { return p.messages.named }),
		each(all, func(p *appendParams) *int64 { return p.used }),
		each(all, func(p *appendParams) int64 { return p.counted }),
		each(all, func(p *appendParams) *session.Usage { return p.usage }),
		each(all, func(p *appendParams) *int64 { return p.exact }),
	}, messagesOf(all)...))
}

// each returns an array, which pgx encodes without reflection.
func each[T any](all []*appending, of func(p *appendParams) T) pgtype.FlatArray[T] {
	values := make(pgtype.FlatArray[T], len(all))
	for i, a := range all {
		values[i] = of(&a.params)
	}
	return values
}

// messagesOf returns the messages of all appends by column.
func messagesOf(all []*appending) []any {
	var columns byColumn
	var shapes []string
	var items pgtype.FlatArray[*string]
	var numbers, owners []int64
	for i, a := range all {
		columns.add(&a.params.messages)
		shapes = append(shapes, a.params.shapes...)
		items = append(items, a.params.items...)
		for n := range a.params.count {
			if a.params.items == nil {
				items = append(items, nil)
			}
			numbers = append(numbers, n+1)
			owners = append(owners, int64(i+1))
		}
	}
	return append(columns.args(), shapes, items, numbers, owners)
}
