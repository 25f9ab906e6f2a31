package alerts

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
)

// prometheus scrapes once in each minute of its own time, which only scrapes move on.
type prometheus struct {
	*testing.T
	db      *tsdb.DB
	engine  *promql.Engine
	now     time.Time
	targets map[string]string                   // the URL of each job
	last    map[string]map[string]labels.Labels // what the scrape before had, by job and name
}

func newPrometheus(t *testing.T) *prometheus {
	options := tsdb.DefaultOptions()
	options.RetentionDuration = 0
	db, err := tsdb.Open(t.TempDir(), nil, nil, options, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() }) // nothing of it is needed
	return &prometheus{
		T: t, db: db, now: time.Unix(1_800_000_000, 0), targets: map[string]string{},
		last:   map[string]map[string]labels.Labels{},
		engine: promql.NewEngine(promql.EngineOpts{MaxSamples: 1e7, Timeout: time.Minute, LookbackDelta: 5 * time.Minute}),
	}
}

// scrape stores what every process shows in the next minute, and which series of the minute before are gone.
func (p *prometheus) scrape() {
	p.Helper()
	p.now = p.now.Add(time.Minute)
	to := p.db.Appender(p.Context())
	for job, url := range p.targets {
		seen := p.store(to, job, url)
		for name, series := range p.last[job] {
			if _, there := seen[name]; !there {
				p.append(to, series, math.Float64frombits(value.StaleNaN))
			}
		}
		p.last[job] = seen
	}
	if err := to.Commit(); err != nil {
		p.Fatal(err)
	}
}

func (p *prometheus) append(to storage.Appender, series labels.Labels, v float64) {
	p.Helper()
	if _, err := to.Append(0, series, p.now.UnixMilli(), v); err != nil {
		p.Fatal(err)
	}
}

// store stores what a process shows, and returns its series: none if it does not answer.
func (p *prometheus) store(to storage.Appender, job, url string) map[string]labels.Labels {
	p.Helper()
	seen := map[string]labels.Labels{}
	text, err := fetch(p.Context(), url)
	if err != nil {
		return seen
	}
	for parser := textparse.NewPromParser(text, labels.NewSymbolTable(), false); ; {
		entry, err := parser.Next()
		if errors.Is(err, io.EOF) {
			return seen
		}
		if err != nil {
			p.Fatal(err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var shown labels.Labels
		parser.Labels(&shown)
		series := labels.NewBuilder(shown).Set("job", job).Set("instance", url).Labels()
		_, _, v := parser.Series()
		p.append(to, series, v)
		seen[series.String()] = series
	}
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	return io.ReadAll(response.Body)
}

// fires reports whether an alert fires now: whether its expression has had the same series for as long as it must.
func (p *prometheus) fires(r rule) bool {
	p.Helper()
	query, err := p.engine.NewRangeQuery(p.Context(), p.db, nil, r.Expr, p.now.Add(-r.For), p.now, time.Minute)
	if err != nil {
		p.Fatalf("%s: %v", r.Alert, err)
	}
	defer query.Close()
	found, err := query.Exec(p.Context()).Matrix()
	if err != nil {
		p.Fatalf("%s: %v", r.Alert, err)
	}
	for _, series := range found {
		if len(series.Floats) == int(r.For/time.Minute)+1 {
			return true
		}
	}
	return false
}

// selects reports whether any sample that was ever scraped is of a selector.
func (p *prometheus) selects(matchers []*labels.Matcher) bool {
	p.Helper()
	querier, err := p.db.Querier(0, p.now.UnixMilli())
	if err != nil {
		p.Fatal(err)
	}
	defer querier.Close()
	return querier.Select(p.Context(), false, nil, matchers...).Next()
}
