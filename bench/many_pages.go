package main

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// rowOfPages is how many pages a call must look at of a table or an index, in either database, to have a row.
const rowOfPages = 1

// pagesByName are the pages of each table, with what its long values are in, and of each index.
type pagesByName map[string]float64

// addPages adds the pages that all calls of a database looked at, by a sign.
func (p pagesByName) addPages(ctx context.Context, c *crowd, sign float64) error {
	rows, err := c.admin.Query(ctx, `
		SELECT relname, heap_blks_hit + heap_blks_read + coalesce(toast_blks_hit + toast_blks_read
		                + tidx_blks_hit + tidx_blks_read, 0)
		  FROM pg_statio_all_tables
		 UNION ALL
		SELECT indexrelname, idx_blks_hit + idx_blks_read
		  FROM pg_statio_all_indexes
		 WHERE schemaname <> 'pg_toast'`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var pages float64
		if err := rows.Scan(&name, &pages); err != nil {
			return err
		}
		p[name] += sign * pages
	}
	return rows.Err()
}

// addPageRows adds a row for each table and index of which a call looks at many pages, those of the most first.
func (b *bench) addPageRows(name string, many, few *latencies) {
	ours, theirs := many.byName, few.byName
	larger := func(name string) float64 {
		return max(ours[name], theirs[name])
	}
	names := slices.SortedFunc(maps.Keys(ours), func(a, b string) int {
		if x, y := larger(a), larger(b); x != y {
			return int(y - x)
		}
		return strings.Compare(a, b)
	})
	for _, of := range names {
		if larger(of) < rowOfPages*fewSessions {
			continue
		}
		b.add(row{Name: name + ": pages of " + of, Unit: "pages", Value: ours[of] / fewSessions}.
			beside(theirs[of] / fewSessions))
	}
}
