package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

type recompactCommand struct {
	Start  recompactStartCommand  `cmd:"" default:"withargs" help:"Compact many sessions anew, from their logs, and wait for the end."`
	List   recompactListCommand   `cmd:"" help:"List recompactions, newest first."`
	Show   recompactShowCommand   `cmd:"" help:"Print a recompaction, and what became of its sessions."`
	Cancel recompactCancelCommand `cmd:"" help:"Let what runs come to its end and nothing else begin."`
}

// recompactFilter says which sessions; all, without any flag.
type recompactFilter struct {
	Session            []string          `json:"sessions,omitempty" sep:"none" help:"Only this session; repeat it for more."`
	Metadata           map[string]string `json:"metadata,omitempty" mapsep:"none" placeholder:"KEY=VALUE" help:"Only sessions with this metadata; repeat it for more."`
	CreatedBefore      *time.Time        `json:"created_before,omitempty" placeholder:"TIME" help:"Only sessions made before, e.g. 2026-01-31T00:00:00Z."`
	CreatedAfter       *time.Time        `json:"created_after,omitempty" placeholder:"TIME" help:"Only sessions made after."`
	MinTokens          *int64            `json:"min_tokens,omitempty" placeholder:"N" help:"Only sessions whose view has at least so many tokens."`
	PolicyVersionBelow *int64            `json:"policy_version_below,omitempty" placeholder:"N" help:"Only sessions whose newest checkpoint is older than this version of the tenant's policy."`
	EngineVersionBelow *int64            `json:"engine_version_below,omitempty" placeholder:"N" help:"Only sessions whose newest checkpoint an older engine made."`
}

type recompactStartCommand struct {
	recompactFilter `embed:""`
	Policy          string `xor:"policy" help:"Changes to the sessions' policies, for this time: JSON, or a file of it (- is standard input). Without one, each session's own policy."`
	Profile         string `xor:"policy" help:"A profile for the policy, for this time: default, tool-compaction, cortex, falai, llm-proxy or codelia."`
	MaxRunning      int    `default:"2" help:"How many sessions are compacted at once, 1 to 32."`
	DryRun          bool   `help:"Only count, and estimate what would be saved."`
	Detach          bool   `help:"Do not wait for the end."`
}

// recompaction is a recompaction as the API tells of it.
type recompaction struct {
	ID       string `json:"id"`
	State    string `json:"state"`
	Progress struct {
		Total     int64 `json:"total"`
		Done      int64 `json:"done"`
		Running   int64 `json:"running"`
		Changed   int64 `json:"changed"`
		Unchanged int64 `json:"unchanged"`
		Failed    int64 `json:"failed"`
		Skipped   int64 `json:"skipped"`
	} `json:"progress"`
	TokensBefore int64   `json:"tokens_before"`
	TokensAfter  int64   `json:"tokens_after"`
	CreatedAt    string  `json:"created_at"`
	FinishedAt   *string `json:"finished_at"`
	Error        *string `json:"error"`
	Errors       []struct {
		Session string `json:"session"`
		Error   string `json:"error"`
	} `json:"errors"`
}

func (r *recompaction) ended() bool {
	return r.State == "done" || r.State == "failed" || r.State == "cancelled"
}

// recompactionPlan is what a dry run answers.
type recompactionPlan struct {
	Sessions      int64 `json:"sessions"`
	Messages      int64 `json:"messages"`
	TotalTokens   int64 `json:"total_tokens"`
	ContextTokens int64 `json:"context_tokens"`
	Sample        struct {
		Sessions int `json:"sessions"`
		Failed   int `json:"failed"`
		Errors   []struct{ Session, Error string }
		Before   int64 `json:"tokens_before"`
		After    int64 `json:"tokens_after"`
	} `json:"sample"`
	Estimate struct {
		Changed int64 `json:"changed"`
		Before  int64 `json:"tokens_before"`
		After   int64 `json:"tokens_after"`
	} `json:"estimate"`
}

// recompactionPath is a path below that of the recompactions.
func recompactionPath(below ...string) []string {
	return append([]string{"admin", "recompactions"}, below...)
}

// Run recompacts, with a bar on a terminal, and prints how it ended. An interrupt leaves the recompaction running.
func (c *recompactStartCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	body, err := c.body()
	if err != nil {
		return err
	}
	if c.DryRun {
		return c.dryRun(ctx, g, client, body)
	}
	var r recompaction
	// The key makes a request that is sent again, because its answer did not come, the same one.
	begin := call{method: http.MethodPost, path: recompactionPath(), body: body, idempotency: uuid.NewString(), ok: []int{http.StatusOK, http.StatusAccepted}}
	raw, err := client.decode(ctx, begin, &r)
	if err != nil {
		return err
	}
	if !c.Detach {
		if raw, err = r.follow(ctx, client, os.Stderr); err != nil {
			return err
		}
	}
	return r.report(g, raw)
}

func (c *recompactStartCommand) body() ([]byte, error) {
	body := struct {
		Filter     *recompactFilter `json:"filter"`
		Policy     json.RawMessage  `json:"policy,omitempty"`
		MaxRunning int              `json:"max_running"`
		DryRun     bool             `json:"dry_run,omitempty"`
	}{Filter: &c.recompactFilter, MaxRunning: c.MaxRunning, DryRun: c.DryRun}
	switch {
	case c.Profile != "":
		body.Policy = fmt.Appendf(nil, `{"profile":%q}`, c.Profile)
	case c.Policy != "":
		document, err := readPolicy(c.Policy)
		if err != nil {
			return nil, err
		}
		body.Policy = document
	}
	return json.Marshal(body)
}

func (c *recompactStartCommand) dryRun(ctx context.Context, g *Globals, client *Client, body []byte) error {
	var p recompactionPlan
	raw, err := client.decode(ctx, call{method: http.MethodPost, path: recompactionPath(), body: body}, &p)
	if err != nil {
		return err
	}
	if g.JSON {
		_, err = os.Stdout.Write(append(raw, '\n'))
		return err
	}
	return p.write(os.Stdout)
}

func (p *recompactionPlan) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "sessions\t%d\nmessages\t%d\ntokens of the logs\t%d\ntokens of the views\t%d\n", p.Sessions, p.Messages, p.TotalTokens, p.ContextTokens)
	fmt.Fprintf(table, "sample\t%d sessions, %d failed, %d → %d tokens\n", p.Sample.Sessions, p.Sample.Failed, p.Sample.Before, p.Sample.After)
	fmt.Fprintf(table, "estimate\t%d sessions change, %d → %d tokens\n", p.Estimate.Changed, p.Estimate.Before, p.Estimate.After)
	for _, e := range p.Sample.Errors {
		fmt.Fprintf(table, "%s\t%s\n", printable(e.Session), printable(e.Error))
	}
	return table.Flush()
}

// followEvery is how often a recompaction is asked how far it is.
const followEvery = 500 * time.Millisecond

// follow waits for the end and tells how far it is: a bar on a terminal, else a line every ten seconds.
func (r *recompaction) follow(ctx context.Context, client *Client, out *os.File) (raw []byte, err error) {
	bar := newRecompactionBar(out)
	defer bar.finish()
	for {
		if raw, err = client.decode(ctx, call{method: http.MethodGet, path: recompactionPath(r.ID)}, r); err != nil || r.ended() {
			break
		}
		bar.tell(r)
		if err = client.sleep(ctx, followEvery); err != nil {
			break
		}
	}
	if err != nil {
		err = fmt.Errorf("recompaction %s goes on (varve recompact show, or cancel): %w", r.ID, err)
	}
	return raw, err
}

// recompactionBar tells how far a recompaction is.
type recompactionBar struct {
	out  io.Writer
	bar  *progressbar.ProgressBar // nil if out is no terminal
	told time.Time
}

func newRecompactionBar(out *os.File) *recompactionBar {
	b := &recompactionBar{out: out, told: time.Now()}
	if term.IsTerminal(int(out.Fd())) {
		b.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(out), progressbar.OptionSetWidth(24), progressbar.OptionShowCount(),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
	}
	return b
}

func (b *recompactionBar) tell(r *recompaction) {
	p := r.Progress
	text := fmt.Sprintf("%d changed, %d unchanged, %d failed, %d skipped", p.Changed, p.Unchanged, p.Failed, p.Skipped)
	switch {
	case b.bar != nil && r.State != "queued" && p.Total > 0:
		b.bar.ChangeMax64(p.Total)
		b.bar.Describe(text)
		_ = b.bar.Set64(p.Done) // a bar that cannot be drawn does not stop the recompaction
	case b.bar == nil && time.Since(b.told) >= tellEvery:
		b.told = time.Now()
		fmt.Fprintf(b.out, "%s: %d of %d sessions, %s\n", r.State, p.Done, p.Total, text)
	}
}

func (b *recompactionBar) finish() {
	if b.bar != nil {
		_ = b.bar.Finish()
	}
}

// report prints the recompaction; sessions that failed are an error.
func (r *recompaction) report(g *Globals, raw []byte) (err error) {
	if g.JSON {
		_, err = os.Stdout.Write(append(raw, '\n'))
	} else {
		err = r.write(os.Stdout)
	}
	switch {
	case err != nil:
		return err
	case r.State == "failed":
		return fmt.Errorf("recompaction %s failed: %s", r.ID, text(r.Error))
	case r.Progress.Failed > 0:
		return fmt.Errorf("recompaction %s: %d sessions failed", r.ID, r.Progress.Failed)
	}
	return nil
}

func (r *recompaction) write(out io.Writer) error {
	p := r.Progress
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "recompaction\t%s\nstate\t%s\ncreated\t%s\nfinished\t%s\n", r.ID, r.State, toSecond(r.CreatedAt), toSecond(text(r.FinishedAt)))
	fmt.Fprintf(table, "sessions\t%d of %d: %d changed, %d unchanged, %d failed, %d skipped\n", p.Done, p.Total, p.Changed, p.Unchanged, p.Failed, p.Skipped)
	fmt.Fprintf(table, "tokens\t%d → %d\n", r.TokensBefore, r.TokensAfter)
	for _, e := range r.Errors {
		fmt.Fprintf(table, "failed: %s\t%s\n", printable(e.Session), printable(e.Error))
	}
	return table.Flush()
}

type recompactListCommand struct {
	Limit int `default:"20" help:"How many, newest first."`
}

// Run lists the tenant's recompactions.
func (c *recompactListCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	if g.JSON {
		return listJSON(ctx, client, os.Stdout, c.Limit, recompactionPath()...)
	}
	found, err := list[recompaction](ctx, client, c.Limit, recompactionPath()...)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "RECOMPACTION\tCREATED\tSTATE\tDONE\tTOTAL\tCHANGED\tFAILED\tBEFORE\tAFTER")
	for _, r := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", r.ID, toSecond(r.CreatedAt), r.State, r.Progress.Done, r.Progress.Total,
			r.Progress.Changed, r.Progress.Failed, r.TokensBefore, r.TokensAfter)
	}
	return table.Flush()
}

type recompactShowCommand struct {
	ID       string `arg:"" help:"The recompaction's id."`
	Sessions bool   `help:"What became of each session."`
	Limit    int    `default:"1000" help:"How many sessions."`
}

// recompacted is a session of a recompaction as the API tells of it.
type recompacted struct {
	Session      *string `json:"session"`
	State        string  `json:"state"`
	Run          *string `json:"run"`
	TokensBefore *int64  `json:"tokens_before"`
	TokensAfter  *int64  `json:"tokens_after"`
	Error        *string `json:"error"`
}

// Run prints the recompaction or, with --sessions, its sessions.
func (c *recompactShowCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	switch {
	case c.Sessions && g.JSON:
		return listJSON(ctx, client, os.Stdout, c.Limit, recompactionPath(c.ID, "sessions")...)
	case c.Sessions:
		return c.sessions(ctx, client)
	}
	var r recompaction
	raw, err := client.decode(ctx, call{method: http.MethodGet, path: recompactionPath(c.ID)}, &r)
	if err != nil {
		return err
	}
	if g.JSON {
		_, err = os.Stdout.Write(append(raw, '\n'))
		return err
	}
	return r.write(os.Stdout)
}

func (c *recompactShowCommand) sessions(ctx context.Context, client *Client) error {
	found, err := list[recompacted](ctx, client, c.Limit, recompactionPath(c.ID, "sessions")...)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SESSION\tSTATE\tBEFORE\tAFTER\tRUN\tERROR")
	for _, s := range found {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", text(s.Session), s.State, number(s.TokensBefore), number(s.TokensAfter), text(s.Run), text(s.Error))
	}
	return table.Flush()
}

type recompactCancelCommand struct {
	ID string `arg:"" help:"The recompaction's id."`
}

// Run cancels the recompaction; cancelling it twice changes nothing.
func (c *recompactCancelCommand) Run(ctx context.Context, g *Globals) error {
	client, err := g.Client()
	if err != nil {
		return err
	}
	var r recompaction
	cancel := call{method: http.MethodPost, path: recompactionPath(c.ID, "cancel"), ok: []int{http.StatusOK, http.StatusAccepted}}
	raw, err := client.decode(ctx, cancel, &r)
	if err != nil {
		return err
	}
	if g.JSON {
		_, err = os.Stdout.Write(append(raw, '\n'))
		return err
	}
	return r.write(os.Stdout)
}
