package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/importer"
)

// storageWindow is the window of the sessions whose storage is measured, in tokens.
const storageWindow = 32_000

// The goals bound bytes in PostgreSQL, indexes included, by the raw bytes of the messages.
const (
	storageGoal = "<= 0.45"
	searchGoal  = "<= 0.2"
	allGoal     = "<= 0.8"
)

// measureStorage imports the recorded conversations, compacts them twice, waits until their old messages are packed,
// and compares what those that were compacted take with the bytes that came in.
func measureStorage(ctx context.Context, b *bench) error {
	s, err := b.openSite(ctx, "storage", ".")
	if err != nil {
		return err
	}
	imported, err := s.importAll(ctx, os.Getenv("VARVE_DATA"))
	if err != nil {
		return err
	}
	if imported == 0 {
		b.note("storage: not measured, because there are no recorded conversations")
		return nil
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	if _, err := s.varve(ctx, "recompact", "start"); err != nil {
		return err
	}
	if err := s.rest(ctx); err != nil {
		return err
	}
	if err := s.awaitNone(ctx, `SELECT count(*) FROM search_sessions WHERE due_since IS NOT NULL`); err != nil {
		return err
	}
	if err := s.addAll(ctx, b); err != nil {
		return err
	}
	if err := s.deleteOthers(ctx); err != nil {
		return err
	}
	return s.addStorage(ctx, b)
}

// varve runs a command of the command line against the site's API.
func (s *site) varve(ctx context.Context, args ...string) (string, error) {
	args = append(args, "--url", "http://"+s.addr, "--key", s.key)
	return s.output(ctx, filepath.Join(s.dir, "varve"), args...)
}

// importAll imports every file of a folder as a session of its own. A file that is no conversation is none.
func (s *site) importAll(ctx context.Context, dir string) (imported int, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) && path == dir {
			return nil
		}
		ext := filepath.Ext(path)
		if err != nil || entry.IsDir() || filepath.Dir(path) == dir || ext != ".json" && ext != ".jsonl" {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		_, err = s.varve(ctx, "import", "--rejected", filepath.Join(s.dir, "rejected"),
			"--window-tokens", fmt.Sprint(storageWindow), "--session", importer.SessionID(filepath.ToSlash(name)), path)
		if err == nil {
			imported++
		}
		return ctx.Err()
	})
	return imported, err
}

// rest waits until no job is left that compacts or packs.
func (s *site) rest(ctx context.Context) error {
	return s.awaitNone(ctx, `
		SELECT count(*)
		  FROM river_job
		 WHERE kind IN ('compact', 'recompact', 'offload') AND finalized_at IS NULL
		   AND scheduled_at < now() + interval '10 seconds'`)
}

// awaitNone waits until a statement counts none.
func (s *site) awaitNone(ctx context.Context, sql string) error {
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		var live int
		err := s.admin.QueryRow(ctx, sql).Scan(&live)
		if err != nil || live == 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deleteOthers deletes the sessions that are too short to be compacted.
func (s *site) deleteOthers(ctx context.Context) error {
	rows, err := s.admin.Query(ctx, `
		SELECT id
		  FROM sessions
		 WHERE checkpoint_n = 0`)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	c := s.newClient()
	for _, id := range ids {
		if err := c.call(c.request("DELETE", sessionPath(id), nil), http.StatusNoContent); err != nil {
			return err
		}
	}
	return err
}

// storageTables are the tables that have a session's data, those that refer to others first.
var storageTables = []string{
	"results", "result_chunks", "result_bodies", "checkpoints", "runs", "message_packs", "messages", "sessions",
}

// searchTables are those of the search over all sessions.
var searchTables = []string{"search_blocks", "search_sessions"}

// addAll adds a row for what the index of the search takes, and one for all tables, of all sessions.
func (s *site) addAll(ctx context.Context, b *bench) error {
	search, tables, err := s.sizes(ctx, searchTables)
	if err != nil {
		return err
	}
	var raw, all float64
	err = s.admin.QueryRow(ctx, `
		SELECT sum(coalesce(bytes, octet_length(body))),
		       (SELECT sum(pg_total_relation_size(oid))
		          FROM pg_class
		         WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace)
		  FROM messages`).Scan(&raw, &all)
	if err != nil {
		return err
	}
	b.add(
		row{Name: "search index, of the messages' bytes", Unit: "bytes", Value: search, Goal: searchGoal}.beside(raw),
		row{Name: "storage of all sessions, all included", Unit: "bytes", Value: all, Goal: allGoal}.beside(raw),
	)
	b.note("search index: %s", tables)
	return nil
}

// addStorage adds a row for what the sessions take after VACUUM FULL, one for what they take before, and a note of each
// table.
func (s *site) addStorage(ctx context.Context, b *bench) error {
	var raw float64
	var sessions int
	err := s.admin.QueryRow(ctx, `
		SELECT sum(coalesce(bytes, octet_length(body))), count(DISTINCT session_key)
		  FROM messages`).Scan(&raw, &sessions)
	if err != nil {
		return err
	}
	before, _, err := s.sizes(ctx, storageTables)
	if err != nil {
		return err
	}
	if _, err := s.admin.Exec(ctx, `VACUUM FULL `+strings.Join(storageTables, ", ")); err != nil {
		return err
	}
	after, tables, err := s.sizes(ctx, storageTables)
	if err != nil {
		return err
	}
	b.add(
		row{Name: "storage of compacted sessions, indexes included, after VACUUM FULL", Unit: "bytes", Value: after,
			Goal: storageGoal}.beside(raw),
		row{Name: "storage of compacted sessions, before VACUUM FULL", Unit: "bytes", Value: before}.beside(raw),
	)
	b.note("storage: %d sessions with %.0f bytes of messages; tables with their indexes: %s", sessions, raw, tables)
	return nil
}

// sizes adds up the tables with their indexes, and lists them.
func (s *site) sizes(ctx context.Context, of []string) (sum float64, list string, err error) {
	var parts []string
	for _, table := range of {
		var all, indexes float64
		err := s.admin.QueryRow(ctx, `
			SELECT pg_total_relation_size($1::regclass), pg_indexes_size($1::regclass)`, table).Scan(&all, &indexes)
		if err != nil {
			return 0, "", err
		}
		sum += all
		parts = append(parts, fmt.Sprintf("%s %.0f (indexes %.0f)", table, all, indexes))
	}
	return sum, strings.Join(parts, ", "), nil
}
