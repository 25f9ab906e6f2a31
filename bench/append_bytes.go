package main

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
)

const (
	bytesRow     = "append, 1 message of 1 KiB"
	bytesWarm    = 1_000 // appends before those that are measured
	bytesAppends = 4_000
	// bytesGoal is 1.15 times the message and 350 bytes.
	bytesGoal = "<= 1528"
)

// measureAppends measures how fast appends are, and without -against how many bytes they write.
func measureAppends(ctx context.Context, b *bench) error {
	if err := measureLoads(appendLoads)(ctx, b); err != nil || b.other != nil {
		return err
	}
	if !b.match.MatchString(bytesRow) {
		return nil
	}
	if err := prepareAppends(ctx, b.here); err != nil {
		return err
	}
	if err := b.measureAppendBytes(ctx, bytesRow, bytesGoal, ""); err != nil {
		return err
	}
	return b.measureAppendBytes(ctx, bytesRow+", with an Idempotency-Key", "", "key")
}

// measureAppendBytes adds rows for the WAL, to which the worker and PostgreSQL's own processes add, and for the
// tables and indexes that appends one by one add to.
func (b *bench) measureAppendBytes(ctx context.Context, name, goal, key string) error {
	b.progress("%s: bytes", name)
	c := b.here.newClient()
	body := appendBody(appendCase{messages: 1}.bodies())
	send := func(from, n int) error {
		for i := from; i < from+n && ctx.Err() == nil; i++ {
			var headers []string
			if key != "" {
				headers = []string{fmt.Sprintf("Idempotency-Key: %s-%d", key, i)}
			}
			path := sessionPath(strconv.Itoa(i%hotSession)) + "/messages"
			if err := c.call(c.request("POST", path, body, headers...), http.StatusCreated); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	// What a checkpoint makes of the first change of a page depends on how often there is one.
	if err := b.here.configure(ctx, "full_page_writes", "off"); err != nil {
		return err
	}
	defer b.here.configure(context.WithoutCancel(ctx), "full_page_writes", "on")
	if err := send(0, bytesWarm); err != nil {
		return err
	}
	wal, disk, err := b.here.written(ctx)
	if err != nil {
		return err
	}
	if err := send(bytesWarm, bytesAppends); err != nil {
		return err
	}
	walAfter, diskAfter, err := b.here.written(ctx)
	if err != nil {
		return err
	}
	b.add(row{Name: name + ": WAL of all that runs", Unit: "bytes", Value: (walAfter - wal) / bytesAppends},
		row{Name: name + ": tables and indexes", Unit: "bytes", Value: (diskAfter - disk) / bytesAppends, Goal: goal})
	return nil
}

// configure changes a setting of the cluster.
func (s *site) configure(ctx context.Context, name, value string) error {
	if _, err := s.admin.Exec(ctx, `ALTER SYSTEM SET `+name+` = `+value); err != nil {
		return err
	}
	_, err := s.admin.Exec(ctx, `SELECT pg_reload_conf()`)
	return err
}

// written returns the bytes of the WAL so far, and of what appends write to.
func (s *site) written(ctx context.Context) (wal, disk float64, err error) {
	err = s.admin.QueryRow(ctx, `
		SELECT (pg_current_wal_insert_lsn() - '0/0')::float8,
		       (SELECT sum(pg_table_size(name) + pg_indexes_size(name))::float8
		          FROM unnest('{messages, sessions, idempotency}'::regclass[]) name)`).Scan(&wal, &disk)
	return wal, disk, err
}
