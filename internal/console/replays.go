package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/varve-dev/varve/client"
	"github.com/varve-dev/varve/internal/protocol"
)

// replay is the API's answer about a replay, as far as pages show it.
type replay struct {
	ID       uuid.UUID       `json:"id"`
	State    string          `json:"state"`
	Filter   json.RawMessage `json:"filter"`
	Policies []struct {
		Name string `json:"name"`
	} `json:"policies"`
	Windows  []int `json:"windows"`
	Progress struct {
		Matched   int64   `json:"matched"`
		TooShort  int64   `json:"too_short"`
		Total     int64   `json:"total"`
		Done      int64   `json:"done"`
		Measured  int64   `json:"measured"`
		Failed    int64   `json:"failed"`
		Contender *string `json:"contender"`
	} `json:"progress"`
	Error      *string    `json:"error"`
	CreatedAt  time.Time  `json:"created_at"`
	FinishedAt *time.Time `json:"finished_at"`
}

// names returns the names of the policies that are compared.
func (r *replay) names() string {
	var names []string
	for _, p := range r.Policies {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// replayedSession is what became of a session of a replay's sample.
type replayedSession struct {
	Session    *string    `json:"session"`
	State      string     `json:"state"`
	Reason     *string    `json:"reason"`
	Outcomes   int64      `json:"outcomes"`
	FinishedAt *time.Time `json:"finished_at"`
}

const (
	listReplays client.ListRoute[replay]          = "admin/replays"
	readReplay  client.Route[replay]              = "GET admin/replays/{replay}"
	beginReplay client.Route[replay]              = "POST admin/replays"
	endReplay   client.Route[replay]              = "POST admin/replays/{replay}/cancel"
	ofReplay    client.ListRoute[replayedSession] = "admin/replays/{replay}/sessions"
)

// showReplays lists the replays of the tenant, below the form for one. Other pages lead here with a policy to measure.
func showReplays(v *visit) error {
	q := v.r.URL.Query()
	t := table{
		Title: "Replays", Empty: "There was none yet.",
		Head: heads("Begun", "State", "#Sessions done", "#Of", "Policies"),
		Says: "A replay goes through stored sessions again under several policies, and measures what each keeps and " +
			"costs. It changes nothing.",
		Forms: []form{{
			To: pathOf("replays"), Word: "Start",
			Does: "Measures the policies over a sample of the sessions. One replay runs at a time.",
			Inputs: []input{
				{Name: "policies", Label: "Policies, the first is what others are compared with",
					Value: cmp.Or(q.Get("policies"), "tenant, default"), Needed: true},
				{Name: "policy", Label: "One more, as JSON", Value: q.Get("policy"), Example: `{"target": 0.25}`},
				{Name: "windows", Label: "Windows in tokens", Example: "each session's own"},
				{Name: "sample", Label: "Sessions, at most", Example: "200"},
				{Name: "metadata", Label: "With the metadata", Example: `{"user":"u1"}`},
				{Name: "model", Label: "With the model"},
				{Name: "min_tokens", Label: "With tokens, at least"},
			},
		}},
	}
	err := fill(v, &t, listReplays, func(r *replay) []cell {
		return []cell{since(r.CreatedAt, pathOf("replays", r.ID)), text(r.State), number(r.Progress.Done),
			number(r.Progress.Total), text(r.names())}
	})
	if err != nil {
		return err
	}
	return v.table("replays", &t)
}

// startReplay begins what the form says. The API says what is wrong with it, unless it is not JSON.
func startReplay(v *visit) error {
	if err := v.r.ParseForm(); err != nil {
		return err
	}
	form := formOf(v.r.PostForm)
	of, wrong := form.body(false)
	policies, windows := []any{}, []int{}
	for _, name := range listed(v.r.PostForm.Get("policies")) {
		policies = append(policies, name)
	}
	if document := of["policy"]; document != nil {
		policies = append(policies, map[string]any{"name": "changed", "policy": document})
	}
	for _, text := range listed(v.r.PostForm.Get("windows")) {
		window, err := strconv.Atoi(text)
		if err != nil {
			wrong = "windows are not numbers."
		}
		windows = append(windows, window)
	}
	sample, ok := v.count("sample")
	if !ok {
		wrong = "sample is not a number."
	}
	if wrong != "" {
		v.showError(422, protocol.Problem{Detail: "Nothing was done: " + wrong})
		return nil
	}
	body := map[string]any{"policies": policies, "filter": of["filter"]}
	if len(windows) > 0 {
		body["windows"] = windows
	}
	if sample > 0 {
		body["sample"] = sample
	}
	begun, err := beginReplay.With(v.ctx, v.api, client.Options{Body: body})
	return v.then(err, "replays", begun.Value.ID)
}

// showReplay shows a replay with its progress and, at its end, what it has measured.
func showReplay(v *visit) error {
	at := v.r.PathValue("replay")
	read, err := readReplay.Call(v.ctx, v.api, at)
	if err != nil {
		return err
	}
	r := &read.Value
	t := table{Title: "Replay", Head: heads("Session", "State", "#Measurements", "Ended", "Why not"),
		Empty: "The sample is not taken yet."}
	t.Facts = []fact{{"Id", idOf(r.ID)}, {"State", text(r.State)}, {"Begun", when(&r.CreatedAt)},
		{"Policies", text(r.names())}, {"Of", text(filterText(r.Filter))},
		{"Found", text(fmt.Sprintf("%d sessions, %d of them too short", r.Progress.Matched, r.Progress.TooShort))},
		{"Sample", text(fmt.Sprintf("%d of %d: %d measured, %d failed", r.Progress.Done, r.Progress.Total,
			r.Progress.Measured, r.Progress.Failed))}}
	if len(r.Windows) > 0 {
		t.Facts = append(t.Facts, fact{"Windows", text(r.Windows)})
	}
	if r.Error != nil {
		t.Facts = append(t.Facts, fact{"Error", cell{Text: *r.Error, Bad: true}})
	}
	if r.FinishedAt == nil {
		now := "measures " + cmp.Or(optional(r.Progress.Contender).Text, "nothing yet")
		t.Facts = append(t.Facts, fact{"Now", text(now)})
		t.Forms = []form{{To: pathOf("replays", at, "cancel"), Word: "Cancel", Danger: true,
			Does: "No other measurement begins. The report covers what was measured."}}
	} else if t.Raw, err = v.plain(reportOf(r.ID, "text")); err != nil {
		return err
	}
	if t.Raw != "" {
		t.Picture, t.RawOf = pathOf("replays", at, "plot"), "What the policies keep and cost"
	}
	err = fill(v, &t, ofReplay, func(s *replayedSession) []cell {
		what := text("erased")
		if s.Session != nil {
			what = linkedID(*s.Session, pathOf("sessions", *s.Session))
		}
		return []cell{what, text(s.State), number(s.Outcomes), when(s.FinishedAt), optional(s.Reason)}
	}, at)
	if err != nil {
		return err
	}
	return v.table("replays", &t)
}

// reportOf returns the path of a replay's report.
func reportOf(id uuid.UUID, format string) string {
	return "/v1/admin/replays/" + id.String() + "/report?format=" + format
}

// showReplayPlot passes the plot of a replay on, whose styles are its own.
func showReplayPlot(v *visit) error {
	id, err := uuid.Parse(v.r.PathValue("replay"))
	if err != nil {
		return showNothing(v)
	}
	v.w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	return v.pass(reportOf(id, "svg"), "")
}

func cancelReplay(v *visit) error {
	id := v.r.PathValue("replay")
	_, err := endReplay.Call(v.ctx, v.api, id)
	return v.then(err, "replays", id)
}
