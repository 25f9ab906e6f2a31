package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	bytesRow    = "append, 1 message of 1 KiB: tables and indexes"
	costRow     = "append, 1 message of 1 KiB, 8 writers"
	costWriters = 8
	costAppends = 4_000
	costWarm    = 1_000 // appends before those that are measured
)

// measureAppends measures how fast appends are, and without -against what they cost.
func measureAppends(ctx context.Context, b *bench) error {
	if err := measureLoads(appendLoads)(ctx, b); err != nil || b.other != nil {
		return err
	}
	if !b.match.MatchString(costRow) && !b.match.MatchString(bytesRow) {
		return nil
	}
	if err := prepareAppends(ctx, b.here); err != nil {
		return err
	}
	if err := b.measureTables(ctx); err != nil {
		return err
	}
	if err := b.measureCosts(ctx, costRow, ""); err != nil {
		return err
	}
	return b.measureCosts(ctx, costRow+", with an Idempotency-Key", "key")
}

// measureTables adds the row of what an append adds to the tables and indexes of the log. Several writers at once would
// have PostgreSQL make room for many appends.
func (b *bench) measureTables(ctx context.Context) error {
	_, before, err := b.here.written(ctx)
	if err == nil {
		err = b.here.appendDifferent(ctx, 1, costAppends, "")
	}
	_, after, writtenErr := b.here.written(ctx)
	// The goal is 1.15 times the message and 350 bytes.
	b.add(row{Name: bytesRow, Unit: "bytes", Value: (after - before) / costAppends, Goal: "<= 1528"})
	return errors.Join(err, writtenErr)
}

// measureCosts adds rows for what an append costs: alone, while the worker stands still, and all included, when what
// runs behind it has come to rest.
func (b *bench) measureCosts(ctx context.Context, name, key string) error {
	b.progress("%s: costs", name)
	s := b.here
	if err := s.appendDifferent(ctx, costWriters, costWarm, key); err != nil {
		return err
	}
	if err := s.calmLedger(ctx); err != nil {
		return err
	}
	before, err := s.appendCosts(ctx)
	if err != nil {
		return err
	}
	worker := s.servers[len(s.servers)-1].cmd.Process
	if err := worker.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	err = s.appendDifferent(ctx, costWriters, costAppends, key)
	alone, costsErr := s.appendCosts(ctx)
	if err := errors.Join(err, costsErr, worker.Signal(syscall.SIGCONT)); err != nil {
		return err
	}
	if err := s.calmLedger(ctx); err != nil {
		return err
	}
	all, err := s.appendCosts(ctx)
	if err != nil {
		return err
	}
	for i, figure := range appendFigures {
		r := row{Name: name + ", alone: " + figure.name, Unit: figure.unit}
		r.Value = (alone[i] - before[i]) / costAppends
		b.add(r)
		r.Name, r.Goal = name+", all included: "+figure.name, figure.goal
		r.Value = (all[i] - before[i]) / costAppends
		b.add(r)
	}
	return nil
}

// appendFigures are what appends cost, in the order of appendCosts.
var appendFigures = []struct{ name, unit, goal string }{
	{"PostgreSQL's processor time", "ms", "<= 0.4"},
	{"the API's processor time", "ms", "<= 0.2"},
	{"the worker's processor time", "ms", ""},
	{"WAL", "bytes", "<= 2560"},
	{"the database's size", "bytes", ""},
}

// appendCosts returns what a site has used so far.
func (s *site) appendCosts(ctx context.Context) (costs [5]float64, err error) {
	var c compactionCost
	if err = s.addCost(ctx, &c, 1); err != nil {
		return costs, err
	}
	api, err := s.newClient().metric("process_cpu_seconds_total")
	if err != nil {
		return costs, err
	}
	costs = [...]float64{1000 * c.postgres, 1000 * api, 1000 * c.worker, c.wal, 0}
	err = s.admin.QueryRow(ctx, `SELECT pg_database_size(current_database())`).Scan(&costs[4])
	return costs, err
}

// calmLedger waits until nothing of what follows appends writes any more; the API counts them for the ledger after some
// seconds.
func (s *site) calmLedger(ctx context.Context) error {
	select {
	case <-time.After(6 * time.Second):
		return s.calm(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// appendDifferent appends a number of messages, each another one, by some writers.
func (s *site) appendDifferent(ctx context.Context, writers, appends int, key string) error {
	group, ctx := errgroup.WithContext(ctx)
	for writer := range writers {
		group.Go(func() error {
			c, texts := s.newClient(), newCorpus(uint64(time.Now().UnixNano())+uint64(writer))
			for i := 0; i < appends/writers && ctx.Err() == nil; i++ {
				var headers []string
				if key != "" {
					headers = []string{fmt.Sprintf("Idempotency-Key: %s-%d-%d", key, time.Now().UnixNano(), writer)}
				}
				path := sessionPath(strconv.Itoa(writer*writerSessions+i%writerSessions)) + "/messages"
				body := appendBody([][]byte{texts.message(messageBytes)})
				if err := c.call(c.request("POST", path, body, headers...), http.StatusCreated); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return group.Wait()
}

// written returns the bytes of the WAL so far, page images behind checkpoints included, and of what appends write to.
func (s *site) written(ctx context.Context) (wal, disk float64, err error) {
	err = s.admin.QueryRow(ctx, `
		SELECT (pg_current_wal_insert_lsn() - '0/0')::float8,
		       (SELECT sum(pg_table_size(name) + pg_indexes_size(name))::float8
		          FROM unnest('{messages, sessions, idempotency}'::regclass[]) name)`).Scan(&wal, &disk)
	return wal, disk, err
}
