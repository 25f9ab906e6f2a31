package postgres

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/varve-dev/varve/internal/session"
)

// appendParams are the parameters of the statement of an append.
type appendParams struct {
	tenant      [16]byte
	session     string
	format      int16
	count       int64
	tokens      int64
	locked      bool // the caller holds the session's lock and decides what the statement alone cannot
	expectedSeq *int64
	basis       basisParams
	pinned      int64 // leading system messages
	messages    byColumn
	shapes      []string
	items       pgtype.FlatArray[*string] // ids by message, nil if none has one
	capped      cappedViews
	route       *string // of the Idempotency-Key, nil for none
	request     *string // the Idempotency-Key
	digest      []byte
	bytes       int64
	largest     int32  // bytes of the largest message with results
	used        *int64 // tokens that the provider counted for the request and its answer; nil for none
	counted     int64  // tokens of the messages that the usage counts
	usage       *session.Usage
	exact       *int64 // tokens by an exact tokenizer
}

// basisParams is what an append takes its session for; all nil if it takes it as it is.
type basisParams struct {
	format *int16
	model  *string
	window *int64
}

func basisOf(b *session.Basis) (p basisParams) {
	if b != nil {
		p = basisParams{new(b.Format.Number()), &b.Model, new(int64(b.WindowTokens))}
	}
	return p
}

// appendNames are all parameters of a statement, in the order of appendParams.all. Those with "one" have no list.
var appendNames = strings.Fields(`
	tenant session format count tokens expected_seq basis_format basis_model basis_window pinned
	roles message_tokens client_ids calls answers starts_unit flags bodies digests
	shapes item_ids view_bodies view_tokens spared
	route request digest bytes largest used counted usage exact_tokens
	one_role one_client_id one_calls one_answers one_starts_unit one_flags one_body one_digest one_shape one_item_id`)

func (p *appendParams) all() []any {
	m := &p.messages
	return []any{
		p.tenant, p.session, p.format, p.count, p.tokens, p.expectedSeq, p.basis.format, p.basis.model, p.basis.window,
		p.pinned, m.roles, m.tokens, m.clientIDs, m.calls, m.answers, m.startsUnit, m.flags, m.bodies, m.digests,
		p.shapes, p.items, p.capped.bodies, p.capped.tokens, p.capped.spared,
		p.route, p.request, p.digest, p.bytes, p.largest, p.used, p.counted, p.usage, p.exact,
		m.roles[0], m.clientIDs[0], m.calls[0], m.answers[0], m.startsUnit[0], m.flags[0], m.bodies[0], m.digests[0],
		p.shapes[0], p.item(0),
	}
}

// statement returns the statement of an append, and its parameters.
func (p *appendParams) statement() (sql string, args []any) {
	f := appendForm{one: p.count == 1 && !p.locked, keyed: p.route != nil, locked: p.locked}
	f.used = p.used != nil && p.exact == nil
	f.measured = !f.used && (p.usage != nil || p.exact != nil)
	s := appendSQL()[f]
	return s.sql, s.args(p.all())
}

// item returns the item id of a message, nil for none.
func (p *appendParams) item(i int64) *string {
	if p.items == nil {
		return nil
	}
	return p.items[i]
}

// byColumn is messages by column, as unnest takes them. pgx encodes a FlatArray without reflection.
type byColumn struct {
	roles           []string
	tokens, flags   []int32
	clientIDs       pgtype.FlatArray[*string]
	calls, answers  pgtype.FlatArray[*string]
	startsUnit      []bool
	bodies, digests pgtype.FlatArray[[]byte]

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
		c.calls[i] = idArray(m.Calls)
		c.answers[i] = idArray(m.Answers)
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
		basis:  basisOf(a.Basis),
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
	if a.Usage != nil {
		p.usage, p.used = a.Usage, usedOf(*a.Usage)
		p.counted = tokensOfRequest(a)
	} else {
		p.exact = a.ExactTokens
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

var parameter = regexp.MustCompile(`@[a-z_]+`)

// What a session has of its tokens' measures after an append: those of a usage, of an exact count, or what it had.
var (
	measured = `calibration = ` + newCalibration + `,
	       unseen_tokens = ` + newUnseen + `,
	       shrunk_tokens = CASE WHEN @usage::jsonb IS NULL THEN s.shrunk_tokens ELSE 0 END,
	       last_usage = coalesce(@usage::jsonb, s.last_usage),
	       counted_tokens = s.counted_tokens + CASE WHEN @exact_tokens::bigint IS NULL THEN 0 ELSE @tokens END,
	       exact_tokens = s.exact_tokens + coalesce(@exact_tokens::bigint, 0)`

	// What a provider reported is better than an exact tokenizer: once there is any, it counts alone.
	newCalibration = fmt.Sprintf(`(
	       CASE WHEN @usage::jsonb IS NOT NULL THEN 1
	            WHEN @exact_tokens::bigint IS NULL OR s.last_usage IS NOT NULL THEN s.calibration
	            ELSE least(%v, greatest(%v, coalesce(
	                (s.exact_tokens + @exact_tokens::bigint)::float8 / nullif(s.counted_tokens + @tokens, 0),
	                s.calibration))) END)::real`, session.MaxCalibration, session.MinCalibration)
	newUnseen = `
	       CASE WHEN @used::bigint IS NULL
	            THEN s.unseen_tokens
	            ELSE ` + reported + ` END`

	// The same of an append with a usage that counts its input.
	measuredUse = `calibration = 1, unseen_tokens = ` + reported + `, shrunk_tokens = 0, last_usage = @usage`
)

// reported is a session's unseen tokens after an append with usage: the difference of the provider's count and the
// estimate. A count below half of the estimate or above the window is not believed.
const reported = `greatest(least(@used::bigint, s.window_tokens) - ` + requestEstimate + `,
	                          ` + requestEstimate + ` / -2)`

// requestEstimate is the session's estimate of what a usage counts: the view, the overhead, and the tokens of this
// batch through the answer. If compactions have shrunk the view since the last usage, the request may have been made
// before: the estimate that is nearer to the provider's count holds.
const requestEstimate = `
	(s.context_tokens + s.overhead_tokens + @counted::bigint
	 + CASE WHEN abs(@used::bigint - s.unseen_tokens
	                 - s.context_tokens - s.overhead_tokens - @counted::bigint - s.shrunk_tokens)
	           < abs(@used::bigint - s.unseen_tokens - s.context_tokens - s.overhead_tokens - @counted::bigint)
	        THEN s.shrunk_tokens
	        ELSE 0 END)`

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

// idArray writes call ids as PostgreSQL writes an array, for unnest takes an array of arrays apart. It returns nil for
// none: most messages have none, and NULL takes no space.
func idArray(ids []string) *string {
	if len(ids) == 0 {
		return nil
	}
	quoted := make([]string, len(ids))
	for i, id := range ids {
		quoted[i] = `"` + arrayEscapes.Replace(Text(id)) + `"`
	}
	return new("{" + strings.Join(quoted, ",") + "}")
}

var arrayEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

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

// ViewStatement returns the one statement of View.
func ViewStatement(at session.Address, known Version) (sql string, args []any) {
	return newestView, viewArgs(at, ViewRead{Known: known}, heldBody{})
}
