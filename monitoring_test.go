package varve_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestAlertsAndDashboardNameMetricsThatExist holds the files of monitoring to what the programs register: a metric
// under another name would make an alert that never fires. What registers a metric names it in a string of its own.
// test/alerts, which make soak runs, makes the fault of each alert.
func TestAlertsAndDashboardNameMetricsThatExist(t *testing.T) {
	t.Parallel()
	sources, err := exec.Command("git", "grep", "-hoE", `"varve_[a-z_]+"`, "--", "internal/*.go", ":!*_test.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	registered := strings.Fields(strings.ReplaceAll(string(sources), `"`, ""))
	expressions := append(alertExpressions(t), dashboardExpressions(t)...)
	if len(expressions) < 30 {
		t.Fatalf("only %d expressions were found", len(expressions))
	}
	named := regexp.MustCompile(`\bvarve_[a-z_]+`)
	for _, expr := range expressions {
		for _, name := range named.FindAllString(expr, -1) {
			name = strings.TrimSuffix(name, "_bucket")
			if !slices.Contains(registered, name) {
				t.Errorf("%s is no metric: %s", name, expr)
			}
		}
	}
}

func alertExpressions(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Annotations["summary"] == "" || rule.Annotations["description"] == "" || rule.Labels["severity"] == "" {
				t.Errorf("%s does not say what is wrong, what to do and how much it matters", rule.Alert)
			}
			if feature := rule.Labels["feature"]; feature == "" || isThere("internal/"+feature) {
				list = append(list, rule.Expr)
			}
		}
	}
	return list
}

// isThere reports whether there is a folder: one of a feature may be taken out.
func isThere(folder string) bool {
	_, err := os.Stat(folder)
	return err == nil
}

func dashboardExpressions(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("monitoring/grafana.json")
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
			list = append(list, target.Expr)
		}
	}
	return list
}
