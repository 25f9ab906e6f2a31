// Package alerts makes the fault of each of our alerts on a real Varve and has Prometheus' own engine say whether the
// alert fires. It is a module of its own, so that Varve does not depend on Prometheus; make soak runs it.
package alerts

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

type rule struct {
	Alert string        `yaml:"alert"`
	Expr  string        `yaml:"expr"`
	For   time.Duration `yaml:"for"`
}

// rules returns our rules by name.
func rules(t *testing.T) map[string]rule {
	t.Helper()
	text, err := os.ReadFile("../../monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	found := map[string]rule{}
	for _, r := range file.Groups[0].Rules {
		found[r.Alert] = r
	}
	return found
}

// panels returns the expressions of the dashboard, with Grafana's variables filled in.
func panels(t *testing.T) (expressions []string) {
	t.Helper()
	text, err := os.ReadFile("../../monitoring/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			filled := strings.NewReplacer("$__rate_interval", "5m", "$job", "api").Replace(target.Expr)
			expressions = append(expressions, filled)
		}
	}
	return expressions
}

// TestEveryAlertFiresByItsFaultAlone: no alert fires while all is well, each fires once its fault is made, and what
// alerts and dashboards select was scraped at some time.
func TestEveryAlertFiresByItsFaultAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	w := newWorld(t)
	left := rules(t)
	expressions := panels(t)
	for _, r := range left {
		expressions = append(expressions, r.Expr)
	}
	w.allIsWell()
	for name, r := range left {
		if w.fires(r) {
			t.Errorf("%s fires, and all is well", name)
		}
	}
	for _, f := range faults {
		w.provoke(f, left)
	}
	for name := range left {
		t.Errorf("no fault is made for %s", name)
	}
	w.allIsNamed(expressions)
}

// provoke makes a fault, and removes the alerts from left that fire by it and did not before.
func (w *world) provoke(f fault, left map[string]rule) {
	w.Helper()
	waits := strings.Fields(f.alerts)
	for _, name := range waits {
		if _, known := left[name]; !known {
			w.Fatalf("there is no alert %s", name)
		}
		if w.fires(left[name]) {
			w.Errorf("%s fires before %s", name, f.name)
		}
	}
	heal := f.make(w)
	for minute := 0; len(waits) > 0 && minute < 60; minute++ {
		if f.minute != nil {
			f.minute(w)
		}
		time.Sleep(250 * time.Millisecond) // what is asked of a process takes its time
		w.scrape()
		var silent []string
		for _, name := range waits {
			if w.fires(left[name]) {
				w.Logf("%s: %s fires in minute %d", f.name, name, minute)
				delete(left, name)
			} else {
				silent = append(silent, name)
			}
		}
		waits = silent
	}
	for _, name := range waits {
		w.Errorf("%s does not fire: %s", name, f.name)
		delete(left, name)
	}
	heal()
}

// allIsNamed requires that every selector of the expressions selects something, and every label of a grouping is there.
func (w *world) allIsNamed(expressions []string) {
	w.Helper()
	for _, text := range expressions {
		expr, err := parser.NewParser(parser.Options{}).ParseExpr(text)
		if err != nil {
			w.Errorf("%s: %v", text, err)
			continue
		}
		for _, matchers := range parser.ExtractSelectors(expr) {
			if !w.selects(matchers) {
				w.Errorf("%s: %v selects nothing", text, matchers)
			}
		}
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if sum, ok := node.(*parser.AggregateExpr); ok {
				w.hasLabels(sum)
			}
			return nil
		})
	}
}

// hasLabels requires that what an aggregation groups has the labels that it is grouped by.
func (w *world) hasLabels(sum *parser.AggregateExpr) {
	w.Helper()
	for _, matchers := range parser.ExtractSelectors(sum.Expr) {
		for _, label := range sum.Grouping {
			if !w.selects(append(matchers, labelled(label))) {
				w.Errorf("%s: no label %s", sum, label)
			}
		}
	}
}
