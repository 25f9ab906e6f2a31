package console

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/varve-dev/varve/client"
)

// recompaction is the API's answer about a recompaction, as far as pages show it.
type recompaction struct {
	ID           string          `json:"id"`
	State        string          `json:"state"`
	Filter       json.RawMessage `json:"filter"`
	Policy       json.RawMessage `json:"policy"`
	Progress     progress        `json:"progress"`
	PerMinute    *int            `json:"per_minute"`
	Hours        *hours          `json:"hours"`
	NextStartAt  *time.Time      `json:"next_start_at"`
	TokensBefore int64           `json:"tokens_before"`
	TokensAfter  int64           `json:"tokens_after"`
	Error        *string         `json:"error"`
	Errors       []struct {
		Session string    `json:"session"`
		Error   string    `json:"error"`
		At      time.Time `json:"at"`
	} `json:"errors"`
	CreatedAt    time.Time  `json:"created_at"`
	StartedAt    *time.Time `json:"started_at"`
	FinishedAt   *time.Time `json:"finished_at"`
	RolledBackAt *time.Time `json:"rolled_back_at"`
}

// hours are the hours of each day in which sessions begin.
type hours struct {
	From     string `json:"from"`
	To       string `json:"to"`
	TimeZone string `json:"time_zone"`
}

// progress counts the sessions of a recompaction.
type progress struct {
	Total      int64 `json:"total"`
	Done       int64 `json:"done"`
	Running    int64 `json:"running"`
	Changed    int64 `json:"changed"`
	Unchanged  int64 `json:"unchanged"`
	Failed     int64 `json:"failed"`
	Skipped    int64 `json:"skipped"`
	RolledBack int64 `json:"rolled_back"`
	Excepted   int64 `json:"excepted"`
}

// Of says which sessions it has.
func (r *recompaction) Of() string { return filterText(r.Filter) }

func filterText(filter json.RawMessage) string {
	if text := string(filter); text != "{}" && text != "null" && text != "" {
		return text
	}
	return "all sessions"
}

// Rate returns how many sessions have ended a minute, nil if that is not known.
func (r *recompaction) Rate() *float64 {
	if r.StartedAt == nil || r.Progress.Done == 0 {
		return nil
	}
	end := time.Now()
	if r.FinishedAt != nil {
		end = *r.FinishedAt
	}
	return new(float64(r.Progress.Done) / max(end.Sub(*r.StartedAt).Minutes(), 1.0/60))
}

// Left returns in what time it ends at the pace so far, "" if that is not known.
func (r *recompaction) Left() string {
	if r.State != "running" || r.StartedAt == nil || r.Progress.Done == 0 {
		return ""
	}
	took := time.Since(*r.StartedAt)
	left := took * time.Duration(r.Progress.Total-r.Progress.Done) / time.Duration(r.Progress.Done)
	return strings.TrimPrefix(ago(time.Now().Add(left)), "in ")
}

// Actions returns what can be done with it now, each with what it will do.
func (r *recompaction) Actions() []control {
	switch r.State {
	case "queued", "scheduled", "running":
		return []control{pauseIt, cancelIt}
	case "paused":
		return []control{resumeIt, cancelIt}
	case "done", "cancelled":
		if r.Progress.Changed > r.Progress.RolledBack {
			return []control{rollItBack}
		}
	}
	return nil
}

// control is what can be done with a recompaction.
type control struct {
	Do, Word, Does string
	Danger         bool
}

var (
	pauseIt  = control{Do: "pause", Word: "Pause", Does: "Sessions that run end; no other begins until it is resumed."}
	resumeIt = control{Do: "resume", Word: "Resume", Does: "Sessions begin again."}
	cancelIt = control{Do: "cancel", Word: "Cancel", Does: "Sessions that run end, the others keep their views. What " +
		"was changed stays, and can be rolled back.", Danger: true}
	rollItBack = control{Do: "rollback", Word: "Roll back", Does: "Each changed session serves again what it served " +
		"before, with what was appended since. One that was compacted again meanwhile is left as it is.", Danger: true}
)

const (
	listRecompactions  client.ListRoute[recompaction] = "admin/recompactions"
	readRecompaction   client.Route[recompaction]     = "GET admin/recompactions/{recompaction}"
	recompactedOutcome client.ListRoute[outcome]      = "admin/recompactions/{recompaction}/sessions"
	compareRecompacted client.Route[comparison]       = "GET admin/recompactions/{recompaction}/comparison"
)

// recompactionsPage lists the recompactions of the tenant, the newest first.
type recompactionsPage struct {
	Recompactions []recompaction
	Next          string
}

func showRecompactions(v *visit) (err error) {
	var page recompactionsPage
	if page.Recompactions, page.Next, err = list(v, listRecompactions, nil); err != nil {
		return err
	}
	return v.show("recompactions", "Recompactions", "recompactions.html", &page)
}

// outcome is what became of a session.
type outcome struct {
	Session      *string    `json:"session"`
	State        string     `json:"state"`
	Run          *string    `json:"run"`
	TokensBefore *int64     `json:"tokens_before"`
	TokensAfter  *int64     `json:"tokens_after"`
	Error        *string    `json:"error"`
	Reason       *string    `json:"reason"`
	FinishedAt   *time.Time `json:"finished_at"`
}

// served is what sessions have served.
type served struct {
	ViewTokens    int64    `json:"view_tokens"`
	Views         int64    `json:"views"`
	TokensPerView *float64 `json:"tokens_per_view"`
	ReadBacks     int64    `json:"read_backs"`
	ReadsPerViews *float64 `json:"read_backs_per_1000_views"`
}

// comparison is what the changed sessions served before and since, and the others since.
type comparison struct {
	Sessions int64  `json:"sessions"`
	Before   served `json:"before"`
	After    served `json:"after"`
	Others   served `json:"others"`
}

// recompactionPage is one recompaction with its progress.
type recompactionPage struct {
	recompaction
	Sessions []outcome
	Compared *comparison // nil until something was changed
	Next     string
}

func showRecompaction(v *visit) error {
	id := v.r.PathValue("recompaction")
	read, err := readRecompaction.Call(v.ctx, v.api, id)
	if err != nil {
		return err
	}
	page := recompactionPage{recompaction: read.Value}
	if page.Sessions, page.Next, err = list(v, recompactedOutcome, nil, id); err != nil {
		return err
	}
	if page.Progress.Changed > 0 {
		compared, err := compareRecompacted.Call(v.ctx, v.api, id)
		if err != nil {
			return err
		}
		page.Compared = &compared.Value
	}
	return v.show("recompactions", "Recompaction", "recompaction.html", &page)
}

// controlRecompaction pauses, resumes, cancels or rolls back.
func controlRecompaction(v *visit) error {
	id, do := v.r.PathValue("recompaction"), v.r.PathValue("do")
	if !isControl(do) {
		return showNothing(v)
	}
	_, err := client.Route[recompaction]("POST admin/recompactions/{recompaction}/"+do).Call(v.ctx, v.api, id)
	return v.then(err, "recompactions", id)
}

func isControl(do string) bool {
	return slices.Contains([]string{pauseIt.Do, resumeIt.Do, cancelIt.Do, rollItBack.Do}, do)
}

// newRecompactionPage is the form for a recompaction, and behind a dry run what it would do.
type newRecompactionPage struct {
	Form  recompactionForm
	At    string            // where it is sent: the tenant's recompactions, or those of many tenants
	Plan  *recompactionPlan // nil before the dry run
	Wrong string            // what the form has that is not JSON
}

// recompactionForm has what the form sends.
type recompactionForm struct {
	Tenants, Metadata, Model, MinTokens, Percent, Policy, PerMinute, Token string
	StartAt                                                                string // a time, as the API reads it
	From, To, TimeZone                                                     string // hours in which sessions begin
	Format                                                                 string
	OverWindow, Failing, Quarantined, Due                                  bool
}

// recompactionPlan is the answer of a dry run.
type recompactionPlan struct {
	Sessions      int64 `json:"sessions"`
	Messages      int64 `json:"messages"`
	TotalTokens   int64 `json:"total_tokens"`
	ContextTokens int64 `json:"context_tokens"`
	Sample        struct {
		Sessions     int64 `json:"sessions"`
		Changed      int64 `json:"changed"`
		Failed       int64 `json:"failed"`
		TokensBefore int64 `json:"tokens_before"`
		TokensAfter  int64 `json:"tokens_after"`
	} `json:"sample"`
	Estimate struct {
		Changed      int64   `json:"changed"`
		TokensBefore int64   `json:"tokens_before"`
		TokensAfter  int64   `json:"tokens_after"`
		TokensSaved  int64   `json:"tokens_saved"`
		Calls        int64   `json:"calls"`
		CostMax      float64 `json:"cost_max"`
	} `json:"estimate"`
	ConfirmToken string `json:"confirm_token"`
}

func formOf(of url.Values) recompactionForm {
	return recompactionForm{
		Tenants: of.Get("tenants"), Metadata: of.Get("metadata"), Model: of.Get("model"),
		MinTokens: of.Get("min_tokens"), Percent: of.Get("percent"), Policy: of.Get("policy"),
		PerMinute: of.Get("per_minute"), Token: of.Get("token"),
		StartAt: of.Get("start_at"), From: of.Get("from"), To: of.Get("to"), TimeZone: of.Get("time_zone"),
		Format: of.Get("format"), OverWindow: of.Has("over_window"), Failing: of.Has("failing"),
		Quarantined: of.Has("quarantined"), Due: of.Has("due"),
	}
}

// OfMany reports whether the recompaction is of many tenants.
func (p *newRecompactionPage) OfMany() bool { return p.At == pathOf(ofMany.section) }

// body returns the body of the API's request. It sets what is wrong with the form that the API could not say.
func (p *newRecompactionPage) body(dryRun bool) map[string]any {
	body, wrong := p.Form.body(dryRun)
	p.Wrong = wrong
	if p.OfMany() {
		delete(body, "confirm_token") // the API knows none of many tenants
		if tenants := listed(p.Form.Tenants); len(tenants) > 0 {
			body["tenants"] = tenants
		}
	}
	return body
}

func (f *recompactionForm) body(dryRun bool) (body map[string]any, wrong string) {
	filter := map[string]any{}
	body = map[string]any{"filter": filter}
	document := func(into map[string]any, name, text string) {
		if text = strings.TrimSpace(text); text == "" {
			return
		}
		if !json.Valid([]byte(text)) {
			wrong = name + " is not JSON."
		}
		into[name] = json.RawMessage(text)
	}
	number := func(into map[string]any, name, text string) {
		if text == "" {
			return
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			wrong = name + " is not a number."
		}
		into[name] = n
	}
	document(filter, "metadata", f.Metadata)
	document(body, "policy", f.Policy)
	number(filter, "min_tokens", f.MinTokens)
	number(filter, "percent", f.Percent)
	number(body, "per_minute", f.PerMinute)
	for name, text := range map[string]string{"model": f.Model, "format": f.Format} {
		if text != "" {
			filter[name] = text
		}
	}
	if f.Quarantined { // of the list of sessions
		wrong = "A recompaction is of failing sessions, quarantined or not: choose these."
	}
	if f.Due {
		wrong = "Sessions that are due are compacted without a recompaction: choose others."
	}
	if f.StartAt != "" {
		body["start_at"] = f.StartAt
	}
	if f.From != "" || f.To != "" {
		body["hours"] = hours{f.From, f.To, cmp.Or(f.TimeZone, "UTC")}
	}
	for name, on := range map[string]bool{"over_window": f.OverWindow, "failing": f.Failing} {
		if on {
			filter[name] = true
		}
	}
	if dryRun {
		body["dry_run"] = true
	} else {
		body["confirm_token"] = f.Token
	}
	return body, wrong
}

// recompactor begins recompactions: those of the tenant, or for operators those of many.
type recompactor struct {
	section, title string
	route          string // of the API
}

var (
	ofTenant = recompactor{"recompactions", "New recompaction", "POST admin/recompactions"}
	ofMany   = recompactor{"campaigns", "New recompaction of many tenants", "POST admin/tenants/recompactions"}
)

// form shows the form. With a filter in its address it shows also what the recompaction would do.
func (of recompactor) form(v *visit) error {
	q := v.r.URL.Query()
	page := newRecompactionPage{Form: formOf(q), At: pathOf(of.section)}
	if q.Has("plan") {
		body := page.body(true)
		if page.Wrong == "" {
			plan, err := client.Route[recompactionPlan](of.route).With(v.ctx, v.api, client.Options{Body: body})
			if err != nil {
				return err
			}
			page.Plan = &plan.Value
		}
	}
	return v.show(of.section, of.title, "recompaction-new.html", &page)
}

// start begins what a dry run has shown: its token says that nothing of the form has changed since.
func (of recompactor) start(v *visit) error {
	if err := v.r.ParseForm(); err != nil {
		return err
	}
	page := newRecompactionPage{Form: formOf(v.r.PostForm), At: pathOf(of.section)}
	body := page.body(false)
	if page.Wrong != "" {
		return v.show(of.section, of.title, "recompaction-new.html", &page)
	}
	type begun struct{ ID string }
	made, err := client.Route[begun](of.route).With(v.ctx, v.api, client.Options{Body: body})
	return v.then(err, of.section, made.Value.ID)
}
