package postgres

import (
	"regexp"
	"slices"
	"strings"

	"github.com/varve-dev/varve/internal/session"
)

// The statement of several appends takes what each of them has as arrays with an entry for each append, and their
// messages as arrays with an entry for each message. Its parameters have the names of those of one append, with "each_"
// before those that are columns of a there.
var (
	eachNames = []string{
		"session", "format", "count", "tokens", "expected_seq", "pinned", "route", "request", "digest", "bytes",
		"largest", "named",
	}
	eachTypes = map[string]string{
		"session": "text", "format": "smallint", "count": "bigint", "tokens": "bigint", "expected_seq": "bigint",
		"pinned": "bigint", "route": "text", "request": "text", "digest": "bytea", "bytes": "bigint", "largest": "int",
		"named": "bool", "used": "bigint", "counted": "bigint", "usage": "jsonb", "exact_tokens": "bigint",
	}
	messageNames = []string{
		"roles", "message_tokens", "client_ids", "calls", "answers", "starts_unit", "flags", "bodies", "digests",
		"shapes", "item_ids", "numbers", "owners",
	}
)

// manySQL returns the statement of several appends of one tenant, each to another session. It returns a row for each
// append that was done, with its number.
func manySQL(armed, set string, measured []string) string {
	each := slices.Concat(eachNames, measured)
	var arrays []string
	names := []string{"tenant"}
	for _, name := range each {
		names = append(names, "each_"+name)
		arrays = append(arrays, "@each_"+name+"::"+eachTypes[name]+"[]")
	}
	found := statement("append_found", "{arrays}", strings.Join(arrays, ", "), "{columns}", strings.Join(each, ", "),
		"{named}", namedSQL)
	text := appendSQLWith(armed, set,
		"WITH grown", found+"grown", "{appends}", "found a, ", "{new}", `
	   AND s.ctid = a.place`,
		"{of_append}", ", a.n, a."+strings.Join(each, ", a."),
		"{columns}", ", item_id", "{arrays}", ", @item_ids::text[]",
		"{numbered}", ", @numbers::bigint[], @owners::bigint[])",
		"{owned}", `, owner)
	 WHERE m.owner = g.n`,
		"{number}", ", n")
	grown, rest, _ := strings.Cut(text, "RETURNING")
	own := regexp.MustCompile(`@(` + strings.Join(each, "|") + `)\b`)
	text = own.ReplaceAllString(grown, "a.$1") + "RETURNING" + own.ReplaceAllString(rest, "g.$1")
	text = strings.NewReplacer("@locked", "false", "@spared", "0").Replace(text)
	return number(slices.Concat(names, messageNames), text)
}

// manyArgs returns the parameters of the statement of several appends, which are measured the same way.
func manyArgs(all []*appending) []any {
	args := []any{
		all[0].params.tenant,
		each(all, func(a *appending) string { return a.params.session }),
		each(all, func(a *appending) int16 { return a.params.format }),
		each(all, func(a *appending) int64 { return a.params.count }),
		each(all, func(a *appending) int64 { return a.params.tokens }),
		each(all, func(a *appending) *int64 { return a.params.expectedSeq }),
		each(all, func(a *appending) int64 { return a.params.pinned }),
		each(all, func(a *appending) *string { return a.params.route }),
		each(all, func(a *appending) *string { return a.params.request }),
		each(all, func(a *appending) []byte { return a.params.digest }),
		each(all, func(a *appending) int64 { return a.params.bytes }),
		each(all, func(a *appending) int32 { return a.params.largest }),
		each(all, func(a *appending) bool { return a.params.messages.named }),
	}
	switch {
	case all[0].Usage != nil:
		args = append(args,
			each(all, func(a *appending) *int64 { return usedOf(*a.Usage) }),
			each(all, func(a *appending) int64 { return tokensOfRequest(a.Append) }),
			each(all, func(a *appending) *session.Usage { return a.Usage }))
	case all[0].ExactTokens != nil:
		args = append(args, each(all, func(a *appending) int64 { return *a.ExactTokens }))
	}
	return append(args, messagesOf(all)...)
}

func each[T any](all []*appending, of func(a *appending) T) []T {
	values := make([]T, len(all))
	for i, a := range all {
		values[i] = of(a)
	}
	return values
}

// messagesOf returns the messages of all appends by column.
func messagesOf(all []*appending) []any {
	var columns byColumn
	var shapes []string
	var items []*string
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
