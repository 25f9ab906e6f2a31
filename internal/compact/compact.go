// Package compact decides when and how a view shrinks. It is pure: no I/O, no clock, no log, so the same input gives
// the same bytes.
//
// Start at Run (run.go), which reads a checkpoint and the messages after it and returns a Plan and the checkpoint that
// it makes, and at stages, the list of what runs. The caller persists Plan.Results before it commits the checkpoint. A
// policy.Policy sets how much is kept.
//
// The files, from the bottom up: action.go and compact.go (the types of input and output), subject.go, history.go,
// read.go, origin.go and units.go (messages, their parts, what calls are about, what results are copies of), words.go
// (every text that replaces a part), runstate.go and protect.go (what a stage sees), one file for each stage, besides
// capratio.go (caps that are shares of the window) and fit.go (as little leaves as needed), draft.go, lower.go and
// evict.go (replacements), plan.go and record.go (from proposals to a plan, and its reasons), render.go, state.go and
// codec.go (the checkpoint and what it remembers), recall.go (the user's words and the names that a summary has),
// request.go (what is summarised), segments.go, merge.go and answers.go (summaries of ranges, and what models answer
// later; ADR 55), ingest.go (the cap while a message is appended). The packages rule, text, resource, names, memory
// and summary have what stages decide and cut with; package conformance asks recorded calls of five other systems of
// the product.
//
// # Why an incremental compaction equals one from the log
//
// It does so for policies without summaries, as long as protection does not yield at the hard limit. For every policy,
// the same input gives the same bytes, and from one checkpoint to the next a part only moves down the ladder; but with
// summaries a compaction from the log may differ.
//
// A stage decides from original figures only, which the state keeps, and proposes an action for every part of the
// session, as if nothing had been done to it yet. What is applied is the lower of that and of what the view has, on the
// ladder of ActionKind. Both ways give the same bytes because no proposal ever moves up as a session grows:
//
//   - a stage is entered if the view was over its limit at any message of the history, not only at the last one, so
//     a stage that was entered once stays entered (runState.needed);
//   - a part's distance from the end, the number of units, messages and turns after it and the number of newer results
//     for its resource only grow; a stub names the result that made it superfluous, which never changes;
//   - a proposal keeps the message since which it is right, so that of two on one rung the earlier counts, and a text
//     that is collapsed before it is cut is always cut from its collapsed form;
//   - units are counted as they began, so that a late answer does not turn old ones into recent ones;
//   - whether a replacement is used depends on the original alone, whose size the state knows. If replacements must be
//     smaller (only_smaller), every cut is longer than any line, so that of two on different rungs the lower one is the
//     smaller, whichever was needed first; else every proposal is used.
//
// Stage hard is an exception: it goes by the view as it is now (ADR 29).
//
// Summaries are an exception: a summary of a summary differs from a summary of the messages. The user's words that were
// cut once stay cut, and of the names only the best are remembered at each compaction (ADR 30). Three rare cases are
// exceptions, too: an answer that comes after its call was dropped as abandoned; with dedupe.pending a call that is
// given up, or answered after other calls: it superseded a result while it was pending; and with budget a notice, as
// the lines of the results that it replaces count towards the budget until they are gone.
package compact

import (
	"bytes"
	"crypto/sha256"
	"github.com/varve-dev/varve/internal/compact/summary"
	"github.com/varve-dev/varve/internal/policy"
	"github.com/varve-dev/varve/internal/session"
)

// EngineVersion is the version of this engine.
const EngineVersion = session.EngineVersion

// Input is what a compaction starts from.
type Input struct {
	Format         session.Format
	Policy         policy.Policy
	WindowTokens   int         // the model's context window
	OverheadTokens int         // tokens that are sent besides these messages
	MaxImages      int         // of a request; 0: any number
	Base           *Checkpoint // nil: start from the log
	Tail           []Entry     // the messages after Base.Through, by seq
	Uploads        []Upload    // the session's uploaded results of which a message may have the capped text
	Pins           []Pin       // of callers: what every checkpoint has verbatim, besides what the policy pins

	// Answers are what models have answered since, by the digests of the segments of the base that are due or failed;
	// Failed has those whose model has failed, with the reason. A digest in neither is still due.
	Answers map[summary.Digest]summary.Answer
	Failed  map[summary.Digest]error

	// Asked has the digests of the requests that a model is still asked, or will be. What the base waits for and is in
	// none of the three was given up, as when an older checkpoint was restored: it is asked for anew. nil: nothing was.
	Asked map[summary.Digest]bool

	// Older reads messages of the log that the base covers, for a summary that is made again; nil: nothing reads them.
	Older func(first, last int64) ([]Entry, error)

	// OnlyAnswers says that nothing is to be done but to take these in: no stage shortens anything else.
	OnlyAnswers bool
}

// Write writes a summary. After summary.ErrDue, or another error, the compaction continues with the policy's fallback.
type Write func(summary.Request) (summary.Answer, error)

// Segment is the summary of a range of the log. The text that a writer wrote of a range stays as it is until the
// segment is merged with others.
type Segment struct {
	First      int64          `json:"first_seq"`
	Last       int64          `json:"last_seq"`
	Messages   int            `json:"messages"`
	Tokens     int            `json:"tokens"`
	Writer     string         `json:"writer"`     // a model's name, or extract
	State      SegmentState   `json:"state"`      //
	Generation int            `json:"generation"` // 1 for a summary of messages, 2 for one of such summaries, …
	Digest     summary.Digest `json:"-"`          // of the request to the model; zero if there was none
	Flags      []string       `json:"flags,omitempty"`
}

// SegmentState says whether a segment is what its policy wants.
type SegmentState string

// The states of a segment.
const (
	Written SegmentState = "written" // by the writer that the policy names
	Due     SegmentState = "due"     // the fallback stands there until the model has answered
	Failed  SegmentState = "failed"  // the fallback stands there because the model has failed
	Dropped SegmentState = "dropped" // there is no summary; only in the list of Summaries
)

// Entry is one message of the log.
type Entry struct {
	Seq        int64
	Tokens     int // estimated when it was appended
	Body       []byte
	ViewTokens int // of the message in the view, if results were capped at ingest; 0: the same

	// Part is the number of its first part. A message of another format, or one of several steps, may become several
	// in the view: they have one Seq, and all but the first have a Part that continues after those before it.
	Part int
	Step bool // a unit begins with it although it has a Part: it is a step of the assistant's, see Divide

	// Appended has, for each part of a message that is translated, which one of the log it is, whose seq may be an
	// earlier one than Seq; nil for a message that is in the log as it is.
	Appended []Appended
}

// Appended is the part of the log that a part of a translated message was made of. Its ref names that, whatever the
// format of the session is: it is the same wherever the part is shown.
type Appended struct {
	Seq    int64
	Part   int
	SHA256 [32]byte // of its content as Result.Stored has it; zero for what is no result or call of the log
}

// Upload is an uploaded result. A tool result with the digest of its capped text is that text, and no other: any tool
// can write a line that names an upload.
type Upload struct {
	Ref        string
	CallID     string   // of the call that it answers; "" for not known
	TextDigest [32]byte // DigestOf its capped text
}

// DigestOf identifies the text of a result, whatever white space a client puts around it.
func DigestOf(text []byte) [32]byte { return sha256.Sum256(bytes.TrimSpace(text)) }

// Checkpoint is the compacted rendition of a session's messages up to Through.
type Checkpoint struct {
	Through   int64  // the last seq it covers
	Tokens    int64  // estimated tokens of Body
	Body      []byte // the messages, joined by commas
	State     []byte // what the next compaction must know of them, see state.go
	Units     []Unit
	OpenCalls []string // ids of the calls that no result in Body answers
}

// Unit is a run of messages that belong together: an assistant message, its calls, their results and what came between;
// or one message that replaces others.
type Unit struct {
	Offset   int   `json:"offset"` // of its first message in the checkpoint's body
	FirstSeq int64 `json:"first_seq"`
	Messages int   `json:"messages"` // of the log that begin in it
	Tokens   int64 `json:"tokens"`
	Pinned   bool  `json:"pinned"` // a leading system message, a summary or a notice: never left out
}
