package postgres

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/internal/due"
	"github.com/varve-dev/varve/internal/session"
)

// appendParams are the parameters of the statement of an append. args lays them out; appendNames, usageNames,
// exactNames, cappedNames and itemNames are the names by which the statements call them, in the same order.
type appendParams struct {
	tenant      [16]byte
	session     string
	format      int16
	count       int64
	tokens      int64
	locked      bool // the caller holds the session's lock and decides what the statement alone cannot
	expectedSeq *int64
	pinned      int64 // leading system messages
	messages    byColumn
	shapes      []string
	route       *string // of the Idempotency-Key, nil for none
	request     *string // the Idempotency-Key
	digest      []byte
	bytes       int64
	spared      int64 // tokens that views do not show of capped messages
	largest     int32 // bytes of the largest message with results
	measured    []any // what the usage or the exact count adds
	capped      *cappedViews
	items       []*string // ids by message, nil if none has one
}

var (
	appendNames = []string{
		"tenant", "session", "format", "count", "tokens", "locked", "expected_seq", "pinned",
		"roles", "message_tokens", "client_ids", "calls", "answers", "starts_unit", "flags", "bodies", "digests",
		"shapes",
		"route", "request", "digest", "bytes", "spared", "largest",
	}
	usageNames  = []string{"used", "counted", "usage"}
	exactNames  = []string{"exact_tokens"}
	cappedNames = []string{"view_bodies", "view_tokens"}
	itemNames   = []string{"item_ids"}
)

func (p *appendParams) args() []any {
	args := make([]any, 0, len(appendNames)+len(usageNames)+len(cappedNames)+len(itemNames))
	args = append(args, p.tenant, p.session, p.format, p.count, p.tokens, p.locked, p.expectedSeq, p.pinned)
	args = append(args, p.messages.args()...)
	args = append(args, p.shapes, p.route, p.request, p.digest, p.bytes, p.spared, p.largest)
	args = append(args, p.measured...)
	if p.capped != nil {
		args = append(args, p.capped.bodies, p.capped.tokens)
	}
	if p.items != nil {
		args = append(args, p.items)
	}
	return args
}

// byColumn is messages by column, as unnest takes them.
type byColumn struct {
	roles           []string
	tokens, flags   []int32
	clientIDs       []*string
	calls, answers  []*string
	startsUnit      []bool
	bodies, digests [][]byte

	named bool // some have client ids
}

func (c *byColumn) args() []any {
	return []any{c.roles, c.tokens, c.clientIDs, c.calls, c.answers, c.startsUnit, c.flags, c.bodies, c.digests}
}

// add appends the messages of others.
func (c *byColumn) add(others *byColumn) {
	c.roles = append(c.roles, others.roles...)
	c.tokens = append(c.tokens, others.tokens...)
	c.clientIDs = append(c.clientIDs, others.clientIDs...)
	c.calls = append(c.calls, others.calls...)
	c.answers = append(c.answers, others.answers...)
	c.startsUnit = append(c.startsUnit, others.startsUnit...)
	c.flags = append(c.flags, others.flags...)
	c.bodies = append(c.bodies, others.bodies...)
	c.digests = append(c.digests, others.digests...)
}

func columnsOf(messages []session.NewMessage) byColumn {
	n := len(messages)
	c := byColumn{
		roles: make([]string, n), calls: make([]*string, n), answers: make([]*string, n),
		tokens: make([]int32, n), flags: make([]int32, n), clientIDs: make([]*string, n),
		startsUnit: make([]bool, n), bodies: make([][]byte, n), digests: make([][]byte, n),
	}
	sums := make([][sha256.Size]byte, n)
	for i := range messages {
		m := &messages[i]
		c.roles[i] = Text(m.Role)
		c.tokens[i] = int32(m.Tokens)
		c.calls[i] = joinIDs(m.Calls)
		c.answers[i] = joinIDs(m.Answers)
		c.startsUnit[i] = m.StartsUnit
		c.flags[i] = m.Flags
		c.bodies[i] = m.Body
		sums[i] = sha256.Sum256(m.Body)
		c.digests[i] = sums[i][:]
		if m.ClientID != "" {
			c.clientIDs[i] = &m.ClientID
			c.named = true
		}
	}
	return c
}

func newAppendParams(a session.Append) appendParams {
	p := appendParams{
		tenant: [16]byte(a.Session.Tenant), session: a.Session.ID, format: a.Format.Number(),
		count: int64(len(a.Messages)), expectedSeq: a.ExpectedSeq, messages: columnsOf(a.Messages),
		shapes: shapesOf(a.Format.Number(), a.Messages, nil),
		bytes:  bytesOf(a.Messages), largest: largestAnswer(a.Messages), items: itemsOf(a.Messages),
	}
	if id := a.Idempotency; id != nil {
		p.route = &id.Route
		p.request = &id.Key
		p.digest = id.Digest[:]
	}
	for i := range a.Messages {
		m := &a.Messages[i]
		if m.Pinned && int64(i) == p.pinned {
			p.pinned++
		}
		p.tokens += int64(m.Tokens)
	}
	switch {
	case a.Usage != nil:
		p.measured = []any{usedOf(*a.Usage), tokensOfRequest(a), a.Usage}
	case a.ExactTokens != nil:
		p.measured = []any{*a.ExactTokens}
	}
	return p
}

// itemsOf returns the item ids of messages, nil if none has one.
func itemsOf(messages []session.NewMessage) (ids []*string) {
	for i := range messages {
		if messages[i].ItemID == "" {
			continue
		}
		if ids == nil {
			ids = make([]*string, len(messages))
		}
		ids[i] = &messages[i].ItemID
	}
	return ids
}

// appendSQL is the statement of an append, and the ones that also write what views show of capped messages, the ids of
// items, or both. Few appends have these, and all would pay for the columns.
//
// many is the statement of several appends of a tenant, with or without items.
type appendSQL struct{ plain, capped, items, both, many string }

// of returns the statement that takes the parameters.
func (s *appendSQL) of(p *appendParams) string {
	switch {
	case p.capped != nil && p.items != nil:
		return s.both
	case p.capped != nil:
		return s.capped
	case p.items != nil:
		return s.items
	}
	return s.plain
}

// The statement of an append, and those of one with usage and of one that is counted exactly, which do not slow it
// down.
var (
	plainAppend = newAppendSQL(nil, `s.calibration`, `s.unseen_tokens`, ``)
	usageAppend = newAppendSQL(usageNames, `1`, usageUnseen, `
		       calibration = 1, unseen_tokens = `+usageUnseen+`, shrunk_tokens = 0, last_usage = @usage::jsonb,`)
	exactAppend = newAppendSQL(exactNames, exactCalibration, `s.unseen_tokens`, `
		       calibration = `+exactCalibration+`,
		       counted_tokens = s.counted_tokens + @tokens,
		       exact_tokens = s.exact_tokens + @exact_tokens::bigint,`)
)

func appendSQLOf(a session.Append) *appendSQL {
	switch {
	case a.Usage != nil:
		return &usageAppend
	case a.ExactTokens != nil:
		return &exactAppend
	}
	return &plainAppend
}

func newAppendSQL(measured []string, calibration, unseen, set string) appendSQL {
	const columns, arrays = `, view_body, view_tokens`, `, @view_bodies::bytea[], @view_tokens::int[]`
	const item, items = `, item_id`, `, @item_ids::text[]`
	names := slices.Concat(appendNames, measured)
	armed := due.ArmedSQL(calibration, unseen, `s.last_seq + @count`,
		`s.tail_bytes + @bytes + s.checkpoint_size`, session.EngineVersion)
	return appendSQL{
		plain:  number(names, appendStatement(armed, set, ``, ``)),
		capped: number(slices.Concat(names, cappedNames), appendStatement(armed, set, columns, arrays)),
		items:  number(slices.Concat(names, itemNames), appendStatement(armed, set, item, items)),
		both: number(slices.Concat(names, cappedNames, itemNames),
			appendStatement(armed, set, columns+item, arrays+items)),
		many: manySQL(armed, set, measured),
	}
}

var parameter = regexp.MustCompile(`@[a-z_]+`)

// number replaces the named parameters of a statement by the positions of their names.
func number(names []string, sql string) string {
	return parameter.ReplaceAllStringFunc(sql, func(name string) string {
		at := slices.Index(names, name[1:])
		if at < 0 {
			panic("a statement has a parameter " + name + " that is not in its list")
		}
		return fmt.Sprintf("$%d", at+1)
	})
}

// requestEstimate is the session's estimate of what a usage counts: the view, the overhead, and the tokens of this
// batch through the answer. If compactions have shrunk the view since the last usage, the request may have been made
// before: the estimate that is nearer to the provider's count holds.
const requestEstimate = `
	(s.context_tokens + s.overhead_tokens + @counted::bigint
	 + CASE WHEN abs(@used::bigint - s.unseen_tokens
	                 - s.context_tokens - s.overhead_tokens - @counted - s.shrunk_tokens)
	           < abs(@used - s.unseen_tokens - s.context_tokens - s.overhead_tokens - @counted)
	        THEN s.shrunk_tokens
	        ELSE 0 END)`

// usageUnseen is the session's unseen tokens after an append with usage: the difference of the provider's count, NULL
// for none, and the estimate. A count below half of the estimate or above the window is not believed.
const usageUnseen = `
	CASE WHEN @used::bigint IS NULL
	     THEN s.unseen_tokens
	     ELSE greatest(least(@used, s.window_tokens) - ` + requestEstimate + `, ` + requestEstimate + ` / -2) END`

// exactCalibration is the session's calibration after an append whose messages were counted by an exact tokenizer.
// What a provider reported is better: once there is any, it counts alone.
var exactCalibration = `
	(CASE WHEN s.last_usage IS NULL
	      THEN ` + clamped(`
	           coalesce((s.exact_tokens + @exact_tokens::bigint)::float8 / nullif(s.counted_tokens + @tokens, 0),
	                    s.calibration)`) + `
	      ELSE s.calibration END)::real`

func clamped(calibration string) string {
	return fmt.Sprintf(`least(%v, greatest(%v, %s))`, session.MaxCalibration, session.MinCalibration, calibration)
}

// appendStatement grows a session and writes its messages and the idempotency record, or does nothing at all: both
// inserts select from the row that the UPDATE returns. The first append gives the session its format; later ones may
// have another. It returns no row if there is no such session, expected_seq does not fit or the session is full.
// Unless the caller holds the lock, it returns none either if the append would make the session due or has a result to
// cap. armed is the number of tokens at which it does, set what else the session gets.
func appendStatement(armed, set, columns, arrays string) string {
	return appendSQLWith(armed, set, "{columns}", columns, "{arrays}", arrays, "{appends}", "", "{new}", "",
		"{of_append}", "", "{numbered}", `) WITH ORDINALITY`, "{owned}", `)`, "{number}", "")
}

func appendSQLWith(armed, set string, replacements ...string) string {
	return statement("append", append(replacements, "{set}", set, "{armed}", armed,
		"{outdated}", strings.ReplaceAll(outdatedSQL, "$1", "@tenant"),
		"{max_messages}", fmt.Sprint(session.MaxSessionMessages), "{max_bytes}", fmt.Sprint(session.MaxTailBytes))...)
}

// usedOf returns what a provider counted for a request and its answer. It returns nil for a usage that counts no input,
// which tells nothing about the estimate.
func usedOf(u session.Usage) *int64 {
	if u.Input() == 0 {
		return nil
	}
	used := u.Input() + u.OutputTokens
	return &used
}

// tokensOfRequest returns the tokens of a batch that its usage counts: those before the last message of the assistant,
// which is the answer, and the answer itself if its tokens are reported.
func tokensOfRequest(a session.Append) (tokens int64) {
	answer := len(a.Messages) - 1
	for answer >= 0 && a.Messages[answer].Role != "assistant" && a.Messages[answer].Role != "model" {
		answer--
	}
	if a.Usage.OutputTokens > 0 {
		answer++
	}
	for i := range answer {
		tokens += int64(a.Messages[i].Tokens)
	}
	return tokens
}

func bytesOf(messages []session.NewMessage) (n int64) {
	for i := range messages {
		n += int64(len(messages[i].Body))
	}
	return n
}

// joinIDs writes call ids as one text for string_to_array, with a separator before each of them, which keeps empty ids
// apart. The statement drops what is before the first separator. It returns nil for none: most messages have none, and
// NULL takes no room.
func joinIDs(ids []string) *string {
	if len(ids) == 0 {
		return nil
	}
	var joined strings.Builder
	for _, id := range ids {
		joined.WriteByte('\x1f')
		joined.WriteString(Text(id))
	}
	return new(joined.String())
}

// Text returns s as PostgreSQL's text can hold it. It must only be used for what was extracted from a message, never
// for a message's bytes.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// The hot statements with their arguments, as Query sends them. The bench runs them bare: a copy there would drift
// from what the store does.

// TenantStatement returns the statement that precedes every other.
func TenantStatement(tenant uuid.UUID) (sql string, args []any) {
	return setTenant, []any{tenant.String()}
}

// AppendStatement returns the one statement of Append.
func AppendStatement(a session.Append) (sql string, args []any) {
	p := newAppendParams(a)
	return appendSQLOf(a).of(&p), p.args()
}

// ViewStatement returns the one statement of View.
func ViewStatement(at session.Address, known Version) (sql string, args []any) {
	return newestView, viewArgs(at, ViewRead{Known: known}, heldBody{})
}
