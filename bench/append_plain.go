package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// plainTables are what a program that only wants the bytes would make.
const plainTables = `
	CREATE SCHEMA IF NOT EXISTS plain;
	CREATE TABLE IF NOT EXISTS plain.messages (session int, seq bigint, body bytea);
	CREATE INDEX IF NOT EXISTS messages_order ON plain.messages (session, seq);
	CREATE TABLE IF NOT EXISTS plain.counters (session int PRIMARY KEY, seq bigint NOT NULL) WITH (fillfactor = 70);
	INSERT INTO plain.counters SELECT n, 0 FROM generate_series(0, $sessions) n ON CONFLICT DO NOTHING`

// plainFloor returns a round of an INSERT into a table with an index and an UPDATE of a counter, in one transaction
// that is one round trip, with nothing of Varve: neither its tables nor its login.
func (b *bench) plainFloor(a appendCase) (sample, error) {
	ctx := context.Background()
	tables := strings.ReplaceAll(plainTables, "$sessions", fmt.Sprint(hotSession))
	if _, err := b.here.admin.Exec(ctx, tables); err != nil {
		return nil, err
	}
	if b.plain == nil {
		config, err := pgxpool.ParseConfig(b.here.dsn)
		if err != nil {
			return nil, err
		}
		config.MaxConns = maxWriters
		if b.plain, err = pgxpool.NewWithConfig(ctx, config); err != nil {
			return nil, err
		}
	}
	bodies := a.bodies()
	return func(ctx context.Context, d time.Duration) (float64, error) {
		return load(ctx, d, a.writers, func(writer int) func() error {
			turn := 0
			return func() error {
				turn++
				return plainAppend(ctx, b.plain, a.session(writer, turn), bodies)
			}
		})
	}, nil
}

func plainAppend(ctx context.Context, pool *pgxpool.Pool, session int, bodies [][]byte) error {
	batch := &pgx.Batch{}
	batch.Queue(`UPDATE plain.counters SET seq = seq + 1 WHERE session = $1`, session)
	for _, body := range bodies {
		batch.Queue(`
			INSERT INTO plain.messages
			SELECT $1, seq, $2
			  FROM plain.counters
			 WHERE session = $1`, session, body)
	}
	return pool.SendBatch(ctx, batch).Close()
}
