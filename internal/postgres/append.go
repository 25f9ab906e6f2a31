package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/varve-dev/varve/internal/queue"
	"github.com/varve-dev/varve/internal/session"
)

// newCalibration is the session's calibration after an append with usage: a step from the old one towards what the usage
// says. $23 is the provider's count of the request, NULL for none; the session's estimate of it is the view, the overhead,
// and the $24 tokens of this batch that stand before the answer.
const newCalibration = `
	(s.calibration + ` + CalibrationStep + ` * (least(` + MaxCalibration + `, greatest(` + MinCalibration + `,
	     coalesce($23::float8 / nullif(s.context_tokens + s.overhead_tokens + $24::bigint, 0), s.calibration))) - s.calibration))::real`

// estimatedWindow is the window of session s in estimated tokens, by its policy p.
func estimatedWindow(calibration string) string {
	return `(s.window_tokens / CASE WHEN p.calibrate THEN ` + calibration + ` ELSE 1 END::float8)`
}

// dueLevel is the number of tokens at which the next append takes the slow path: the trigger, or the hard limit once a
// job for the trigger was inserted, or never. A session that its newest compaction left over the trigger is due again
// only after it grew by a twentieth of its window.
func dueLevel(window string) string {
	return `
	CASE s.wake
	WHEN 1 THEN greatest(p.trigger_ratio * ` + window + `, s.floor_tokens + 0.05::float8 * ` + window + `)
	WHEN 2 THEN greatest(p.hard_ratio * ` + window + `, s.floor_tokens + 0.05::float8 * ` + window + `)
	ELSE 'infinity'::float8
	END`
}

// countedCalibration is the session's calibration after an append whose messages have $23 tokens by an exact tokenizer.
// What a provider reported knows more than that: once there is any, it counts alone.
const countedCalibration = `
	(CASE WHEN s.last_usage IS NULL
	      THEN least(` + MaxCalibration + `, greatest(` + MinCalibration + `,
	           coalesce((s.exact_tokens + $23::bigint)::float8 / nullif(s.counted_tokens + $5, 0), s.calibration)))
	      ELSE s.calibration END)::real`

// The statement of an append, and those of one with usage and of one that is counted exactly, which do not slow it down.
var (
	plainAppend = newAppendSQL(22, `s.calibration`, ``)
	usageAppend = newAppendSQL(25, newCalibration, `
		       calibration = `+newCalibration+`,
		       last_usage = $25::jsonb,`)
	countedAppend = newAppendSQL(23, countedCalibration, `
		       calibration = `+countedCalibration+`,
		       counted_tokens = s.counted_tokens + $5,
		       exact_tokens = s.exact_tokens + $23::bigint,`)
)

// appendSQL is the statement of an append, and the one that also writes what views show of capped messages: few appends
// are capped, and all would pay.
type appendSQL struct{ plain, capped string }

// newAppendSQL takes how many parameters the plain statement has; those of the capped one come behind them.
func newAppendSQL(params int, calibration, set string) appendSQL {
	arrays := fmt.Sprintf(`, $%d::bytea[], $%d::int[]`, params+1, params+2)
	return appendSQL{
		plain:  appendStatement(calibration, set, ``, ``),
		capped: appendStatement(calibration, set, `, view_body, view_tokens`, arrays),
	}
}

// appendStatement grows a session and writes its messages and the idempotency record, or does nothing at all: both inserts
// select from the row that the UPDATE returns. The first append gives the session its format; later ones may have another.
// It returns no row if there is no such session, expected_seq does not fit, the session is full, or (unless $6 says that the caller sees to it) the append would make it due or has a
// result to cap. It takes the calibration that the session has afterwards, and what sets it.
//
//	$1 tenant  $2 session id  $3 format  $4 count  $5 tokens  $6 due is seen to  $7 expected_seq or NULL  $8 leading system messages
//	$9… arrays, one entry a message: roles, tokens, client ids, calls, answers, starts_unit, flags, bodies
//	$17 idempotency route or NULL  $18 key  $19 digest  $20 bytes
//	$21 tokens that capping results spares  $22 bytes of the largest message with results
//	$23 input tokens of the usage or NULL  $24 tokens before the answer  $25 the usage; or $23 tokens by an exact tokenizer
//	last, if anything is capped, arrays: what views show of the messages, and its tokens
func appendStatement(calibration, set, columns, arrays string) string {
	return `
	WITH grown AS (
		UPDATE sessions s
		   SET last_seq = s.last_seq + $4,
		       tail_bytes = s.tail_bytes + $20,
		       pinned = CASE WHEN s.pinned = s.last_seq THEN s.pinned + $8 ELSE s.pinned END,
		       context_tokens = s.context_tokens + $5 - $21,
		       total_tokens = s.total_tokens + $5,
		       format = CASE WHEN s.format = 0 THEN $3 ELSE s.format END,` + set + `
		       last_append_at = now()
		  FROM policies p
		 WHERE s.tenant_id = $1
		   AND s.id = $2
		   AND p.tenant_id = $1
		   AND p.id = s.policy_id
		   AND ($7::bigint IS NULL OR s.last_seq = $7)
		   AND s.last_seq + $4 <= ` + MaxSessionMessages + `
		   AND s.tail_bytes + $20 <= ` + MaxTailBytes + `
		   AND ($6 OR s.context_tokens + $5 + s.overhead_tokens < ` + dueLevel(estimatedWindow(calibration)) + `
		              AND ($22::int <= p.caps_over) IS NOT FALSE)
		RETURNING s.key, s.last_seq, s.context_tokens, s.total_tokens, s.calibration
	), logged AS (
		INSERT INTO messages (tenant_id, session_key, seq, role, format, tokens, client_id, calls, answers, starts_unit, flags, body, fact` + columns + `)
		SELECT $1, g.key, g.last_seq - $4 + m.n, m.role, $3, m.tokens, m.client_id,
		       (string_to_array(m.calls, E'\x1f'))[2:], (string_to_array(m.answers, E'\x1f'))[2:], m.starts_unit, m.flags, m.body,
		       ` + factSQL(`$3`) + columns + `
		  FROM grown g,
		       unnest($9::text[], $10::int[], $11::text[], $12::text[], $13::text[], $14::bool[], $15::int[], $16::bytea[]` + arrays + `)
		       WITH ORDINALITY AS m (role, tokens, client_id, calls, answers, starts_unit, flags, body` + columns + `, n)
	), remembered AS (
		INSERT INTO idempotency (tenant_id, route, key, session_key, digest, answer)
		SELECT $1, $17, $18, g.key, $19,
		       json_build_object('first_seq', g.last_seq - $4 + 1, 'last_seq', g.last_seq, 'tokens', $5::bigint,
		                         'context_tokens', g.context_tokens, 'total_tokens', g.total_tokens, 'compaction', 'none')::text
		  FROM grown g
		 WHERE $17::text IS NOT NULL AND NOT $6
	)
	SELECT last_seq, context_tokens, total_tokens, calibration
	  FROM grown`
}

// These are the constants of package session in SQL, held to them by a test.
const (
	MaxSessionMessages = `1000000`
	MaxTailBytes       = `536870912`
	MinCalibration     = `0.5`
	MaxCalibration     = `3`
	CalibrationStep    = `0.25`
)

// The arguments of an append that Append itself reads or changes, counted from 0.
const (
	argCount  = 3
	argTokens = 4
	argSeen   = 5
	argRoute  = 16
	argSpared = 20
)

// Append adds messages to the end of a session, all or none, in one round trip. An append that crosses the session's
// trigger inserts the compaction job in its own transaction, as do all others that one statement cannot decide.
// replayed says that the answer is that of an earlier request with the same Idempotency-Key.
//
// Errors: ErrNotFound, *StaleError, ErrTooManyMessages, ErrClientIDReused, ErrIdempotencyReused.
func (s *Store) Append(ctx context.Context, a session.Append) (done session.Appended, replayed bool, err error) {
	sql, args := AppendStatement(a)
	done = session.Appended{Tokens: args[argTokens].(int64), Compaction: session.CompactionNone}
	var calibration float64
	err = Query(ctx, s.pool, a.Session.Tenant, sql, args, one(&done.LastSeq, &done.ContextTokens, &done.TotalTokens, &calibration))
	switch {
	case err == nil:
		done.FirstSeq = done.LastSeq - int64(len(a.Messages)) + 1
		return done, false, nil
	case errors.Is(err, session.ErrNotFound), violates(err, "messages_client_id"), violates(err, "idempotency_pkey"):
		return s.appendLocked(ctx, a, sql, args)
	}
	return done, false, err
}

// appendLocked decides under the session's lock what the one statement could not: replays first, then what is wrong,
// then the append itself together with the compaction that it makes due.
func (s *Store) appendLocked(ctx context.Context, a session.Append, sql string, args []any) (done session.Appended, replayed bool, err error) {
	err = s.inTenant(ctx, a.Session.Tenant, func(tx pgx.Tx) error {
		row, lockErr := lockSession(ctx, tx, a.Session)
		if lockErr != nil && !errors.Is(lockErr, session.ErrNotFound) {
			return lockErr
		}
		if replayed, err = replay(ctx, tx, a.Session.Tenant, a.Idempotency, &done); err != nil || replayed {
			return err
		}
		if lockErr != nil {
			return lockErr
		}
		if done, err = resend(ctx, tx, row, a); err != nil || done.Replayed {
			return err
		}
		if err = refuse(row, a); err != nil {
			return err
		}
		if done, err = s.appendDue(ctx, tx, row, a, sql, args); err != nil {
			return err
		}
		return remember(ctx, tx, row.Key, a.Idempotency, done)
	})
	return done, replayed, err
}

func refuse(row lockedSession, a session.Append) error {
	switch {
	case a.ExpectedSeq != nil && *a.ExpectedSeq != row.lastSeq:
		return &session.StaleError{Expected: *a.ExpectedSeq, Current: row.lastSeq}
	case row.lastSeq+int64(len(a.Messages)) > session.MaxSessionMessages:
		return session.ErrTooManyMessages
	case row.tailBytes+bytesOf(a.Messages) > session.MaxTailBytes:
		return fmt.Errorf("%d bytes that no compaction covers yet: %w", row.tailBytes, session.ErrTooManyMessages)
	}
	return nil
}

// appendDue appends under the session's lock, what is too large for a view capped, and inserts the compaction job if the
// session is due after it.
func (s *Store) appendDue(ctx context.Context, tx pgx.Tx, row lockedSession, a session.Append, sql string, args []any) (session.Appended, error) {
	locked := append([]any(nil), args...)
	locked[argSeen], locked[argRoute] = true, nil
	done := session.Appended{Tokens: args[argTokens].(int64), Compaction: session.CompactionNone}
	shown, err := s.capped(ctx, tx, row, a)
	if err != nil {
		return done, err
	}
	if shown != nil {
		locked[argSpared] = shown.spared
		sql, locked = appendSQLOf(a).capped, append(locked, shown.bodies, shown.tokens)
	}
	err = tx.QueryRow(ctx, sql, locked...).Scan(&done.LastSeq, &done.ContextTokens, &done.TotalTokens, &row.calibration)
	if err != nil {
		return done, err
	}
	done.FirstSeq = done.LastSeq - args[argCount].(int64) + 1
	level, due := row.level(done.ContextTokens)
	if !due {
		return done, nil
	}
	row.coldAt = time.Now().Add(row.cacheTTL)
	done.Compaction, err = s.wake(ctx, tx, row, level, causes[level])
	return done, err
}

// wake asks for a compaction because the session crossed level. At the trigger, a session whose cache is warm waits
// until it is cold; at the hard limit it does not wait any longer. The lock order is session row, then job row.
func (s *Store) wake(ctx context.Context, tx pgx.Tx, row lockedSession, level wakeLevel, cause string) (session.Compaction, error) {
	at := time.Time{}
	if level == wakeTrigger && row.cacheTTL > 0 {
		at = row.coldAt
	}
	inserted, err := s.enqueue(ctx, tx, row.Key, cause, at, level == wakeHard && row.cacheTTL > 0)
	if err != nil {
		return "", err
	}
	_, err = tx.Exec(ctx, `
		UPDATE sessions
		   SET wake = $3
		 WHERE tenant_id = $1 AND key = $2`,
		[16]byte(row.Tenant), [16]byte(row.Key.Key), level+1)
	if !inserted {
		return session.CompactionLive, err
	}
	return session.CompactionQueued, err
}

// enqueue inserts a run and its job, or hurries the live job if hurry is set. If there was no live job, then a run that
// has not ended has lost its own: nothing will end it but this.
func (s *Store) enqueue(ctx context.Context, tx pgx.Tx, key session.Key, cause string, at time.Time, hurry bool) (inserted bool, err error) {
	run := uuid.Must(uuid.NewV7())
	id, inserted, err := s.queue.Compact(ctx, tx, queue.CompactArgs{Tenant: key.Tenant, Session: key.Key, Run: run}, at)
	if err != nil {
		return false, err
	}
	if inserted {
		if err := endLostRuns(ctx, tx, key); err != nil {
			return false, err
		}
		return true, insertRun(ctx, tx, key, run, id, cause)
	}
	if !hurry {
		return false, nil
	}
	if err := requestRun(ctx, tx, key, id, cause); err != nil {
		return false, err
	}
	return false, s.queue.RunNow(ctx, tx, id)
}

// resend recognises a batch that was appended before: some of its messages have a client id that is known, and the batch
// stands there, in this order, with these ids and bytes. ErrClientIDReused if only some of that is so; a zero answer if
// none of its client ids is known.
func resend(ctx context.Context, tx pgx.Tx, row lockedSession, a session.Append) (session.Appended, error) {
	first, err := firstSeqOf(ctx, tx, row, a.Messages)
	if err != nil || first == 0 {
		return session.Appended{}, err
	}
	rows, err := tx.Query(ctx, `
		SELECT seq, coalesce(client_id, ''), body
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND seq >= $3 AND seq < $4
		 ORDER BY seq`,
		[16]byte(row.Tenant), [16]byte(row.Key.Key), first, first+int64(len(a.Messages)))
	if err != nil {
		return session.Appended{}, err
	}
	stored, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		Seq      int64
		ClientID string
		Body     []byte
	}])
	if err != nil {
		return session.Appended{}, err
	}
	done := session.Appended{
		FirstSeq: first, LastSeq: first + int64(len(a.Messages)) - 1, ContextTokens: row.contextTokens, TotalTokens: row.totalTokens,
		Compaction: session.CompactionNone, Replayed: true,
	}
	for i, m := range a.Messages {
		if i >= len(stored) || stored[i].Seq != first+int64(i) || stored[i].ClientID != m.ClientID || string(stored[i].Body) != string(m.Body) {
			return session.Appended{}, fmt.Errorf("message %d with client_id %q is not what stands at seq %d, where the known client ids put it: %w",
				i, m.ClientID, first+int64(i), session.ErrClientIDReused)
		}
		done.Tokens += int64(m.Tokens)
	}
	return done, nil
}

// firstSeqOf returns where a batch begins if it was appended before, going by the first of its client ids that is known;
// 0 if none is.
func firstSeqOf(ctx context.Context, tx pgx.Tx, row lockedSession, messages []session.NewMessage) (first int64, err error) {
	var ids []string
	at := map[string]int{}
	for i, m := range messages {
		if m.ClientID != "" {
			ids = append(ids, m.ClientID)
			at[m.ClientID] = i
		}
	}
	if len(ids) == 0 {
		return 0, nil
	}
	var known string
	err = tx.QueryRow(ctx, `
		SELECT client_id, seq
		  FROM messages
		 WHERE tenant_id = $1 AND session_key = $2 AND client_id = ANY ($3)
		 ORDER BY seq
		 LIMIT 1`, [16]byte(row.Tenant), [16]byte(row.Key.Key), ids).Scan(&known, &first)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return max(1, first-int64(at[known])), err
}

// appendArgs lays an append out as the parameters of its statement.
func appendArgs(a session.Append) []any {
	n := len(a.Messages)
	roles, tokens, clients := make([]string, n), make([]int32, n), make([]*string, n)
	calls, answers, starts := make([]string, n), make([]string, n), make([]bool, n)
	flags, bodies := make([]int32, n), make([][]byte, n)
	var sum, pinned int64
	for i := range a.Messages {
		m := &a.Messages[i]
		roles[i], tokens[i], starts[i], flags[i], bodies[i] = Text(m.Role), int32(m.Tokens), m.StartsUnit, m.Flags, m.Body
		calls[i], answers[i] = joinIDs(m.Calls), joinIDs(m.Answers)
		if m.ClientID != "" {
			clients[i] = &m.ClientID
		}
		if m.Pinned && int64(i) == pinned {
			pinned++
		}
		sum += int64(m.Tokens)
	}
	var route, key *string
	var digest []byte
	if a.Idempotency != nil {
		route, key, digest = &a.Idempotency.Route, &a.Idempotency.Key, a.Idempotency.Digest[:]
	}
	args := []any{
		[16]byte(a.Session.Tenant), a.Session.ID, a.Format.Number(), int64(n), sum, false, a.ExpectedSeq, pinned,
		roles, tokens, clients, calls, answers, starts, flags, bodies, route, key, digest, bytesOf(a.Messages),
		int64(0), largestAnswer(a.Messages),
	}
	switch {
	case a.Usage != nil:
		return append(args, inputOf(*a.Usage), tokensBeforeAnswer(a.Messages), a.Usage)
	case a.ExactTokens != nil:
		return append(args, *a.ExactTokens)
	}
	return args
}

// inputOf is nil for a usage that counts no input: it says nothing about the estimate.
func inputOf(u session.Usage) *float64 {
	input := float64(u.Input())
	if input == 0 {
		return nil
	}
	return &input
}

// tokensBeforeAnswer are the tokens of a batch that were part of the request whose answer is the batch's last message of
// the assistant.
func tokensBeforeAnswer(messages []session.NewMessage) (tokens int64) {
	last := len(messages) - 1
	for last >= 0 && messages[last].Role != "assistant" {
		last--
	}
	for i := range last {
		tokens += int64(messages[i].Tokens)
	}
	return tokens
}

func bytesOf(messages []session.NewMessage) (n int64) {
	for i := range messages {
		n += int64(len(messages[i].Body))
	}
	return n
}

// joinIDs writes call ids as one text for string_to_array. There is a separator before each of them, so that one empty id
// is not the same as none; the statement leaves out what stands before the first.
func joinIDs(ids []string) string {
	var joined strings.Builder
	for _, id := range ids {
		joined.WriteByte('\x1f')
		joined.WriteString(Text(id))
	}
	return joined.String()
}

// Text is s as PostgreSQL's text can hold it. It is only used for what was extracted from a message, never for its bytes.
func Text(s string) string {
	clean := strings.IndexFunc(s, func(r rune) bool { return r < ' ' }) < 0
	if clean {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' {
			return '\uFFFD'
		}
		return r
	}, s), "\uFFFD")
}
